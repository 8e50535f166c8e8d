"""Rounds of compaction over one partition: which are due, and the steps of one, on a thread beside all other work.

What a round writes counts once the metadata log has recorded it, segment by segment, so that it may end at any moment.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from walrusmq.broker.commands import CompactSegment
from walrusmq.broker.image import StaleCompaction
from walrusmq.protocol.errors import UnknownTopicId
from walrusmq.segments.cleaned_offset import read_cleaned_offset, write_cleaned_offset
from walrusmq.segments.cleaning import Cleaning, Pace, first_timestamp
from walrusmq.segments.cleaning_plan import CleaningPlan, plan_cleaning
from walrusmq.segments.compaction import DEFAULT_MAX_KEYS, CompactionRules, NewestOffsets
from walrusmq.segments.facts import SealedSegment, place_of
from walrusmq.segments.log_config import FOREVER

if TYPE_CHECKING:
    from walrusmq.broker.node import Node
    from walrusmq.broker.topic_configs import Compaction
    from walrusmq.segments.partition import Partition

logger = logging.getLogger("walrusmq.cleaner")

T = TypeVar("T")


class DueRound(NamedTuple):
    """A partition that is to be compacted, and how."""

    partition: Partition
    rules: Compaction
    plan: CleaningPlan
    cleaned_offset: int


class _SegmentsGone(Exception):
    """Retention or a deletion was faster: the round ends, and the next one begins with what is there then."""


class CompactionRounds:
    """Each call may raise KafkaError, OSError, DamagedLog, and CleaningStopped once `stop` was called."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="walrus-cleaner")
        self._pace = Pace()
        self._cleaned_offsets: dict[Partition, int] = {}
        self._generations: dict[tuple[Partition, int], int] = {}

    async def stop(self) -> None:
        """Leave a round that is under way where it is, and end the thread."""
        self._pace.stop()
        await self._run_aside(lambda: None)
        self._executor.shutdown()

    def forget_closed(self) -> None:
        """Partitions that are gone aren't remembered."""
        self._cleaned_offsets = {each: offset for each, offset in self._cleaned_offsets.items() if not each.is_gone}
        self._generations = {key: last for key, last in self._generations.items() if not key[0].is_gone}

    async def due(self, partition: Partition, rules: Compaction) -> DueRound | None:
        """What is to be done for a partition, if anything is by now."""
        if not partition.chain.sealed:
            return None
        folder, now_ms = partition.log.folder, self._node.clock.now_ms()
        cleaned_offset = self._cleaned_offsets.get(partition)
        if cleaned_offset is None:
            cleaned_offset = await self._run_aside(partial(read_cleaned_offset, self._node.files, folder))
            self._cleaned_offsets[partition] = cleaned_offset
        plan = plan_cleaning(partition.chain.sealed, cleaned_offset, now_ms, rules.min_lag_ms)
        if not plan.dirty:
            return None
        if plan.dirty_share <= rules.min_dirty_share:
            if rules.max_lag_ms == FOREVER:
                return None
            work = partial(first_timestamp, self._node.files, folder, plan.dirty[0])
            if await self._run_aside(work) > now_ms - rules.max_lag_ms:
                return None
        return DueRound(partition, rules, plan, cleaned_offset)

    async def run(self, due: DueRound) -> None:
        """Compact a partition as far as the memory for its keys goes."""
        partition = due.partition
        before = list(partition.chain.sealed)
        began_s = self._node.clock.monotonic()
        newest = NewestOffsets(DEFAULT_MAX_KEYS)
        cleaning = self._cleaning(partition, due.rules)
        try:
            await self._read(
                partition, due.plan.dirty, partial(cleaning.note, due.plan.dirty, due.cleaned_offset, newest)
            )
            segments = list(partition.chain.sealed)
            for facts in segments:
                if facts.first_offset < newest.end_offset:
                    # without the last one, readers would find nothing between it and an open segment that is empty
                    await self._compact(partition, cleaning, facts, newest, may_leave=facts is not segments[-1])
        except _SegmentsGone:
            return
        self._cleaned_offsets[partition] = cleaned_offset = max(newest.end_offset, due.cleaned_offset)
        await self._run_aside(partial(write_cleaned_offset, self._node.files, partition.log.folder, cleaned_offset))
        self._node.metrics.compactions += 1
        logger.info(
            "compacted %s up to offset %d in %.1f s: %d bytes of sealed segments became %d",
            partition,
            cleaned_offset,
            self._node.clock.monotonic() - began_s,
            _bytes_before(before, cleaned_offset),
            _bytes_before(partition.chain.sealed, cleaned_offset),
        )

    def _cleaning(self, partition: Partition, rules: Compaction) -> Cleaning:
        partition.load()
        now_ms = self._node.clock.now_ms()
        producer_ends = partition.producers.last_offsets(now_ms)
        return Cleaning(
            self._node.files,
            partition.log.folder,
            CompactionRules(now_ms, rules.delete_retention_ms, producer_ends),
            self._pace,
        )

    async def _compact(
        self,
        partition: Partition,
        cleaning: Cleaning,
        facts: SealedSegment,
        newest: NewestOffsets,
        *,
        may_leave: bool,
    ) -> None:
        """Compact one segment. Raises _SegmentsGone."""
        # a generation whose recording is uncertain may still come to count: its number isn't used again
        key = partition, facts.id
        generation = self._generations[key] = max(self._generations.get(key, 0), facts.generation) + 1
        work = partial(cleaning.compact, facts, newest, generation, may_leave=may_leave)
        compacted = await self._read(partition, [facts], work)
        if compacted is None:
            return
        try:
            await self._node.propose(
                CompactSegment(
                    topic_id=partition.topic_id,
                    partition=partition.index,
                    segment_id=facts.id,
                    generation=generation,
                    size_bytes=compacted.size_bytes,
                    max_timestamp=compacted.max_timestamp,
                    max_timestamp_offset=compacted.max_timestamp_offset,
                )
            )
        except (StaleCompaction, UnknownTopicId) as error:
            await self._run_aside(partial(partition.log.folder.remove_log, facts.id, generation))
            raise _SegmentsGone from error

    async def _read(self, partition: Partition, segments: Sequence[SealedSegment], work: Callable[[], T]) -> T:
        """Do what reads these segments. Raises _SegmentsGone if it fails because one of them isn't there any more."""
        try:
            return await self._run_aside(work)
        except FileNotFoundError as error:
            if all(place_of(partition.chain.sealed, facts.id) is not None for facts in segments):
                raise
            raise _SegmentsGone from error

    async def _run_aside(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._executor, work)


def _bytes_before(sealed: Sequence[SealedSegment], offset: int) -> int:
    return sum(facts.size_bytes for facts in sealed if facts.first_offset < offset)
