"""The group coordinator: the shell round groups and their offsets that stores, answers, and keeps the time."""

from __future__ import annotations

import asyncio
import heapq
import logging
import uuid
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from walrusmq.broker.deferred import Deferred
from walrusmq.broker.groups.effects import Reply, Store
from walrusmq.broker.groups.group import Group
from walrusmq.broker.groups.limits import GroupLimits
from walrusmq.broker.groups.offset_records import OffsetRecord, UnknownRecord, decode_record
from walrusmq.broker.groups.offsets import CommittedOffset, Offsets, TopicPartition, expired
from walrusmq.broker.groups.offsets_log import OffsetsLog
from walrusmq.broker.groups.subscriptions import CONSUMER_PROTOCOL_TYPE
from walrusmq.protocol.errors import (
    CoordinatorLoadInProgress,
    CoordinatorNotAvailable,
    ErrorCode,
    GroupIdNotFound,
    InvalidCommitOffsetSize,
    InvalidGroupId,
    KafkaError,
    NonEmptyGroup,
    NotCoordinator,
)
from walrusmq.protocol.messages.group_records import (
    GroupMetadataKey,
    GroupMetadataValue,
    OffsetCommitKey,
    OffsetCommitValue,
)
from walrusmq.segments.acknowledgements import Acknowledged, settles

if TYPE_CHECKING:
    from walrusmq.broker.node import Node
    from walrusmq.segments.partition import Partition

logger = logging.getLogger("walrusmq.groups")

#: How long until a partition whose loading failed is read again.
LOAD_AGAIN_S = 5.0
#: Groups looked at for expired offsets before other work gets its turn.
GROUPS_PER_TURN = 100
#: Offsets that one batch of tombstones removes, so that it stays far below ``max.message.bytes``.
TOMBSTONES_PER_BATCH = 1000
MS_PER_MINUTE = 60_000
TOO_LARGE = (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE, ErrorCode.INVALID_COMMIT_OFFSET_SIZE)


