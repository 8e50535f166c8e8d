"""The monitor loop: seals open segments that are full or old, drops those that retention is done with, and sees
whether a disk that refused the metadata log takes it again."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from typing import TYPE_CHECKING

from walrusmq.broker.commands import MoveLogStart, SetFeatureLevel
from walrusmq.broker.tasks import end_task
from walrusmq.broker.topic_configs import retention
from walrusmq.protocol.errors import KafkaError

if TYPE_CHECKING:
    from walrusmq.broker.node import Node
    from walrusmq.segments.partition import Partition

logger = logging.getLogger("walrusmq.monitor")

#: Partitions looked at before other work gets its turn: about a millisecond.
PARTITIONS_PER_TURN = 500


class Monitor:
    """Looks at every partition each ``monitor.check.ms``, at retention each ``log.retention.check.interval.ms``."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to look."""
        self._task = asyncio.create_task(self._run(), name="monitor")

    async def stop(self) -> None:
        """Look no more."""
        await end_task(self._task)

    async def _run(self) -> None:
        settings = self._node.settings
        last_retention_s = self._node.clock.monotonic()
        while True:
            await asyncio.sleep(settings.monitor_check_ms / 1000)
            try:
                await self._check_rollovers()
                if self._node.is_metadata_refused:
                    await self._try_metadata_log()
                if self._node.clock.monotonic() - last_retention_s >= settings.log_retention_check_interval_ms / 1000:
                    last_retention_s = self._node.clock.monotonic()
                    await self._check_retention()
            except Exception:
                logger.exception("a round of the monitor failed; the next one is in %d ms", settings.monitor_check_ms)

    async def _check_rollovers(self) -> None:
        now_ms = self._node.clock.now_ms()
        for count, partition in enumerate(self._node.led, 1):
            if partition.is_open:
                reason = partition.rollover_due(now_ms)
                if reason is not None:
                    self._node.rollovers.begin(partition, reason)
            if count % PARTITIONS_PER_TURN == 0:
                await asyncio.sleep(0)

    async def _try_metadata_log(self) -> None:
        """Find out whether the metadata log can be written again, by a command that changes nothing.

        Without it a node that isn't ready might get no request that would show that it could be.
        """
        with contextlib.suppress(KafkaError):  # it can't, and the log and /readyz say so already
            await self._node.propose(SetFeatureLevel(level=self._node.image.feature_level))

    async def _check_retention(self) -> None:
        now_ms = self._node.clock.now_ms()
        for count, partition in enumerate(self._node.led, 1):
            start = self._expired_before(partition, now_ms)
            if start is not None:
                await self._move_log_start(partition, start)
            if count % PARTITIONS_PER_TURN == 0:
                await asyncio.sleep(0)

    def _expired_before(self, partition: Partition, now_ms: int) -> int | None:
        topic = self._node.image.topics.get(partition.topic_id)
        if topic is None:
            return None
        return partition.expired_before(now_ms, *retention(topic.configs, self._node.settings))

    async def _move_log_start(self, partition: Partition, offset: int) -> None:
        try:
            await self._node.propose(
                MoveLogStart(topic_id=partition.topic_id, partition=partition.index, log_start_offset=offset)
            )
        except KafkaError as error:
            logger.warning("%s: retention couldn't move the log's start to %d: %s", partition, offset, error)
