"""One file of the metadata log.

    header      magic, format version, index of the first entry, term of the entry before it, CRC-32C
    mark        how far the file was synced when this was written, CRC-32C
    entries     from ENTRIES_START on

The mark tells a torn tail from lost metadata. It is written after each sync and goes to stable storage with the next
one, so it may be late, but it never says too much: an entry that isn't whole below it was confirmed once, one above it
never was acted on. Header and mark lie within one disk sector, which is written whole or not at all.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from walrusmq.consensus.errors import MetadataDamaged, NewerFormat
from walrusmq.protocol.records.crc import crc32c

LOG_SUFFIX = ".log"
FORMAT_VERSION = 1
MAGIC = b"WALRUSML"
ENTRIES_START = 64

_HEADER = struct.Struct(">8sHQQ")
_MARK = struct.Struct(">Q")
_CRC = struct.Struct(">I")
MARK_POSITION = 32


class LogFileHeader(NamedTuple):
    """Where a file of the log belongs."""

    first_index: int
    previous_term: int


def file_name(first_index: int) -> str:
    """The name of the file that begins with this entry; names sort as their entries do."""
    return f"{first_index:020d}{LOG_SUFFIX}"


def first_indexes(names: list[str]) -> list[int]:
    """The first indexes of the log files among these names, in order."""
    stems = [name.removesuffix(LOG_SUFFIX) for name in names if name.endswith(LOG_SUFFIX)]
    return sorted(int(stem) for stem in stems if stem.isdecimal())


def encode_mark(first_index: int, synced_end: int) -> bytes:
    """The bytes at MARK_POSITION. The checksum covers the first index too: a mark is good for its own file only."""
    mark = _MARK.pack(synced_end)
    return mark + _CRC.pack(crc32c(mark, crc32c(_MARK.pack(first_index))))


def encode_header(header: LogFileHeader) -> bytes:
    """The beginning of a new file, up to where its entries start."""
    body = _HEADER.pack(MAGIC, FORMAT_VERSION, header.first_index, header.previous_term)
    start = (body + _CRC.pack(crc32c(body))).ljust(MARK_POSITION, b"\0")
    return (start + encode_mark(header.first_index, ENTRIES_START)).ljust(ENTRIES_START, b"\0")


def decode_header(data: bytes, path: str) -> LogFileHeader:
    """Read the header. Raises MetadataDamaged, NewerFormat."""
    if len(data) < ENTRIES_START:
        raise MetadataDamaged(path, f"{len(data)} bytes are no log file")
    if _CRC.unpack_from(data, _HEADER.size)[0] != crc32c(data[: _HEADER.size]):
        raise MetadataDamaged(path, "the checksum of the log file's header doesn't match")
    magic, version, first_index, previous_term = _HEADER.unpack_from(data)
    if magic != MAGIC:
        raise MetadataDamaged(path, "it doesn't begin as a log file does")
    if version > FORMAT_VERSION:
        raise NewerFormat(path, version, FORMAT_VERSION)
    return LogFileHeader(first_index, previous_term)


def decode_mark(data: bytes, header: LogFileHeader) -> int | None:
    """How far the file is known to have been synced; None if the mark is damaged."""
    end = MARK_POSITION + _MARK.size + _CRC.size
    (synced_end,) = _MARK.unpack_from(data, MARK_POSITION)
    if data[MARK_POSITION:end] != encode_mark(header.first_index, synced_end):
        return None
    return int(synced_end)
