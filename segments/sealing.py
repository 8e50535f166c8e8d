"""Sealing an open segment, and the checkpoints on the way there: what is written beside a log, on the thread for files.

None of it is needed for correctness: what couldn't be written is made again from the logs. So a full disk doesn't stop
a segment from being sealed.
"""

from __future__ import annotations

import asyncio
import dataclasses
import logging
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from walrusmq.protocol.errors import KafkaError, KafkaStorageError
from walrusmq.protocol.records.scan import DamagedLog
from walrusmq.segments.checkpoint import TrustedPoint, write_checkpoint
from walrusmq.segments.facts import NO_TIMESTAMP, SealedSegment
from walrusmq.segments.files import Files
from walrusmq.segments.index_files import IndexBlocks
from walrusmq.segments.log_config import Durability
from walrusmq.segments.lookups import first_at_or_after
from walrusmq.segments.open_log import OpenLog
from walrusmq.segments.producers import Producers, Snapshot, encode_snapshot
from walrusmq.segments.recovery import LogRecovery
from walrusmq.segments.segment_producers import write_producers

if TYPE_CHECKING:
    from walrusmq.segments.partition import Partition

T = TypeVar("T")

logger = logging.getLogger("walrusmq.segments")


class SegmentGone(Exception):
    """The partition was removed, or its store stopped, before its segment was sealed."""


async def seal(partition: Partition) -> SealedSegment:
    """Sync the stopped open segment to its end, and find its facts. Raises SegmentGone."""
    if partition.is_gone:
        raise SegmentGone(f"{partition} is gone")
    log, store = partition.log, partition.store
    try:
        partition.load()
    except KafkaStorageError as error:
        logger.error("%s is sealed without its indexes and producers: %s", partition, error)
    if partition.config.effective_durability is not Durability.NEVER or partition.acknowledgements:
        await _wait_for_sync(partition)
    now_ms = store.clock.now_ms()
    if log.is_rewound:
        await _run(partition, partial(_rebuild, store.files, log, partition.producers, partition.chain.sealed, now_ms))
    blocks = None
    if log.index_files.are_behind(log.position):
        blocks = log.index_files.take(log.indexes, log.position, log.end_offset)
    snapshot = partition.producers.snapshot(now_ms)
    sealed, are_producers_written = await _run(partition, partial(_finish, store.files, log, blocks, snapshot))
    partition.next_producers = None if are_producers_written else snapshot
    return sealed


async def _wait_for_sync(partition: Partition) -> None:
    """Return once the open segment is synced to its end, or has lost what was behind its last sync."""
    log = partition.log
    if log.is_rewound or log.synced_offset == log.end_offset:
        return
    ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def synced(_: KafkaError | None) -> None:
        if not ended.done():
            ended.set_result(None)

    partition.store.commit.request(log, partition.when_synced)
    partition.when_acknowledged(log.end_offset, synced)
    await ended


async def _run(partition: Partition, work: Callable[[], T]) -> T:
    """Have `work` done on the thread for files. Raises SegmentGone, before or after it."""
    if partition.is_gone:
        raise SegmentGone(f"{partition} is gone")
    result = await partition.store.background.run(work)
    if partition.is_gone:
        raise SegmentGone(f"{partition} is gone")
    return result


def _rebuild(files: Files, log: OpenLog, producers: Producers, sealed: list[SealedSegment], now_ms: int) -> None:
    """A sync has failed: indexes and producers know of batches that aren't there any more. Make them again.

    Where the log can't be read, what is known of producers is dropped: a lost batch must not pass for a duplicate.
    """
    fresh = OpenLog(log.facts, log.folder, log.file, files)
    try:
        LogRecovery(files, fresh, producers, sealed, now_ms).scan(limit=log.position)
        log.indexes, log.index_files = fresh.indexes, fresh.index_files
    except OSError as error:
        logger.error("%s can't be read: its producers are forgotten: %s", log.file.path, error)
        producers.restore([])
        log.indexes.offsets.truncate(log.position)
        log.indexes.times.truncate(log.end_offset)
    try:
        _cut(files, log.file.path, log.position)
    except OSError as error:
        logger.warning("%s couldn't be cut at its end: %s", log.file.path, error)


def _cut(files: Files, path: str, size: int) -> None:
    fd = files.open(path)
    try:
        files.ftruncate(fd, size)
    finally:
        files.close(fd)


def _finish(files: Files, log: OpenLog, blocks: IndexBlocks | None, producers: Snapshot) -> tuple[SealedSegment, bool]:
    """The facts of a log that has stopped at its end; its indexes and the next segment's producers are written.

    The latter may fail: then False is returned beside the facts.
    """
    facts = log.facts
    sealed = SealedSegment(
        id=facts.id,
        leader=facts.leader,
        leader_epoch=facts.leader_epoch,
        first_offset=facts.first_offset,
        end_offset=log.end_offset,
        size_bytes=log.position,
        max_timestamp=log.indexes.max_timestamp,
        max_timestamp_offset=_max_timestamp_offset(files, log),
        members=facts.members,
    )
    try:
        if blocks is not None:
            log.index_files.write(blocks)
        if files.exists(log.folder.path):
            write_producers(files, log.folder, facts.id + 1, log.end_offset, producers)
            files.sync_folder(log.folder.path)
    except OSError as error:
        logger.warning("%s is sealed, but what belongs to it couldn't be written: %s", log.file.path, error)
        return sealed, False
    return sealed, True


def _max_timestamp_offset(files: Files, log: OpenLog) -> int:
    """Exact but for a log that can't be read, or a batch that can't be unpacked: then a place before it."""
    timestamp = log.indexes.max_timestamp
    if timestamp == NO_TIMESTAMP:
        return NO_TIMESTAMP
    found = None
    try:
        fd = files.open(log.file.path)
        try:
            found = first_at_or_after(files, fd, log.indexes, log.position, timestamp, log.facts.first_offset)
        finally:
            files.close(fd)
    except (KafkaStorageError, DamagedLog, OSError) as error:
        logger.error("%s can't be read: %s", log.file.path, error)
    return log.facts.first_offset if found is None else found[1]


def trusted_point(log: OpenLog) -> TrustedPoint:
    """The log's present end, without producers. It becomes trusted once it is synced."""
    facts = log.facts
    return TrustedPoint(
        segment_id=facts.id,
        first_offset=facts.first_offset,
        end_offset=log.end_offset,
        position=log.position,
        max_timestamp=log.indexes.max_timestamp,
        started_ms=log.started_ms,
        producers=b"",
    )


def begin_checkpoint(partition: Partition, now_ms: int) -> None:
    """Once the open segment is synced up to its present end, write a checkpoint of that."""
    if partition.config.effective_durability is Durability.NEVER:
        return
    log = partition.log
    point = trusted_point(log)
    log.checkpoint_position = point.position
    snapshot = partition.producers.snapshot(now_ms)

    def synced(error: KafkaError | None) -> None:
        if error is None and partition.log is log:
            blocks = log.index_files.take(log.indexes, point.position, point.end_offset)
            work = partial(_write_point, partition.store.files, log, blocks, point, snapshot)
            partition.store.background.start(f"a checkpoint of {partition}", work)

    partition.when_acknowledged(point.end_offset, synced)


def _write_point(files: Files, log: OpenLog, blocks: IndexBlocks, point: TrustedPoint, producers: Snapshot) -> None:
    log.index_files.write(blocks)
    write_checkpoint(files, log.folder, dataclasses.replace(point, producers=encode_snapshot(producers)))
