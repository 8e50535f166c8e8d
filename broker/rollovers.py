"""Rollovers: seal the open segment at an exact end, have the metadata log record it, open the next (design §2)."""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from typing import TYPE_CHECKING

from walrusmq.broker.commands import RolloverReason, RolloverSegment
from walrusmq.protocol.errors import KafkaError
from walrusmq.segments.partition import SegmentGone

if TYPE_CHECKING:
    from walrusmq.broker.node import Node
    from walrusmq.segments.facts import SealedSegment
    from walrusmq.segments.partition import Partition

logger = logging.getLogger("walrusmq.rollovers")

#: How long to wait before a proposal whose outcome is unknown is made again.
RETRY_S = 0.25


class Rollovers:
    """Runs at most one rollover per segment. Once a segment has stopped for it, it goes on until it is sealed."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._running: dict[tuple[Partition, int], asyncio.Task[None]] = {}
        self._is_finishing = False

    def begin(self, partition: Partition, reason: str) -> asyncio.Task[None]:
        """Seal the partition's open segment, unless that is under way; ``reason`` is one of RolloverReason's."""
        key = partition, partition.log.facts.id
        task = self._running.get(key)
        if task is None:
            partition.stop()
            task = asyncio.get_running_loop().create_task(self._roll(partition, reason), name=f"rollover {partition}")
            self._running[key] = task
            task.add_done_callback(partial(self._ended, key))
        return task

    def _ended(self, key: tuple[Partition, int], task: asyncio.Task[None]) -> None:
        del self._running[key]
        error = None if task.cancelled() else task.exception()
        if error is not None:
            partition, segment_id = key
            logger.error("the rollover of %s:%d failed, nothing can be appended", partition, segment_id, exc_info=error)
            self._node.held_appends.refuse(partition, f"the rollover of {partition} failed: {error}")

    async def finish(self) -> None:
        """Wait for what is under way; what can't be recorded now is left to the next start."""
        self._is_finishing = True
        if self._running:
            await asyncio.wait(list(self._running.values()))

    async def _roll(self, partition: Partition, reason: str) -> None:
        try:
            sealed = await partition.seal()
        except SegmentGone:
            return
        if partition.log.is_rewound:  # consumers may have seen what a failed sync lost: they must be able to tell
            reason = "recovery"
        command = self._command(partition, sealed, reason)
        has_failed = False
        while self._is_wanted(partition, sealed.id):
            try:
                await self._node.propose(command)
            except KafkaError as error:
                if not self._is_wanted(partition, sealed.id):
                    return
                if not has_failed:
                    has_failed = True
                    self._tell(partition, sealed, error)
                if self._is_finishing:
                    return
                await asyncio.sleep(RETRY_S)
            else:
                self._node.metrics.count_rollover(reason)

    def _tell(self, partition: Partition, sealed: SealedSegment, error: KafkaError) -> None:
        """A rollover can't be recorded now: producers aren't kept waiting for it."""
        logger.warning(
            "segment %s:%d is sealed at offset %d, and that can't be recorded, so nothing can be appended (%s): "
            "trying again each %d ms",
            partition,
            sealed.id,
            sealed.end_offset,
            error,
            RETRY_S * 1000,
        )
        self._node.held_appends.refuse(partition, f"{partition} can't open its next segment: {error}")

    def _is_wanted(self, partition: Partition, segment_id: int) -> bool:
        topic = self._node.image.topics.get(partition.topic_id)
        return topic is not None and topic.partitions[partition.index].open.id == segment_id

    def _command(self, partition: Partition, sealed: SealedSegment, reason: str) -> RolloverSegment:
        node = self._node
        return RolloverSegment(
            topic_id=partition.topic_id,
            partition=partition.index,
            segment_id=sealed.id,
            leader=node.node_id,
            leader_incarnation=node.incarnation,
            first_offset=sealed.first_offset,
            end_offset=sealed.end_offset,
            size_bytes=sealed.size_bytes,
            max_timestamp=sealed.max_timestamp,
            max_timestamp_offset=sealed.max_timestamp_offset,
            members=list(sealed.members),
            reason=int(RolloverReason[reason.upper()]),
            next_leader=node.node_id,
            next_members=[node.node_id],
        )
