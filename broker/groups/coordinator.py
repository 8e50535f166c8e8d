"""The group coordinator: the shell round groups and their offsets that stores, answers, and keeps the time."""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections import Counter
from collections.abc import Coroutine, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from walrusmq.broker.commands import CreateTopic, DeleteTopic
from walrusmq.broker.deferred import Deferred
from walrusmq.broker.groups.alarms import Alarms
from walrusmq.broker.groups.effects import Reply, Store
from walrusmq.broker.groups.group import Group
from walrusmq.broker.groups.limits import GroupLimits
from walrusmq.broker.groups.loading import StoredGroups
from walrusmq.broker.groups.offset_records import group_record, offset_record
from walrusmq.broker.groups.offsets import CommittedOffset, Offsets, OffsetsByTopic, TopicPartition
from walrusmq.broker.groups.offsets_log import OffsetsLog
from walrusmq.broker.groups.removals import GROUPS_PER_TURN, Removals
from walrusmq.broker.topics import OFFSETS_TOPIC
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
from walrusmq.protocol.messages.group_records import GroupMetadataValue
from walrusmq.protocol.primitives import ZERO_UUID
from walrusmq.segments.acknowledgements import Acknowledged

if TYPE_CHECKING:
    from walrusmq.broker.image import TopicImage
    from walrusmq.broker.node import Node
    from walrusmq.segments.partition import Partition

logger = logging.getLogger("walrusmq.groups")

