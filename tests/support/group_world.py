"""A group in virtual time, with the log that it stores to and the network between it and its members.

The world holds what every reader of Kafka's protocol may rely on against what the group does, whatever members,
network and disk do. It judges by the answers that the group has given, not by what the group says of itself.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from walrusmq.broker.groups.effects import Reply, Store
from walrusmq.broker.groups.group import Group
from walrusmq.broker.groups.limits import GroupLimits
from walrusmq.broker.groups.member import GroupState
from walrusmq.protocol.errors import KafkaError, KafkaStorageError, NotCoordinator, UnknownMemberId
from walrusmq.protocol.messages.group_records import GroupMetadataValue
from walrusmq.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from walrusmq.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment, SyncGroupResponse

#: Far more than any number of members cause in the times that tests let pass.
MAX_EVENTS = 100_000

Answered = Callable[[Any], None]


@dataclass(slots=True, eq=False)
class Waiting:
    """A request that the group has to answer, once."""

    request: JoinGroupRequest | SyncGroupRequest
    answered: Answered
    is_done: bool = False


@dataclass(slots=True)
class Pending:
    """A record on its way to the disk."""

    group: Group
    store: Store
    due_ms: int


class GroupWorld:
    """Time, one group, its log. Members call ``join``, ``sync``, ``heartbeat``, ``leave`` and ``commit``."""

    def __init__(self, partitions: int, limits: GroupLimits) -> None:
        self.partitions = partitions
        self.now_ms = 1_000
        self.group: Group | None = None
        self.store_ms = 0
        """How long the disk takes."""
        self.failing_stores = 0
        """How many of the next stores fail."""
        self.commits = 0
        """Accepted ones."""
        self.restarts = 0
        self.stable_generations: set[int] = set()
        self.joined_last: dict[str, object] = {}
        """By instance id, who has asked for it last, without a member id."""
        self._limits = limits
        self._events: list[tuple[int, int, Callable[[], None]]] = []
        self._count = 0
        self._waiting: set[Waiting] = set()
        self._pending: deque[Pending] = deque()
        self._stored: GroupMetadataValue | None = None
        self._generation = 0
        self._roster: set[str] = set()
        """Who was told, or named in what was told, to be in the current generation."""
        self._fenced: set[str] = set()
        self._instances: dict[str, str] = {}
        self._owners: dict[tuple[int, int], str] = {}

    # --- time

    def at(self, ms: int, event: Callable[[], None]) -> None:
        """Have something happen; what is due at once still comes after what is happening now."""
        self._count += 1
        heapq.heappush(self._events, (max(ms, self.now_ms), self._count, event))

    def run(self, ms: int) -> None:
        """Let time go on. The group hears of each deadline, in between the events."""
        end_ms = self.now_ms + ms
        end_count = self._count + MAX_EVENTS
        while (due_ms := self._next_ms()) is not None and due_ms <= end_ms:
            self.now_ms = max(self.now_ms, due_ms)
            if self._events and self._events[0][0] <= self.now_ms:
                heapq.heappop(self._events)[2]()
            elif self._pending and self._pending[0].due_ms <= self.now_ms:
                self._end_store()
            elif self.group is not None:
                self.group.tick(self.now_ms)
                assert self.group.next_deadline_ms is None or self.group.next_deadline_ms > self.now_ms
            self._take()
            assert self._count < end_count, "members go round in circles"
        self.now_ms = end_ms

    def _next_ms(self) -> int | None:
        due = [self._events[0][0]] if self._events else []
        if self._pending:
            due.append(self._pending[0].due_ms)
        if self.group is not None and self.group.next_deadline_ms is not None:
            due.append(self.group.next_deadline_ms)
        return min(due, default=None)

    # --- what members ask

    def join(self, request: JoinGroupRequest, version: int, new_id: str, answered: Answered) -> None:
        """As the broker's handler does it."""
        waiting = self._wait(request, answered)
        if self.group is None:
            if request.member_id:
                self._answer(waiting, JoinGroupResponse(error_code=UnknownMemberId.code))
                return
            self.group = Group("g", self._limits, self.now_ms)
        self.group.join(request, new_id, version >= 4, "c", "/h", waiting, self.now_ms, version >= 9)
        self._take()

    def sync(self, request: SyncGroupRequest, answered: Answered) -> None:
        """As the broker's handler does it."""
        waiting = self._wait(request, answered)
        if self.group is None:
            self._answer(waiting, SyncGroupResponse(error_code=UnknownMemberId.code))
            return
        self.group.sync(request, waiting, self.now_ms)
        self._take()

    def heartbeat(self, member_id: str, instance_id: str | None, generation: int) -> int:
        """The error code."""

        def beat(group: Group) -> None:
            group.heartbeat(member_id, instance_id, generation, self.now_ms)

        return self._code(beat)

    def leave(self, member_id: str, instance_id: str | None) -> int:
        """The error code of the one member."""
        if self.group is None:
            return UnknownMemberId.code
        (code,) = self.group.leave([(member_id, instance_id)], self.now_ms)
        if not code:
            self._roster.discard(member_id or self._instances.pop(instance_id or "", ""))
        self._take()
        return code

    def commit(self, member_id: str, instance_id: str | None, generation: int) -> int:
        """The error code; a commit that may not be accepted, and is, is an AssertionError."""

        def check(group: Group) -> None:
            group.check_commit(member_id, instance_id, generation, self.now_ms)

        code = self._code(check)
        if not code:
            self.commits += 1
            assert member_id not in self._fenced, f"{member_id} is fenced, and has committed"
            assert generation == self._generation, f"{generation} isn't generation {self._generation}"
            assert member_id in self._roster, f"{member_id} isn't in generation {generation}"
        return code

    def late(self, member_id: str, instance_id: str | None, generation: int) -> None:
        """What a member has sent in a generation arrives; in a later one it has no effect."""
        answers: list[SyncGroupResponse] = []
        codes = [self.commit(member_id, instance_id, generation), self.heartbeat(member_id, instance_id, generation)]
        if generation < self._generation:
            request = SyncGroupRequest(
                group_id="g",
                generation_id=generation,
                member_id=member_id,
                group_instance_id=instance_id,
                assignments=[SyncGroupRequestAssignment(member_id=member_id, assignment=b"\0")],
            )
            self.sync(request, answers.append)
            assert all([*codes, *(answer.error_code for answer in answers)])
            assert len(answers) == 1

    def _code(self, ask: Callable[[Group], None]) -> int:
        code = 0
        if self.group is None:
            return UnknownMemberId.code
        try:
            ask(self.group)
        except KafkaError as error:
            code = int(error.code)
        self._take()
        return code

    # --- the coordinator's restart

    def restart(self, stores_that_last: int) -> None:
        """The coordinator goes, and comes back with what had reached its disk: the first of what was on its way."""
        self.restarts += 1
        for pending in list(self._pending)[:stores_that_last]:
            self._stored = pending.store.value
        self._pending.clear()
        waiting, self._waiting = self._waiting, set()
        for each in waiting:
            is_join = isinstance(each.request, JoinGroupRequest)
            each.is_done = True
            answer = JoinGroupResponse if is_join else SyncGroupResponse
            each.answered(answer(error_code=NotCoordinator.code))
        self.group = None
        self._generation = 0
        self._roster = set()
        if self._stored is not None:
            self.group = Group.restored("g", self._stored, self._limits, self.now_ms)
            self._generation = self._stored.generation
            self._roster = {member.member_id for member in self._stored.members}
            self._instances = {m.group_instance_id: m.member_id for m in self._stored.members if m.group_instance_id}
            self._fenced -= self._roster
        assert self._generation >= max(self.stable_generations, default=0), "a stable generation is forgotten"
        self._take()

    # --- what the group does

    def _wait(self, request: JoinGroupRequest | SyncGroupRequest, answered: Answered) -> Waiting:
        waiting = Waiting(request, answered)
        self._waiting.add(waiting)
        return waiting

    def _answer(self, waiting: Waiting, response: Any) -> None:
        assert not waiting.is_done, "answered twice"
        waiting.is_done = True
        self._waiting.discard(waiting)
        waiting.answered(response)

    def _take(self) -> None:
        group = self.group
        if group is None:
            return
        for effect in group.take_effects():
            if isinstance(effect, Store):
                self._pending.append(Pending(group, effect, self.now_ms + self.store_ms))
                self._see_generation(effect.generation)
                continue
            assert isinstance(effect, Reply)
            waiting = effect.to
            assert isinstance(waiting, Waiting)
            response = effect.response
            if isinstance(response, JoinGroupResponse) and not response.error_code:
                self._see_join(waiting.request, response, group.state)
            if isinstance(response, SyncGroupResponse) and not response.error_code:
                stored = self._stored
                assert stored is not None, "assignments are given out that aren't stored"
                assert stored.generation >= self._generation, "assignments are given out that aren't stored"
            self._answer(waiting, response)
        if group.state is GroupState.STABLE:
            self._see_stable(group)

    def _see_generation(self, generation: int) -> None:
        assert generation >= self._generation, f"generation {generation} after {self._generation}"
        if generation > self._generation:
            self._generation = generation
            self._roster = set()

    def _see_join(
        self, request: JoinGroupRequest | SyncGroupRequest, response: JoinGroupResponse, state: GroupState
    ) -> None:
        member_id, instance_id = response.member_id, request.group_instance_id
        self._see_generation(response.generation_id)
        self._roster.add(member_id)
        self._roster.update(member.member_id for member in response.members)
        if instance_id is not None:
            before = self._instances.get(instance_id, member_id)
            self._instances[instance_id] = member_id
            if before != member_id:
                self._fenced.add(before)
            if state is GroupState.STABLE:
                stored = self._stored.members if self._stored is not None else []
                assert member_id in {member.member_id for member in stored}, "a takeover is answered that isn't stored"

    def _see_stable(self, group: Group) -> None:
        self.stable_generations.add(group.generation)
        owned = [
            (partition, member.instance_id or member.member_id)
            for member in group.members.values()
            for partition in decode_assignment(member.assignment)
        ]
        assert sorted(p for p, _ in owned) == list(range(self.partitions)), f"{owned} in {group.generation}"
        for partition, name in owned:
            owner = self._owners.setdefault((group.generation, partition), name)
            assert owner == name, f"{partition} moved from {owner} to {name} in generation {group.generation}"

    def _end_store(self) -> None:
        pending = self._pending.popleft()
        error = None
        if self.failing_stores:
            self.failing_stores -= 1
            error = KafkaStorageError("the disk refuses")
        else:
            self._stored = pending.store.value
        pending.group.stored(pending.store.generation, error, self.now_ms)


def encode_assignment(partitions: list[int]) -> bytes:
    """Partitions as the simulated members' protocol has them."""
    return bytes(partitions)


def decode_assignment(assignment: bytes) -> list[int]:
    """The partitions of a member; none for the empty assignment."""
    return list(assignment)
