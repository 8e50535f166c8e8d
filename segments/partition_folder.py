"""The folder of one partition: the names of its files, and its making."""

from __future__ import annotations

import logging
from contextlib import suppress

from walrusmq.segments.files import Files
from walrusmq.segments.small_files import UNFINISHED, write_exactly

logger = logging.getLogger("walrusmq.segments")

TOPIC_ID_BYTES = 16
TOPIC_NAME_FILE = "topic"
LOG, INDEX, TIMES, PRODUCERS, CHECKPOINT = "log", "index", "times", "producers", "checkpoint"
UNSYNCED = "unsynced"
"""Marks a log whose sync has failed: the system's cache may hold as written what the disk lacks."""
SUFFIXES = (LOG, INDEX, TIMES, PRODUCERS, CHECKPOINT, UNSYNCED)
ASIDE = ".aside"


def folder_name(topic_id: bytes, index: int) -> str:
    """`<topic id in hex>-<partition>`."""
    return f"{topic_id.hex()}-{index}"


def parse_folder_name(name: str) -> tuple[bytes, int] | None:
    """The topic id and partition of a folder's name; None where it isn't one of ours."""
    topic, _, index = name.partition("-")
    try:
        topic_id = bytes.fromhex(topic)
        found = (topic_id, int(index))
    except ValueError:
        return None
    return found if folder_name(*found) == name and len(topic_id) == TOPIC_ID_BYTES else None


class PartitionFolder:
    """Where one partition's files are. Making it costs nothing; the folder is made with the first append."""

    __slots__ = ("_files", "_parent", "is_durable", "is_made", "path", "topic")

    def __init__(self, files: Files, parent: str, topic: str, topic_id: bytes, index: int) -> None:
        self._files = files
        self._parent = parent
        self.topic = topic
        self.path = f"{parent}/{folder_name(topic_id, index)}"
        self.is_made = False
        """Whether there is a folder, or a first append has begun to make it."""
        self.is_durable = False
        """Whether the folder's own entry in its parent is on disk."""

    def file(self, segment_id: int, suffix: str) -> str:
        """The path of a segment's file."""
        return f"{self.path}/{segment_id:010d}.{suffix}"

    def create(self) -> tuple[str, ...]:
        """Make the folder with the topic's name in it, if it isn't there; the folders to sync so that its files stay.

        Raises OSError.
        """
        if self.is_durable:
            return (self.path,)
        self.is_made = True
        name = self.topic.encode()
        self._files.mkdir(self.path)
        fd = self._files.open(f"{self.path}/{TOPIC_NAME_FILE}", create=True)
        try:
            write_exactly(self._files, fd, name, 0)
        finally:
            self._files.close(fd)
        return (self.path, self._parent)

    def remove_leftovers(self, sealed_ids: set[int], open_id: int) -> None:
        """Remove files of segments that aren't in the chain any more, and what was never finished. Raises OSError.

        A segment behind the open one can hold nothing acknowledged, since its rollover wasn't recorded. Where its log
        isn't empty all the same, the metadata log has lost something: the file is set aside, not removed.
        """
        for name in self._files.listdir(self.path):
            path = f"{self.path}/{name}"
            number, _, suffix = name.partition(".")
            if name.endswith(UNFINISHED):
                self._files.unlink(path)
            if suffix not in SUFFIXES or not (number.isascii() and number.isdigit()):
                continue
            segment_id = int(number)
            if segment_id == open_id or (segment_id in sealed_ids and suffix not in (CHECKPOINT, UNSYNCED)):
                continue
            if suffix == LOG and segment_id > open_id and self._files.size_of(path):
                logger.error("%s isn't empty, but no rollover to it is recorded: set aside as %s", path, path + ASIDE)
                self._files.replace(path, path + ASIDE)
                continue
            if suffix == LOG:
                logger.warning("removing %s, which isn't in the chain of %s", path, self.topic)
            self._files.unlink(path)

    def remove_segments(self, segment_ids: list[int]) -> None:
        """Remove all files of these segments that are there. Raises OSError."""
        for segment_id in segment_ids:
            for suffix in SUFFIXES:
                self.remove_file(segment_id, suffix)

    def remove_file(self, segment_id: int, suffix: str) -> None:
        """Remove one file if it is there. Raises OSError."""
        with suppress(FileNotFoundError):
            self._files.unlink(self.file(segment_id, suffix))
