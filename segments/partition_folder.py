"""The folder of one partition: the names of its files, and its making."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress

from walrusmq.segments.files import Files
from walrusmq.segments.small_files import UNFINISHED, write_exactly

logger = logging.getLogger("walrusmq.segments")

TOPIC_ID_BYTES = 16
TOPIC_NAME_FILE = "topic"
LOG, INDEX, TIMES, PRODUCERS, CHECKPOINT = "log", "index", "times", "producers", "checkpoint"
UNSYNCED = "unsynced"
"""Marks a log whose sync has failed: the system's cache may hold as written what the disk lacks."""
OF_A_LOG = (LOG, INDEX, TIMES)
"""What each generation of a segment has of its own."""
OF_A_SEGMENT = (PRODUCERS, CHECKPOINT, UNSYNCED)
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

    def file(self, segment_id: int, suffix: str, generation: int = 0) -> str:
        """The path of a segment's file; one of `OF_A_LOG` belongs to a generation."""
        return f"{self.path}/{segment_id:010d}{f'-{generation}' if generation else ''}.{suffix}"

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

    def remove_leftovers(self, sealed: Mapping[int, int], open_id: int) -> None:
        """Remove files of segments that aren't in the chain any more, and what was never finished. Raises OSError.

        `sealed` has the generation of each sealed segment by its id.

        A segment behind the open one can hold nothing acknowledged, since its rollover wasn't recorded. Where its log
        isn't empty all the same, the metadata log has lost something: the file is set aside, not removed.
        """
        for name in self._files.listdir(self.path):
            path = f"{self.path}/{name}"
            if name.endswith(UNFINISHED):
                self._files.unlink(path)
            parsed = _parse_file_name(name)
            if parsed is None:
                continue
            segment_id, generation, suffix = parsed
            if segment_id == open_id and not generation:
                continue
            if suffix == PRODUCERS and segment_id in sealed:
                continue
            if suffix in OF_A_LOG and sealed.get(segment_id) == generation:
                continue
            if suffix == LOG and segment_id > open_id and self._files.size_of(path):
                logger.error("%s isn't empty, but no rollover to it is recorded: set aside as %s", path, path + ASIDE)
                self._files.replace(path, path + ASIDE)
                continue
            if suffix == LOG:
                logger.warning("removing %s, which isn't in the chain of %s", path, self.topic)
            self._files.unlink(path)

    def remove_segments(self, segments: Iterable[tuple[int, int]]) -> None:
        """Remove all files of these segments (id, generation) that are there. Raises OSError."""
        for segment_id, generation in segments:
            self.remove_log(segment_id, generation)
            for suffix in OF_A_SEGMENT:
                self.remove_file(segment_id, suffix)

    def remove_log(self, segment_id: int, generation: int) -> None:
        """Remove one generation of a segment's log. Raises OSError."""
        for suffix in OF_A_LOG:
            self.remove_file(segment_id, suffix, generation)

    def remove_file(self, segment_id: int, suffix: str, generation: int = 0) -> None:
        """Remove one file if it is there. Raises OSError."""
        with suppress(FileNotFoundError):
            self._files.unlink(self.file(segment_id, suffix, generation))


def _parse_file_name(name: str) -> tuple[int, int, str] | None:
    """Segment id, generation and suffix of a segment's file; None for any other file."""
    numbers, _, suffix = name.partition(".")
    found = re.fullmatch(r"([0-9]{10})(?:-([1-9][0-9]*))?", numbers)
    if found is None or suffix not in (*OF_A_LOG, *OF_A_SEGMENT):
        return None
    return int(found[1]), int(found[2] or 0), suffix
