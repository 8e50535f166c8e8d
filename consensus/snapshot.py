"""Snapshots of the state machine on disk: each stands for all entries up to its index.

    00000000000000005000.snapshot   the name is the last index that it contains
        magic, format version, last index, last term, body size, CRC-32C of the body, CRC-32C of this header; body

A snapshot gets its name only once it is on stable storage. Two are kept, so that one bad block isn't the end: the log
reaches back to the older one.
"""

from __future__ import annotations

import logging
import os
import struct
from typing import NamedTuple

from walrusmq.consensus.durable_file import Files, read_file, write_durably
from walrusmq.consensus.errors import MetadataDamaged, NewerFormat
from walrusmq.protocol.records.crc import crc32c

logger = logging.getLogger("walrusmq.metadata")

SNAPSHOT_SUFFIX = ".snapshot"
FORMAT_VERSION = 1
MAGIC = b"WALRUSSN"
SNAPSHOTS_KEPT = 2
"""The newest, and one to fall back on."""

_LAYOUT = struct.Struct(">8sHQQQI")
_CRC = struct.Struct(">I")
HEADER_BYTES = _LAYOUT.size + _CRC.size


class Snapshot(NamedTuple):
    """The state after the entry at ``last_index``, which was of ``last_term``."""

    last_index: int
    last_term: int
    data: bytes


NO_SNAPSHOT = Snapshot(0, 0, b"")
"""Where the log begins: before its first entry."""


def encode_snapshot(snapshot: Snapshot) -> bytes:
    """The content of the snapshot's file."""
    body = snapshot.data
    header = _LAYOUT.pack(MAGIC, FORMAT_VERSION, snapshot.last_index, snapshot.last_term, len(body), crc32c(body))
    return b"".join((header, _CRC.pack(crc32c(header)), body))


def decode_snapshot(content: bytes, path: str) -> Snapshot:
    """Read the content of a snapshot's file. Raises MetadataDamaged, NewerFormat."""
    if len(content) < HEADER_BYTES:
        raise MetadataDamaged(path, f"{len(content)} bytes are no snapshot")
    if _CRC.unpack_from(content, _LAYOUT.size)[0] != crc32c(content[: _LAYOUT.size]):
        raise MetadataDamaged(path, "the checksum of the snapshot's header doesn't match")
    magic, version, last_index, last_term, body_bytes, body_crc = _LAYOUT.unpack_from(content)
    if magic != MAGIC:
        raise MetadataDamaged(path, "it doesn't begin as a snapshot does")
    if version > FORMAT_VERSION:
        raise NewerFormat(path, version, FORMAT_VERSION)
    body = content[HEADER_BYTES:]
    if len(body) != body_bytes or crc32c(body) != body_crc:
        raise MetadataDamaged(path, "the checksum of the snapshot doesn't match")
    return Snapshot(last_index, last_term, body)


class SnapshotStore:
    """The snapshots of one folder. One thread at a time."""

    def __init__(self, folder: str, files: Files) -> None:
        self._folder = folder
        self._files = files
        self._valid: list[int] = []
        """Last indexes of the snapshots that are known to be good, oldest first."""

    def load(self) -> Snapshot:
        """The newest snapshot that is whole; NO_SNAPSHOT where there is none at all.

        A damaged one is reported and passed over, if an older one is there: whether the log reaches back that far is
        for the log to say. Raises MetadataDamaged if all are damaged, NewerFormat.
        """
        indexes = self._indexes()
        damage: MetadataDamaged | None = None
        for position in range(len(indexes) - 1, -1, -1):
            path = self._path(indexes[position])
            try:
                snapshot = decode_snapshot(read_file(self._files, path), path)
            except MetadataDamaged as error:
                logger.error("%s: %s; going back to an older snapshot", error.path, error.finding)
                damage = error
                continue
            if snapshot.last_index != indexes[position]:
                raise MetadataDamaged(path, f"it goes up to entry {snapshot.last_index}, its name says otherwise")
            self._valid = indexes[: position + 1]
            return snapshot
        if damage is not None:
            raise damage
        return NO_SNAPSHOT

    def save(self, snapshot: Snapshot) -> None:
        """Put a snapshot on stable storage. Raises OSError, with the older snapshots untouched."""
        assert not self._valid or snapshot.last_index > self._valid[-1], "a snapshot never goes back"
        write_durably(self._files, self._path(snapshot.last_index), encode_snapshot(snapshot))
        self._valid = [*self._valid, snapshot.last_index][-SNAPSHOTS_KEPT:]

    def remove_old(self) -> int:
        """Remove the snapshots that are too old; give the index up to which the log isn't needed any more.

        Raises OSError.
        """
        for index in self._indexes():
            if index not in self._valid:
                self._files.unlink(self._path(index))
        return self._valid[0] if len(self._valid) == SNAPSHOTS_KEPT else 0

    def _indexes(self) -> list[int]:
        """The last indexes of the snapshots that are there, oldest first."""
        stems = [
            name.removesuffix(SNAPSHOT_SUFFIX)
            for name in self._files.listdir(self._folder)
            if name.endswith(SNAPSHOT_SUFFIX)
        ]
        return sorted(int(stem) for stem in stems if stem.isdecimal())

    def _path(self, last_index: int) -> str:
        return os.path.join(self._folder, f"{last_index:020d}{SNAPSHOT_SUFFIX}")
