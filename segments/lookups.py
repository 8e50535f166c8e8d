"""Finding records by their timestamp, as ListOffsets asks for them.

The chain's facts say which segment, an index where to begin in it, headers which batch; only that one is unpacked.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from walrusmq.protocol.errors import KafkaError, KafkaStorageError
from walrusmq.protocol.records.header import BatchHeader
from walrusmq.protocol.records.scan import DamagedLog, scan_headers
from walrusmq.segments.facts import NO_TIMESTAMP
from walrusmq.segments.files import Files
from walrusmq.segments.indexes import SegmentIndexes
from walrusmq.segments.log_walk import find_batch
from walrusmq.segments.small_files import read_exactly

if TYPE_CHECKING:
    from walrusmq.segments.partition import Partition


def first_at_or_after(
    files: Files, fd: int, indexes: SegmentIndexes, size_bytes: int, timestamp: int, start_offset: int
) -> tuple[int, int] | None:
    """(timestamp, offset) of the first record that is as late as `timestamp` (ms), at `start_offset` or behind it.

    None where the log's first `size_bytes` hold none. A batch that can't be unpacked counts as one record. Raises
    KafkaStorageError, DamagedLog, OSError.
    """
    offset = max(start_offset, indexes.times.start_for(timestamp))
    base_offset, position = indexes.offsets.floor(offset)
    if base_offset != offset:
        position, _ = find_batch(files, fd, position, size_bytes, offset)
    for at, header in scan_headers(partial(files.pread, fd), position, size_bytes):
        if header.max_timestamp >= timestamp:
            found = _in_batch(files, fd, at, header, timestamp, start_offset)
            if found is not None:
                return found
    return None


def _in_batch(
    files: Files, fd: int, position: int, header: BatchHeader, timestamp: int, start_offset: int
) -> tuple[int, int] | None:
    if header.has_log_append_time:
        offset = max(header.base_offset, start_offset)
        return (header.max_timestamp, offset) if offset <= header.last_offset else None
    from walrusmq.protocol.records.batch import decode_batch  # with the codecs: not before somebody asks for a time

    data = read_exactly(files, fd, header.size_bytes, position)
    try:
        records = decode_batch(data).records
    except KafkaError:  # a codec that isn't installed, or records that a producer packed wrongly
        return header.max_timestamp, max(header.base_offset, start_offset)
    for record in records:
        if record.timestamp >= timestamp and record.offset >= start_offset:
            return record.timestamp, record.offset
    return None


def offset_for_timestamp(partition: Partition, timestamp: int) -> tuple[int, int] | None:
    """(timestamp, offset) of the first record with that time (ms) or a later one that consumers see.

    Raises KafkaStorageError where a log can't be read now.
    """
    try:
        found = _first_in_chain(partition, timestamp) or _first_in_open(partition, timestamp)
    except (OSError, DamagedLog) as error:
        raise KafkaStorageError(f"{partition} can't be searched: {error}") from error
    return found if found is not None and found[1] < partition.high_watermark else None


def max_timestamp(partition: Partition) -> tuple[int, int] | None:
    """(timestamp, offset) of the first record with the largest timestamp; None where none has one.

    Raises KafkaStorageError where a log can't be read now.
    """
    partition.load()
    sealed = [facts for facts in partition.chain.sealed if facts.end_offset > partition.log_start_offset]
    latest = max((facts.max_timestamp for facts in sealed), default=NO_TIMESTAMP)
    log = partition.log
    is_all_seen = partition.high_watermark >= log.end_offset
    latest = max(latest, log.indexes.max_timestamp if is_all_seen else log.synced_max_timestamp)
    if latest == NO_TIMESTAMP:
        return None
    return offset_for_timestamp(partition, latest)


def _first_in_chain(partition: Partition, timestamp: int) -> tuple[int, int] | None:
    chain = partition.chain
    for place in range(chain.at_timestamp(timestamp), len(chain)):
        if chain.sealed[place].max_timestamp >= timestamp:
            log = chain.log(place)
            indexes = log.indexes()
            if log.size_bytes:
                fd = log.file.open().fd
                found = first_at_or_after(
                    partition.store.files, fd, indexes, log.size_bytes, timestamp, partition.log_start_offset
                )
                if found is not None:
                    return found
    return None


def _first_in_open(partition: Partition, timestamp: int) -> tuple[int, int] | None:
    partition.load()
    log = partition.log
    if log.indexes.max_timestamp < timestamp or not log.position:
        return None
    fd = log.file.open().fd
    return first_at_or_after(
        partition.store.files, fd, log.indexes, log.position, timestamp, partition.log_start_offset
    )
