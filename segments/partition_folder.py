"""The folder of one partition: the names of its files, and its making."""

from __future__ import annotations

from walrusmq.segments.files import Files
from walrusmq.segments.small_files import write_exactly

TOPIC_ID_BYTES = 16
TOPIC_NAME_FILE = "topic"
LOG, INDEX, TIMES, PRODUCERS, CHECKPOINT = "log", "index", "times", "producers", "checkpoint"
SUFFIXES = (LOG, INDEX, TIMES, PRODUCERS, CHECKPOINT)


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

    __slots__ = ("_files", "_parent", "is_durable", "path", "topic")

    def __init__(self, files: Files, parent: str, topic: str, topic_id: bytes, index: int) -> None:
        self._files = files
        self._parent = parent
        self.topic = topic
        self.path = f"{parent}/{folder_name(topic_id, index)}"
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
        name = self.topic.encode()
        self._files.mkdir(self.path)
        fd = self._files.open(f"{self.path}/{TOPIC_NAME_FILE}", create=True)
        try:
            write_exactly(self._files, fd, name, 0)
        finally:
            self._files.close(fd)
        return (self.path, self._parent)

    def segment_files(self) -> list[tuple[int, str, str]]:
        """(segment id, suffix, path) of every file that belongs to a segment. Raises OSError."""
        found = []
        for name in self._files.listdir(self.path):
            number, _, suffix = name.partition(".")
            if suffix in SUFFIXES and number.isascii() and number.isdigit():
                found.append((int(number), suffix, f"{self.path}/{name}"))
        return found
