"""The clean stop of a store: all is synced, the exact ends are written down, and nothing is left open."""

from __future__ import annotations

import dataclasses
import logging
from functools import partial
from typing import TYPE_CHECKING

from walrusmq.segments.checkpoint import Points, TrustedPoint, leave_marker
from walrusmq.segments.files import Files
from walrusmq.segments.index_files import IndexBlocks, IndexFiles
from walrusmq.segments.producers import encode_snapshot
from walrusmq.segments.sealing import trusted_point

if TYPE_CHECKING:
    from walrusmq.segments.partition import Partition
    from walrusmq.segments.store import SegmentStore

logger = logging.getLogger("walrusmq.segments")

_Work = list[tuple[IndexFiles, IndexBlocks]]


async def close_partitions(store: SegmentStore) -> None:
    """Stop, sync and leave all partitions of a store, with a clean marker for those that could be synced."""
    for partition in store:
        partition.stop()
        log = partition.log
        if not log.is_rewound and log.synced_offset < log.end_offset:
            store.commit.request(log, partition.when_synced)
    await store.commit.stop()
    points: Points = {}
    blocks: _Work = []
    for partition in store:
        point = _final_point(partition)
        if point is not None:
            points[partition.topic_id, partition.index] = point
            log = partition.log
            if partition.unloaded is None and log.index_files.are_behind(log.position):
                blocks.append((log.index_files, log.index_files.take(log.indexes, log.position, log.end_offset)))
    await store.background.run(partial(_write, store.files, store.folder, blocks, points))
    for partition in store:
        partition.leave()
    await store.background.stop()
    store.handles.close()


def _final_point(partition: Partition) -> TrustedPoint | None:
    """Where the open segment ends; None where that isn't certain, or where there is nothing yet."""
    if partition.unloaded is not None:
        return partition.unloaded
    log = partition.log
    if log.is_rewound or log.synced_offset != log.end_offset or not log.folder.is_durable:
        return None
    try:
        if log.has_leftover:
            log.cut_leftover()
    except OSError as error:
        logger.warning("%s couldn't be cut at its end: %s", log.file.path, error)
        return None
    now_ms = partition.store.clock.now_ms()
    return dataclasses.replace(trusted_point(log), producers=encode_snapshot(partition.producers.snapshot(now_ms)))


def _write(files: Files, folder: str, blocks: _Work, points: Points) -> None:
    try:
        for index_files, block in blocks:
            index_files.write(block)
        leave_marker(files, folder, points)
    except OSError as error:
        logger.warning("the exact ends couldn't be written, the next start will look for them: %s", error)
