"""Cutting a read out of a log: whole batches, from the one that holds the wanted offset, as a stretch of the file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from walrusmq.protocol.frames import FileRegion
from walrusmq.segments.files import Files
from walrusmq.segments.handles import LogFile
from walrusmq.segments.log_walk import batch_size, find_batch, last_boundary
from walrusmq.segments.offset_index import OffsetIndex
from walrusmq.segments.sealed_log import IndexBeingRebuilt

if TYPE_CHECKING:
    from walrusmq.segments.partition import Partition

MAX_READ_ENDS = 32
"""Readers whose place is remembered for one log: those that follow its end don't walk at all."""


class ReadEnds:
    """Where the last reads ended: offset -> position of batches that begin there."""

    __slots__ = ("_positions",)

    def __init__(self) -> None:
        self._positions: dict[int, int] = {}

    def get(self, offset: int) -> int | None:
        return self._positions.get(offset)

    def remember(self, offset: int, position: int) -> None:
        positions = self._positions
        if offset not in positions:
            if len(positions) >= MAX_READ_ENDS:
                del positions[next(iter(positions))]
            positions[offset] = position


def cut_region(
    files: Files,
    file: LogFile,
    index: OffsetIndex,
    offset: int,
    start: int | None,
    limit: int,
    max_bytes: int,
    minimum_one: bool,
) -> FileRegion | None:
    """Batches from the one with `offset` on, up to `max_bytes` and the position `limit`, with the file pinned.

    `start` is that batch's position where it is known already. The region ends at `limit`, else at a batch that the
    index knows, else at the last that still fits. When the first batch doesn't fit: it alone with `minimum_one`, else
    None. Raises KafkaStorageError where the log has no such batch, OSError where it can't be read.
    """
    handle = file.open()
    size = 0
    if start is None:
        base_offset, start = index.floor(offset)
        if base_offset != offset:
            start, size = find_batch(files, handle.fd, start, limit, offset)
    target = start + max_bytes
    if target >= limit:
        end = limit
    else:
        _, end = index.floor_position(target)
        if end <= start:
            end = last_boundary(files, handle.fd, start, target)
    if end <= start:
        if not minimum_one:
            return None
        end = start + (size or batch_size(files, handle.fd, start))
    handle.pin()
    return FileRegion(handle, start, end - start)


def read_open(partition: Partition, offset: int, max_bytes: int, minimum_one: bool) -> FileRegion | None:
    """Cut a read below the high watermark out of the open segment. Raises as `cut_region`."""
    if partition.unloaded is not None:
        partition.load()
    log, ends, limit = partition.log, partition.read_ends, partition.high_position
    region = cut_region(
        partition.store.files,
        log.file,
        log.indexes.offsets,
        offset,
        ends.get(offset),
        limit,
        max_bytes,
        minimum_one,
    )
    if region is not None and region.position + region.size == limit:
        ends.remember(partition.high_watermark, limit)
    return region


def read_sealed(partition: Partition, offset: int, max_bytes: int, minimum_one: bool) -> FileRegion | None:
    """Cut a read out of the sealed segment that has `offset`, or of the next one where that is damaged there.

    None while an index that was lost is being made again. Raises as `cut_region`.
    """
    chain = partition.chain
    for place in range(max(chain.at_offset(offset), 0), len(chain)):
        log = chain.log(place)
        try:
            index = log.indexes().offsets
        except IndexBeingRebuilt:
            return None
        offset = max(offset, log.facts.first_offset)
        if offset < log.end_offset:
            files, end = partition.store.files, log.size_bytes
            return cut_region(files, log.file, index, offset, None, end, max_bytes, minimum_one)
    offset = partition.log.facts.first_offset
    return read_open(partition, offset, max_bytes, minimum_one) if offset < partition.high_watermark else None
