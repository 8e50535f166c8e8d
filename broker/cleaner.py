"""The cleaner: has the partitions that this node leads compacted, the dirtiest first, one at a time."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Iterator
from typing import TYPE_CHECKING, TypeVar

from walrusmq.broker.tasks import end_task
from walrusmq.broker.topic_configs import Compaction, compaction
from walrusmq.protocol.errors import KafkaError
from walrusmq.protocol.records.scan import DamagedLog

if TYPE_CHECKING:
    from walrusmq.broker.compaction_rounds import CompactionRounds
    from walrusmq.broker.node import Node
    from walrusmq.segments.partition import Partition

logger = logging.getLogger("walrusmq.cleaner")

T = TypeVar("T")

#: How often it is looked for work at the most, whatever ``log.cleaner.backoff.ms`` says.
SHORTEST_BACKOFF_S = 0.01
#: How long a partition that couldn't be compacted is left alone.
FAILED_AGAIN_S = 60.0


class Cleaner:
    """Looks for something to compact each ``log.cleaner.backoff.ms``."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._task: asyncio.Task[None] | None = None
        self._rounds: CompactionRounds | None = None
        self._failed_until_s: dict[Partition, float] = {}

    def start(self) -> None:
        """Begin to look."""
        self._task = asyncio.create_task(self._run(), name="cleaner")

    async def stop(self) -> None:
        """Leave a round that is under way where it is, and do nothing more."""
        await end_task(self._task)
        if self._rounds is not None:
            await self._rounds.stop()

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(max(self._node.settings.log_cleaner_backoff_ms / 1000, SHORTEST_BACKOFF_S))
            self._failed_until_s = {each: until_s for each, until_s in self._failed_until_s.items() if not each.is_gone}
            wanted = list(self._compacted())
            if wanted:
                await self._compact(wanted)

    def _compacted(self) -> Iterator[tuple[Partition, Compaction]]:
        """The partitions whose topics ask for compaction, but for those that have failed lately."""
        node = self._node
        now_s = node.clock.monotonic()
        for partition in node.led:
            if partition.config.needs_keys and now_s >= self._failed_until_s.get(partition, 0.0):
                rules = compaction(node.image.topics[partition.topic_id].configs, node.settings)
                assert rules is not None, "only a compacted log needs keys"
                yield partition, rules

    async def _compact(self, wanted: list[tuple[Partition, Compaction]]) -> None:
        if self._rounds is None:
            from walrusmq.broker.compaction_rounds import CompactionRounds

            self._rounds = CompactionRounds(self._node)
        rounds = self._rounds
        rounds.forget_closed()
        due = [
            each
            for partition, rules in wanted
            if (each := await self._tried(partition, rounds.due(partition, rules))) is not None
        ]
        for each in sorted(due, key=lambda each: each.plan.dirty_share, reverse=True):
            await self._tried(each.partition, rounds.run(each))

    async def _tried(self, partition: Partition, work: Awaitable[T]) -> T | None:
        """What ``work`` gives; None where it fails: then the partition is left alone for a while."""
        try:
            return await work
        except Exception as error:
            if not partition.is_gone:
                self._node.metrics.compaction_failures += 1
                self._failed_until_s[partition] = self._node.clock.monotonic() + FAILED_AGAIN_S
                logger.error(
                    "%s can't be compacted, the next try is in %d s: %s",
                    partition,
                    FAILED_AGAIN_S,
                    error,
                    exc_info=None if isinstance(error, KafkaError | OSError | DamagedLog) else error,
                )
            return None