class GroupCoordinator:
    """One per node: every group whose partition of ``__consumer_offsets`` the node leads. Used on the event loop."""

    def __init__(self, node: Node) -> None:
        settings = node.settings
        self._node = node
        self._log = OffsetsLog(node)
        self._limits = GroupLimits(
            min_session_ms=settings.group_min_session_timeout_ms,
            max_session_ms=settings.group_max_session_timeout_ms,
            initial_delay_ms=settings.group_initial_rebalance_delay_ms,
            max_size=settings.group_max_size,
        )
        self._groups: dict[str, Group] = {}
        self._offsets = Offsets()
        self._topic_id = b""
        """The ``__consumer_offsets`` that groups and offsets are of."""
        self._loading: set[int] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._alarms: list[tuple[int, str]] = []
        self._armed: dict[str, int] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._timer_ms = 0
        self._waiting: dict[Deferred, Any] = {}
        self._ahead_ms = 0

    # --- its life

    def start(self) -> None:
        """Begin to load what is stored, beside all other work."""
        self._ahead_ms = self._node.clock.now_ms() - int(self._node.clock.monotonic() * 1000)
        topic = self._log.topic
        if topic is not None:
            self._topic_id = topic.id
            for index, partition in list(self._node.partitions_by_id.get(topic.id, {}).items()):
                if partition.log_start_offset < partition.high_watermark:
                    self._loading.add(index)
                    self._run(self._load(partition), f"loading {partition}")
        self._run(self._expire(), "expiring offsets")

    async def stop(self) -> None:
        """Answer who waits that the coordinator is going, and do nothing more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        for deferred, answer in list(self._waiting.items()):
            deferred.resolve(answer)
        self._waiting.clear()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def now_ms(self) -> int:
        """The time for groups: as the wall has it at the start, and steady from then on."""
        return int(self._node.clock.monotonic() * 1000) + self._ahead_ms

    # --- groups

    def group_for(self, group_id: str, *, create: bool) -> Group | None:
        """The group, a new one with ``create``, else None if there is none.

        Raises InvalidGroupId, CoordinatorLoadInProgress, NotCoordinator.
        """
        if not group_id:
            raise InvalidGroupId("a group's id can't be empty")
        self._check(group_id)
        return self._made(group_id) if create else self._groups.get(group_id)

    def groups(self) -> Iterable[Group]:
        """All groups that are loaded. Raises CoordinatorLoadInProgress while some aren't."""
        self._follow_topic()
        if self._loading:
            raise CoordinatorLoadInProgress("groups are still being read")
        return list(self._groups.values())

    def new_member_id(self, client_id: str | None) -> str:
        """An id for a member that has none yet: readable, as in Kafka, and never given twice."""
        return f"{client_id or ''}-{uuid.uuid4()}"

    def waiting(self, answer_at_stop: Any) -> Deferred:
        """A Deferred to give a group as ``to``; a stop resolves it with ``answer_at_stop``."""
        deferred = Deferred()
        self._waiting[deferred] = answer_at_stop
        return deferred

    def act(self, group: Group) -> None:
        """Do what a group has decided: answer, store, and see to it that it is told the time."""
        for effect in group.take_effects():
            match effect:
                case Reply(to, response):
                    assert isinstance(to, Deferred), "a group answers through what its handler gave it"
                    self._waiting.pop(to, None)
                    to.resolve(response)
                case Store(generation, value):
                    self._store(group, generation, value)
        self._arm(group)

    async def delete(self, group_id: str) -> None:
        """Forget a group and its offsets. Raises what `group_for` does, GroupIdNotFound, NonEmptyGroup."""
        self._check(group_id)
        group = self._groups.get(group_id)
        if group is None:
            raise GroupIdNotFound(f"there is no group {group_id}")
        if not group.is_empty:
            raise NonEmptyGroup(f"group {group_id} has members")
        await self._forget(group, list(self._offsets.of(group_id)), with_group=True)

    # --- offsets

    def offsets(self, group_id: str) -> Mapping[TopicPartition, CommittedOffset]:
        """What a group has committed; empty for one that doesn't exist. Raises as `group_for`, but takes any id."""
        self._check(group_id)
        return self._offsets.of(group_id)

    def group_of_offsets(self, group_id: str) -> Group | None:
        """The group if there is one; the empty id too, under which old clients keep offsets. Raises as `group_for`."""
        self._check(group_id)
        return self._groups.get(group_id)

    def commit(
        self,
        group_id: str,
        committed: Mapping[TopicPartition, CommittedOffset],
        done: Acknowledged,
    ) -> None:
        """Store offsets of a group that may commit them; ``done`` is told when they are acknowledged, or why not.

        A group that doesn't exist is made: one without members.
        """
        partition = self._log.partition_of(group_id)
        if group_id not in self._groups:
            self._made(group_id)

        def stored(error: KafkaError | None) -> None:
            if error is None:
                self._made(group_id)
                for key, value in committed.items():
                    self._offsets.set(group_id, key, value)
            elif error.code in TOO_LARGE:
                error = InvalidCommitOffsetSize(str(error))
            done(error)

        records = [_offset_record(group_id, key, value) for key, value in committed.items()]
        self._log.append(partition, records, stored)

    async def delete_offsets(self, group_id: str, keys: Sequence[TopicPartition]) -> None:
        """Forget offsets of a group. Raises what storing that raises."""
        held = self.offsets(group_id)
        group = self._groups[group_id]
        await self._forget(group, [key for key in keys if key in held], with_group=False)

    async def make_ready(self, group_id: str) -> None:
        """See to it that there is a coordinator for a group. Raises CoordinatorNotAvailable."""
        if self._log.topic is None:
            await self._log.make()
        try:
            self._log.partition_of(group_id)
        except NotCoordinator as error:
            raise CoordinatorNotAvailable(str(error)) from error

    # --- inside

    def _made(self, group_id: str) -> Group:
        group = self._groups.get(group_id)
        if group is None:
            group = self._groups[group_id] = Group(group_id, self._limits, self.now_ms())
        return group

    def _check(self, group_id: str) -> None:
        self._follow_topic()
        partition = self._log.partition_of(group_id)
        if partition.index in self._loading:
            raise CoordinatorLoadInProgress(f"{partition} is still being read")

    def _follow_topic(self) -> None:
        """What was of a ``__consumer_offsets`` that has been deleted is gone with it."""
        topic = self._log.topic
        topic_id = b"" if topic is None else topic.id
        if topic_id != self._topic_id:
            self._topic_id = topic_id
            self._groups.clear()
            self._armed.clear()
            self._offsets = Offsets()
            self._loading.clear()

    def _store(self, group: Group, generation: int, value: GroupMetadataValue) -> None:
        def stored(error: KafkaError | None) -> None:
            if self._groups.get(group.group_id) is group:
                group.stored(generation, error, self.now_ms())
                self.act(group)

        try:
            partition = self._log.partition_of(group.group_id)
        except NotCoordinator as error:
            stored(error)
            return
        self._log.append(partition, [OffsetRecord(GroupMetadataKey(group=group.group_id), value)], stored)

    async def _forget(self, group: Group, keys: Sequence[TopicPartition], *, with_group: bool) -> None:
        group_id = group.group_id
        partition = self._log.partition_of(group_id)
        records = [OffsetRecord(OffsetCommitKey(group=group_id, topic=t, partition=p), None) for t, p in keys]
        if with_group:
            records.append(OffsetRecord(GroupMetadataKey(group=group_id), None))
        for start in range(0, len(records), TOMBSTONES_PER_BATCH):
            piece = records[start : start + TOMBSTONES_PER_BATCH]
            outcome: asyncio.Future[KafkaError | None] = asyncio.get_running_loop().create_future()
            self._log.append(partition, piece, settles(outcome))
            error = await outcome
            if error is not None:
                raise error
            for record in piece:
                self._apply_removal(record, group)

    def _apply_removal(self, record: OffsetRecord, group: Group) -> None:
        key = record.key
        if isinstance(key, OffsetCommitKey):
            self._offsets.remove(key.group, (key.topic, key.partition))
        elif self._groups.get(key.group) is group and group.is_empty and key.group not in self._offsets:
            del self._groups[key.group]
            self._armed.pop(key.group, None)

    # --- loading

    async def _load(self, partition: Partition) -> None:
        topic_id = partition.topic_id
        while True:
            try:
                values, with_offsets = await self._read(partition)
                break
            except KafkaError as error:
                logger.error("%s can't be read, its groups are unavailable (%s): trying again", partition, error)
                await asyncio.sleep(LOAD_AGAIN_S)
        if self._topic_id != topic_id:
            return
        now_ms = self.now_ms()
        for group_id, value in values.items():
            self._groups[group_id] = group = Group.restored(group_id, value, self._limits, now_ms)
            self.act(group)
        for count, group_id in enumerate(with_offsets, 1):
            if group_id in self._offsets:
                self._made(group_id)
            if count % GROUPS_PER_TURN == 0:
                await asyncio.sleep(0)
        self._loading.discard(partition.index)

    async def _read(self, partition: Partition) -> tuple[dict[str, GroupMetadataValue], set[str]]:
        """Take over the offsets of a partition; returns the last value of each of its groups, and who has offsets."""
        groups: dict[str, GroupMetadataValue] = {}
        with_offsets: set[str] = set()
        async for batch in self._log.read(partition):
            for record in batch.records:
                try:
                    self._take(decode_record(record), groups, with_offsets)
                except UnknownRecord as error:
                    logger.warning("%s has at offset %d what isn't known here: %s", partition, record.offset, error)
        return groups, with_offsets

    def _take(self, record: OffsetRecord, groups: dict[str, GroupMetadataValue], with_offsets: set[str]) -> None:
        key, value = record
        if isinstance(key, OffsetCommitKey):
            place = key.topic, key.partition
            if isinstance(value, OffsetCommitValue):
                self._offsets.set(key.group, place, _committed(value))
                with_offsets.add(key.group)
            else:
                self._offsets.remove(key.group, place)
        elif isinstance(value, GroupMetadataValue):
            groups[key.group] = value
        else:
            groups.pop(key.group, None)

    # --- time

    def _arm(self, group: Group) -> None:
        """Have the group told the time at its next deadline. One that has moved back shows when the old one comes."""
        deadline_ms = group.next_deadline_ms
        if deadline_ms is None:
            return
        armed_ms = self._armed.get(group.group_id)
        if armed_ms is not None and armed_ms <= deadline_ms:
            return
        self._armed[group.group_id] = deadline_ms
        heapq.heappush(self._alarms, (deadline_ms, group.group_id))
        self._set_timer()

    def _set_timer(self) -> None:
        if not self._alarms or self._node.is_stopping:
            return
        first_ms = self._alarms[0][0]
        if self._timer is not None:
            if self._timer_ms <= first_ms:
                return
            self._timer.cancel()
        self._timer_ms = first_ms
        delay_s = max(first_ms - self.now_ms(), 0) / 1000
        self._timer = asyncio.get_running_loop().call_later(delay_s, self._ring)

    def _ring(self) -> None:
        self._timer = None
        now_ms = self.now_ms()
        try:
            while self._alarms and self._alarms[0][0] <= now_ms:
                deadline_ms, group_id = heapq.heappop(self._alarms)
                if self._armed.get(group_id) != deadline_ms:
                    continue
                del self._armed[group_id]
                group = self._groups.get(group_id)
                if group is not None:
                    group.tick(now_ms)
                    self.act(group)
        finally:
            self._set_timer()

    # --- expiry

    async def _expire(self) -> None:
        while True:
            await asyncio.sleep(self._node.settings.offsets_retention_check_interval_ms / 1000)
            try:
                await self.expire_offsets()
            except KafkaError as error:
                logger.warning("expired offsets couldn't be removed now: %s", error)

    async def expire_offsets(self) -> None:
        """Remove the offsets that have expired, and groups without members that have none left (KIP-211)."""
        self._follow_topic()
        retention_ms = self._node.settings.offsets_retention_minutes * MS_PER_MINUTE
        for count, group in enumerate(list(self._groups.values()), 1):
            group_id = group.group_id
            held = self._offsets.of(group_id)
            now_ms = self.now_ms()
            keys = expired(
                held.items(),
                empty_since_ms=group.empty_since_ms if group.is_empty and group.protocol_type else None,
                subscribed=group.subscribed_topics() if not group.is_empty else set(),
                retention_ms=retention_ms,
                now_ms=now_ms,
            )
            # a group that isn't a consumers' has no topics: what its members commit stays while it has some
            if not group.is_empty and group.protocol_type != CONSUMER_PROTOCOL_TYPE:
                keys = []
            if group.is_empty and len(keys) == len(held):
                if self._is_loaded(group_id):
                    await self._forget(group, keys, with_group=True)
            elif keys:
                await self._forget(group, keys, with_group=False)
            if count % GROUPS_PER_TURN == 0:
                await asyncio.sleep(0)

    def _is_loaded(self, group_id: str) -> bool:
        return self._log.partition_of(group_id).index not in self._loading

    def _run(self, work: Any, name: str) -> None:
        task: asyncio.Task[None] = asyncio.get_running_loop().create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            logger.error("%s failed", task.get_name(), exc_info=error)


def _offset_record(group_id: str, key: TopicPartition, committed: CommittedOffset) -> OffsetRecord:
    topic, partition = key
    return OffsetRecord(
        OffsetCommitKey(group=group_id, topic=topic, partition=partition),
        OffsetCommitValue(
            offset=committed.offset,
            leader_epoch=committed.leader_epoch,
            metadata=committed.metadata,
            commit_timestamp=committed.commit_ms,
            expire_timestamp=committed.expire_ms,
        ),
    )


def _committed(value: OffsetCommitValue) -> CommittedOffset:
    return CommittedOffset(
        value.offset, value.leader_epoch, value.metadata, value.commit_timestamp, value.expire_timestamp
    )
