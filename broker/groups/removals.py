"""Taking offsets and groups away: first records that say so, then, when these are acknowledged, what memory has."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

from walrusmq.broker.groups.group import Group
from walrusmq.broker.groups.member import GroupState
from walrusmq.broker.groups.offset_records import OffsetRecord, group_record, offset_removal
from walrusmq.broker.groups.offsets import Offsets, TopicPartition, expired
from walrusmq.broker.groups.subscriptions import CONSUMER_PROTOCOL_TYPE
from walrusmq.protocol.errors import KafkaError
from walrusmq.protocol.messages.group_records import OffsetCommitKey
from walrusmq.segments.acknowledgements import settles

if TYPE_CHECKING:
    from walrusmq.broker.groups.offsets_log import OffsetsLog
    from walrusmq.segments.partition import Partition

logger = logging.getLogger("walrusmq.groups")

#: Groups looked at before other work gets its turn.
GROUPS_PER_TURN = 100
#: What one batch of tombstones removes, so that it stays far below ``max.message.bytes``.
TOMBSTONES_PER_BATCH = 1000

Tombstones = Sequence[OffsetRecord]
Item = TypeVar("Item")


class Removals:
    """Works on the coordinator's own groups and offsets.

    ``commits_under_way`` counts by group what has been appended and isn't acknowledged: a record that removes an offset
    would come behind it. ``forget`` is told of each group that is gone.
    """

    def __init__(
        self,
        log: OffsetsLog,
        groups: Mapping[str, Group],
        offsets: Offsets,
        commits_under_way: Counter[str],
        forget: Callable[[Group], None],
    ) -> None:
        self._log = log
        self._groups = groups
        self._offsets = offsets
        self._commits_under_way = commits_under_way
        self._forget = forget

    async def remove(self, group_id: str, keys: Sequence[TopicPartition], *, with_group: bool) -> None:
        """Remove offsets of a group, and the group if it is still empty then. Raises what storing that raises."""
        records = [offset_removal(group_id, key) for key in keys]
        if with_group:
            records.append(group_record(group_id, None))
        partition = self._log.partition_of(group_id)
        for start in range(0, len(records), TOMBSTONES_PER_BATCH):
            error = await self._append(partition, records[start : start + TOMBSTONES_PER_BATCH])
            if error is not None:
                raise error

    async def expire(self, groups: Iterable[Group], retention_ms: int, now_ms: Callable[[], int]) -> None:
        """Remove the offsets that have expired, and groups without members that have none left (KIP-211).

        Raises NotCoordinator once there is no topic for them any more.
        """
        for turn in _turns(list(groups)):
            gone: list[tuple[str, OffsetRecord]] = []
            for group in turn:
                if self._groups.get(group.group_id) is group and not self._commits_under_way[group.group_id]:
                    gone += ((group.group_id, record) for record in self._expired(group, retention_ms, now_ms()))
            await self._remove_all(gone)

    async def remove_stale(self, stale: Sequence[tuple[str, TopicPartition]]) -> None:
        """Store that offsets are gone which memory hasn't any more: their topic has been deleted.

        One that has been committed anew since, for a topic of the same name, stays. Raises as `expire`.
        """
        for turn in _turns(stale):
            await self._remove_all(
                [
                    (group_id, offset_removal(group_id, key))
                    for group_id, key in turn
                    if self._is_unheard_of(group_id, key)
                ]
            )

    # --- inside

    def _is_unheard_of(self, group_id: str, key: TopicPartition) -> bool:
        topic, partition = key
        return not self._commits_under_way[group_id] and partition not in self._offsets.of(group_id).get(topic, {})

    def _expired(self, group: Group, retention_ms: int, now_ms: int) -> list[OffsetRecord]:
        group_id = group.group_id
        held = self._offsets.of(group_id)
        is_empty = group.state is GroupState.EMPTY
        subscribed: set[str] | None = set()
        if group.protocol_type is not None and not is_empty:
            # what members of other protocols read isn't known, nor what those will that are about to share anew
            is_known = group.protocol_type == CONSUMER_PROTOCOL_TYPE and group.state is GroupState.STABLE
            subscribed = group.subscribed_topics() if is_known else None
        if subscribed is None:
            return []
        keys = expired(
            held,
            empty_since_ms=group.empty_since_ms if is_empty and group.protocol_type is not None else None,
            subscribed=subscribed,
            retention_ms=retention_ms,
            now_ms=now_ms,
        )
        records = [offset_removal(group_id, key) for key in keys]
        if group.is_empty and len(keys) == sum(map(len, held.values())):
            records.append(group_record(group_id, None))
        return records

    async def _remove_all(self, gone: Iterable[tuple[str, OffsetRecord]]) -> None:
        """Append at once, in batches of each partition, and wait for all. Logs what isn't stored.

        Raises NotCoordinator, with nothing appended.
        """
        by_partition: dict[Partition, list[OffsetRecord]] = defaultdict(list)
        for group_id, record in gone:
            by_partition[self._log.partition_of(group_id)].append(record)
        outcomes = [
            self._append(partition, records[start : start + TOMBSTONES_PER_BATCH])
            for partition, records in by_partition.items()
            for start in range(0, len(records), TOMBSTONES_PER_BATCH)
        ]
        for outcome in outcomes:
            error = await outcome
            if error is not None:
                logger.warning("offsets that are to go couldn't be removed now: %s", error)
        await asyncio.sleep(0)

    def _append(self, partition: Partition, records: Tombstones) -> asyncio.Future[KafkaError | None]:
        outcome: asyncio.Future[KafkaError | None] = asyncio.get_running_loop().create_future()

        def settled(error: KafkaError | None) -> None:
            if error is None:
                for record in records:
                    self._apply(record)

        self._log.append(partition, records, settled, settles(outcome))
        return outcome

    def _apply(self, record: OffsetRecord) -> None:
        key = record.key
        if isinstance(key, OffsetCommitKey):
            self._offsets.remove(key.group, (key.topic, key.partition))
            return
        group = self._groups.get(key.group)
        if group is not None and group.is_empty and key.group not in self._offsets:
            self._forget(group)


def _turns(items: Sequence[Item]) -> Iterator[Sequence[Item]]:
    for start in range(0, len(items), GROUPS_PER_TURN):
        yield items[start : start + GROUPS_PER_TURN]
