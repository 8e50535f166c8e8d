"""What a member of the group must never forget: its term and its vote (Raft, §5.1 and §5.2)."""

from __future__ import annotations

import os
import struct
from typing import NamedTuple

from walrusmq.consensus.durable_file import Files, read_file, write_durably
from walrusmq.consensus.errors import MetadataDamaged, NewerFormat
from walrusmq.protocol.records.crc import crc32c

FILE_NAME = "hard_state"
FORMAT_VERSION = 1
MAGIC = b"WALRUSHS"
NO_VOTE = -1

_LAYOUT = struct.Struct(">8sHQi")
"""magic, format version, term, vote; the CRC-32C of these follows."""
_CRC = struct.Struct(">I")


class HardState(NamedTuple):
    """The latest term that this node has seen, and the node that it voted for in it."""

    term: int
    vote: int = NO_VOTE


def load_hard_state(folder: str, files: Files) -> HardState | None:
    """Read the hard state; None where the folder is new. Raises MetadataDamaged, NewerFormat."""
    path = os.path.join(folder, FILE_NAME)
    if not files.exists(path):
        return None
    data = read_file(files, path)
    if len(data) != _LAYOUT.size + _CRC.size:
        raise MetadataDamaged(path, f"it has {len(data)} bytes instead of {_LAYOUT.size + _CRC.size}")
    magic, version, term, vote = _LAYOUT.unpack_from(data)
    if _CRC.unpack_from(data, _LAYOUT.size)[0] != crc32c(data[: _LAYOUT.size]) or magic != MAGIC:
        raise MetadataDamaged(path, "its checksum doesn't match")
    if version > FORMAT_VERSION:
        raise NewerFormat(path, version, FORMAT_VERSION)
    return HardState(term, vote)


def save_hard_state(folder: str, files: Files, state: HardState) -> None:
    """Put the hard state on stable storage, whole: it must not be acted on before this returns."""
    body = _LAYOUT.pack(MAGIC, FORMAT_VERSION, state.term, state.vote)
    write_durably(files, os.path.join(folder, FILE_NAME), body + _CRC.pack(crc32c(body)))
