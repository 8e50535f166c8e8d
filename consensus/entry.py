"""An entry of the metadata log, as it stands on disk.

    CRC-32C of all that follows | payload size | kind | index | term | payload

The payload of a command is opaque here; its first bytes say which command it is, and in which version.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from walrusmq.protocol.records.crc import crc32c

MAX_COMMAND_BYTES = 1 << 20
"""A topic with 20,000 partitions on three nodes each takes 0.4 MB. An entry must fit well into one message of Raft."""

_HEADER = struct.Struct(">IIBQQ")
_AFTER_CRC = struct.Struct(">IBQQ")
_CRC = struct.Struct(">I")
ENTRY_HEADER_BYTES = _HEADER.size


KIND_COMMAND = 1
"""The entry is a command for the state machine; a group of one writes no other."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One command with its place in the log. The first index is 1; terms never fall from one entry to the next."""

    index: int
    term: int
    payload: bytes
    kind: int = KIND_COMMAND


class Scan(NamedTuple):
    """What a stretch of bytes holds: entries that follow each other up to ``end``, and what stopped them there."""

    entries: list[Entry]
    end: int
    fault: str | None
    """None: the bytes end, or the wanted entries do, where an entry ends."""


def encode_entries(entries: Iterable[Entry]) -> bytes:
    """The bytes of entries that follow each other."""
    pieces: list[bytes] = []
    for entry in entries:
        covered = _AFTER_CRC.pack(len(entry.payload), entry.kind, entry.index, entry.term)
        pieces += (_CRC.pack(crc32c(entry.payload, crc32c(covered))), covered, entry.payload)
    return b"".join(pieces)


def scan_entries(data: bytes, position: int, next_index: int, term: int, limit_index: int | None = None) -> Scan:
    """Read entries from ``position`` on, up to the one before ``limit_index``, or as far as they are whole.

    ``next_index`` is the index of the first one, ``term`` that of the entry before it. Any bytes may come in.
    """
    entries: list[Entry] = []
    size = len(data)
    view = memoryview(data)
    fault = None
    while position < size and next_index != limit_index:
        payload_start = position + ENTRY_HEADER_BYTES
        if payload_start > size:
            fault = "it ends within the header"
            break
        crc, payload_bytes, kind, entry_index, entry_term = _HEADER.unpack_from(data, position)
        end = payload_start + payload_bytes
        if payload_bytes > MAX_COMMAND_BYTES or end > size:
            fault = f"its size of {payload_bytes} bytes doesn't fit"
            break
        if crc32c(view[position + _CRC.size : end]) != crc:
            fault = "its checksum doesn't match"
            break
        if entry_index != next_index or entry_term < term or kind != KIND_COMMAND:
            fault = f"it is index {entry_index}, term {entry_term}, kind {kind}, which can't follow here"
            break
        entries.append(Entry(entry_index, entry_term, data[payload_start:end]))
        position = end
        next_index += 1
        term = entry_term
    return Scan(entries, position, fault)