#: How long until a partition whose loading failed is read again.
LOAD_AGAIN_S = 5.0
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
        self._commits_under_way: Counter[str] = Counter()
        self._removals = Removals(self._log, self._groups, self._offsets, self._commits_under_way, self._forget)
        self._topic_id = b""
        """The ``__consumer_offsets`` that groups and offsets are of."""
        self._loading: set[int] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._alarms = Alarms(self.now_ms, self._ring)
        self._waiting: dict[Deferred, Any] = {}
        self._ahead_ms = 0

    # --- its life

    def start(self) -> None:
        """Begin to load what is stored, beside all other work."""
        self._ahead_ms = self._node.clock.now_ms() - int(self._node.clock.monotonic() * 1000)
        self._node.image.subscribe(self._follow)
        topic = self._log.topic
        if topic is not None:
            self._topic_id = topic.id
            stored = [
                partition
                for partition in self._node.partitions_by_id.get(topic.id, {}).values()
                if partition.log_start_offset < partition.high_watermark
            ]
            self._loading.update(partition.index for partition in stored)
            self._run(self._load_all(stored), f"loading {OFFSETS_TOPIC}")
        self._run(self._expire(), "expiring offsets")

    async def stop(self) -> None:
        """Answer who waits that the coordinator is going, and do nothing more."""
        self._node.image.unsubscribe(self._follow)
        self._alarms.stop()
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

    def group(self, group_id: str) -> Group | None:
        """The group if there is one; the empty id too, under which old clients keep offsets.

        Raises CoordinatorLoadInProgress, NotCoordinator.
        """
        self._check(group_id)
        return self._groups.get(group_id)

    def group_to_join(self, group_id: str, *, create: bool) -> Group | None:
        """The group, a new one with ``create``, else None if there is none. Raises InvalidGroupId, and as `group`."""
        if not group_id:
            raise InvalidGroupId("a group's id can't be empty")
        self._check(group_id)
        return self._made(group_id) if create else self._groups.get(group_id)

    def groups(self) -> Iterable[Group]:
        """All groups that are loaded. Raises CoordinatorLoadInProgress while some aren't."""
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
        if group.next_deadline_ms is not None:
            self._alarms.arm(group.group_id, group.next_deadline_ms)

    async def delete(self, group_id: str) -> None:
        """Forget a group and its offsets. Raises what `group` does, GroupIdNotFound, NonEmptyGroup."""
        group = self.group(group_id)
        if group is None:
            raise GroupIdNotFound(f"there is no group {group_id}")
        if not group.is_empty:
            raise NonEmptyGroup(f"group {group_id} has members")
        held = self._offsets.of(group_id)
        keys = [(topic, partition) for topic, partitions in held.items() for partition in partitions]
        await self._removals.remove(group_id, keys, with_group=True)

    # --- offsets

    def offsets(self, group_id: str) -> OffsetsByTopic:
        """What a group has committed; empty for one that doesn't exist. Raises as `group`."""
        self._check(group_id)
        return self._offsets.of(group_id)

    def commit(
        self,
        group_id: str,
        committed: Mapping[TopicPartition, CommittedOffset],
        done: Acknowledged,
    ) -> None:
        """Store offsets of a group that may commit them; ``done`` is told when they are acknowledged, or why not.

        A group that doesn't exist is made: one without members. Raises NotCoordinator.
        """
        partition = self._log.partition_of(group_id)
        self._commits_under_way[group_id] += 1

        def settled(error: KafkaError | None) -> None:
            self._commits_under_way[group_id] -= 1
            if not self._commits_under_way[group_id]:
                del self._commits_under_way[group_id]
            if error is not None:
                return
            self._made(group_id)
            for key, value in committed.items():
                if not self._is_stale(key[0], value):
                    self._offsets.set(group_id, key, value)

        def answered(error: KafkaError | None) -> None:
            done(InvalidCommitOffsetSize(str(error)) if error is not None and error.code in TOO_LARGE else error)

        records = [offset_record(group_id, key, value) for key, value in committed.items()]
        self._log.append(partition, records, settled, answered)

    async def delete_offsets(self, group_id: str, keys: Sequence[TopicPartition]) -> None:
        """Forget offsets of a group. Raises as `group`, and what storing that raises."""
        held = self.offsets(group_id)
        wanted = [(topic, partition) for topic, partition in keys if partition in held.get(topic, {})]
        await self._removals.remove(group_id, wanted, with_group=False)

    async def make_ready(self, group_id: str) -> None:
        """See to it that there is a coordinator for a group. Raises CoordinatorNotAvailable."""
        if self._log.topic is None:
            await self._log.make()
        try:
            self._log.partition_of(group_id)
        except NotCoordinator as error:
            raise CoordinatorNotAvailable(str(error)) from error

    async def expire_offsets(self) -> None:
        """Remove the offsets that have expired, and groups without members that have none left (KIP-211)."""
        retention_ms = self._node.settings.offsets_retention_minutes * MS_PER_MINUTE
        loaded = [group for group in self._groups.values() if self._is_loaded(group.group_id)]
        await self._removals.expire(loaded, retention_ms, self._node.clock.now_ms)

    # --- inside

    def _made(self, group_id: str) -> Group:
        group = self._groups.get(group_id)
        if group is None:
            group = self._groups[group_id] = Group(group_id, self._limits, self.now_ms())
        return group

    def _forget(self, group: Group) -> None:
        """The group is gone; whoever waits in it is told so."""
        del self._groups[group.group_id]
        self._alarms.forget(group.group_id)
        group.retire()
        self.act(group)

    def _check(self, group_id: str) -> None:
        if not self._is_loaded(group_id):
            raise CoordinatorLoadInProgress(f"the groups beside {group_id} are still being read")

    def _is_loaded(self, group_id: str) -> bool:
        return self._log.partition_of(group_id).index not in self._loading

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
        self._log.append(partition, [group_record(group.group_id, value)], lambda _: None, stored)

    def _ring(self, group_id: str, now_ms: int) -> None:
        group = self._groups.get(group_id)
        if group is not None:
            group.tick(now_ms)
            self.act(group)

    # --- topics that come and go

    def _follow(self, _: int, command: Any, result: Any) -> None:
        if isinstance(command, CreateTopic) and command.name == OFFSETS_TOPIC:
            self._topic_id = command.topic_id
        elif isinstance(command, DeleteTopic):
            if command.topic_id == self._topic_id:
                self._forget_all()
            else:
                self._forget_offsets_of(result)

    def _forget_all(self) -> None:
        """The ``__consumer_offsets`` that everything is of has been deleted."""
        self._topic_id = b""
        self._loading.clear()
        self._offsets.clear()
        for group in list(self._groups.values()):
            self._forget(group)

    def _forget_offsets_of(self, topic: TopicImage) -> None:
        stale = [
            (group_id, (topic.name, partition))
            for group_id in list(self._offsets)
            for partition in self._offsets.remove_stale(group_id, topic.name, self._is_stale)
        ]
        if stale:
            self._run(self._removals.remove_stale(stale), f"removing offsets of {topic.name}")

    def _is_stale(self, topic: str, committed: CommittedOffset) -> bool:
        """Whether an offset is of a topic that there isn't any more, whatever has its name now."""
        present = self._node.image.topics_by_name.get(topic)
        return present is None or committed.topic_id not in (present.id, ZERO_UUID)

    # --- loading

    async def _load_all(self, partitions: Sequence[Partition]) -> None:
        """One after the other: the first groups are there early, and the loop isn't filled with fifty of these."""
        for partition in partitions:
            if not await self._load(partition):
                self._run(self._load_later(partition), f"loading {partition} again")

    async def _load_later(self, partition: Partition) -> None:
        """Try again until it can be read."""
        while True:
            await asyncio.sleep(LOAD_AGAIN_S)
            if await self._load(partition):
                return

    async def _load(self, partition: Partition) -> bool:
        """Take over what a partition has; False if it can't be read now."""
        stored = StoredGroups()
        try:
            await stored.read(self._log, partition)
        except KafkaError as error:
            logger.error("%s can't be read, its groups are unavailable (%s): trying again", partition, error)
            return False
        stale: list[tuple[str, TopicPartition]] = []
        for count, group_id in enumerate(list({*stored.groups, *stored.offsets})):
            if count % GROUPS_PER_TURN == 0:
                await asyncio.sleep(0)
            if partition.topic_id != self._topic_id:
                return True  # deleted meanwhile, and everything with it
            stale += self._take_over(group_id, stored)
        self._loading.discard(partition.index)
        if stale:
            self._run(self._removals.remove_stale(stale), f"removing stale offsets from {partition}")
        return True

    def _take_over(self, group_id: str, stored: StoredGroups) -> list[tuple[str, TopicPartition]]:
        """Have a group as it was stored; returns its offsets of topics that have gone, which it doesn't get."""
        stale = []
        has_offsets = False
        for topic, partitions in stored.offsets.of(group_id).items():
            for partition, committed in partitions.items():
                if self._is_stale(topic, committed):
                    stale.append((group_id, (topic, partition)))
                else:
                    self._offsets.set(group_id, (topic, partition), committed)
                    has_offsets = True
        value = stored.groups.get(group_id)
        if value is not None:
            group = self._groups[group_id] = Group.restored(group_id, value, self._limits, self.now_ms())
            self.act(group)
        elif has_offsets:
            self._made(group_id)
        return stale

    # --- work beside all other work

    async def _expire(self) -> None:
        while True:
            await asyncio.sleep(self._node.settings.offsets_retention_check_interval_ms / 1000)
            try:
                await self.expire_offsets()
            except KafkaError as error:
                logger.info("expired offsets can't be removed now: %s", error)

    def _run(self, work: Coroutine[Any, Any, None], name: str) -> None:
        task = asyncio.get_running_loop().create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            logger.error("%s failed", task.get_name(), exc_info=error)
