"""The `.index` and `.times` files of one segment: its sparse indexes on disk, in checksummed blocks.

A block holds the entries of a stretch of log, as two columns, and the position up to which the file covers the log with
it. Blocks are written behind the log's synced end and never synced: a torn or wrong one is told by its checksum, and
the rest is made again from the log.
"""

from __future__ import annotations

import sys
from array import array
from dataclasses import dataclass
from struct import Struct

from walrusmq.protocol.records.crc import crc32c
from walrusmq.segments.files import Files
from walrusmq.segments.indexes import SegmentIndexes
from walrusmq.segments.partition_folder import INDEX, TIMES, PartitionFolder
from walrusmq.segments.small_files import read_whole, write_exactly

SMALL_REST_BYTES = 64 << 10
"""Log that the files may leave out at its end: one read shows its batches, so small segments need no index files."""

_HEAD = Struct("<IIQ")  # CRC-32C of all that follows it, entries, covered position
_CRC_BYTES = 4

Columns = tuple["array[int]", "array[int]"]


def encode_block(columns: Columns, start: int, end: int, covered: int) -> bytes:
    """Entries `start` to `end` of two columns, covering the log up to the position `covered`."""
    body = b"".join(_little_endian(column[start:end]).tobytes() for column in columns)
    head = _HEAD.pack(0, end - start, covered)[_CRC_BYTES:]
    return crc32c(body, crc32c(head)).to_bytes(_CRC_BYTES, "little") + head + body


def decode_blocks(data: bytes, columns: Columns, end_position: int) -> tuple[int, int]:
    """Fill the columns from the good blocks that cover no more than `end_position` of log.

    Returns (the file's size up to there, the position up to which they cover the log).
    """
    at = covered = 0
    while len(data) - at >= _HEAD.size:
        checksum, count, block_covered = _HEAD.unpack_from(data, at)
        body_at = at + _HEAD.size
        size = count * sum(column.itemsize for column in columns)
        if size > len(data) - body_at or not covered <= block_covered <= end_position:
            break
        if crc32c(memoryview(data)[at + _CRC_BYTES : body_at + size]) != checksum:
            break
        parts = []
        for column in columns:
            part = array(column.typecode)
            part.frombytes(data[body_at : body_at + count * column.itemsize])
            parts.append(_little_endian(part))
            body_at += count * column.itemsize
        if count and any(column and part[0] < column[-1] for column, part in zip(columns, parts, strict=True)):
            break
        for column, part in zip(columns, parts, strict=True):
            column.extend(part)
        at, covered = body_at, block_covered
    return at, covered


def _little_endian(column: array[int]) -> array[int]:
    if sys.byteorder == "big":
        column.byteswap()
    return column


@dataclass(slots=True)
class IndexBlocks:
    """What one write appends to both files, and where."""

    index: bytes
    index_at: int
    times: bytes
    times_at: int


class IndexFiles:
    """How far the two files go. `take` is called on the loop, `write` on the thread for files."""

    __slots__ = (
        "_files",
        "_index_bytes",
        "_index_entries",
        "_index_path",
        "_times_bytes",
        "_times_entries",
        "_times_path",
        "covered",
    )

    def __init__(self, files: Files, folder: PartitionFolder, segment_id: int, generation: int = 0) -> None:
        self._files = files
        self._index_path = folder.file(segment_id, INDEX, generation)
        self._times_path = folder.file(segment_id, TIMES, generation)
        self._index_bytes = self._times_bytes = 0
        self._index_entries = self._times_entries = 0
        self.covered = 0
        """The position up to which the files cover the log, once what was taken is written."""

    def load(self, first_offset: int, end_position: int) -> tuple[SegmentIndexes, int]:
        """The indexes as far as the files are good, and the position up to which they cover the log.

        What comes later in the files is written over by the next `write`. Raises OSError.
        """
        index_data = read_whole(self._files, self._index_path) or b""
        times_data = read_whole(self._files, self._times_path) or b""
        indexes, index_covered, times_covered = self._decode(index_data, times_data, first_offset, end_position)
        covered = min(index_covered, times_covered)
        if index_covered != times_covered:
            indexes, _, _ = self._decode(index_data, times_data, first_offset, covered)
        indexes.offsets.truncate(covered)
        self._index_entries, self._times_entries = len(indexes.offsets), len(indexes.times)
        if indexes.times:
            indexes.max_timestamp = indexes.times.timestamps[-1]
        self.covered = covered
        return indexes, covered

    def _decode(
        self, index_data: bytes, times_data: bytes, first_offset: int, end_position: int
    ) -> tuple[SegmentIndexes, int, int]:
        indexes = SegmentIndexes(first_offset)
        offsets, times = indexes.offsets, indexes.times
        self._index_bytes, index_covered = decode_blocks(
            index_data, (offsets.relative_offsets, offsets.positions), end_position
        )
        self._times_bytes, times_covered = decode_blocks(
            times_data, (times.timestamps, times.relative_offsets), end_position
        )
        return indexes, index_covered, times_covered

    def are_behind(self, position: int) -> bool:
        """Whether so much log before `position` isn't covered that it is worth a write, or a warning."""
        return position - self.covered > SMALL_REST_BYTES

    def take(self, indexes: SegmentIndexes, covered: int, end_offset: int) -> IndexBlocks:
        """The entries made since the last blocks, up to the batch boundary at `covered` and `end_offset`."""
        offsets, times = indexes.offsets, indexes.times
        entries = offsets.count_before(covered)
        time_entries = times.count_before(end_offset)
        blocks = IndexBlocks(
            encode_block((offsets.relative_offsets, offsets.positions), self._index_entries, entries, covered),
            self._index_bytes,
            encode_block((times.timestamps, times.relative_offsets), self._times_entries, time_entries, covered),
            self._times_bytes,
        )
        self._index_entries, self._times_entries = entries, time_entries
        self._index_bytes += len(blocks.index)
        self._times_bytes += len(blocks.times)
        self.covered = covered
        return blocks

    def write(self, blocks: IndexBlocks) -> None:
        """Append the blocks to the files. Raises OSError."""
        self._write(self._index_path, blocks.index, blocks.index_at)
        self._write(self._times_path, blocks.times, blocks.times_at)

    def _write(self, path: str, block: bytes, position: int) -> None:
        fd = self._files.open(path, create=True)
        try:
            write_exactly(self._files, fd, block, position)
            self._files.ftruncate(fd, position + len(block))
        finally:
            self._files.close(fd)
