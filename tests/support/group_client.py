"""A member of a group as real clients are: it joins, syncs, heartbeats, commits, and reacts to errors as they do.

It commits beside each heartbeat, and before it gives its partitions up for a rebalance.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from enum import Enum, auto
from typing import Any

from support.group_world import GroupWorld, decode_assignment, encode_assignment

from walrusmq.protocol.errors import ErrorCode
from walrusmq.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from walrusmq.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment, SyncGroupResponse

SESSION_MS = 10_000
REBALANCE_MS = 30_000
HEARTBEAT_MS = 3_000
BACKOFF_MS = 100
LATENCY_MS = 2

_member_ids = itertools.count()


class Phase(Enum):
    """Where a member believes to be."""

    JOINING = auto()
    SYNCING = auto()
    STABLE = auto()
    GONE = auto()
    """It has crashed, left, or been told that it can't be a member."""


class GroupClient:
    """One process with a consumer. Everything that it does and hears takes time, and waits while it is paused."""

    def __init__(self, world: GroupWorld, instance_id: str | None, version: int, metadata: bytes) -> None:
        self.world = world
        self.instance_id = instance_id
        self.version = version
        self.metadata = metadata
        self.poll_ms = 0
        """How long it takes until it rejoins once it has heard of a rebalance."""
        self.member_id = ""
        self.generation = -1
        self.phase = Phase.JOINING
        self.owned: list[int] = []
        self.identities: list[tuple[str, str | None, int]] = []
        """What it could have committed as, in each generation that it has been in."""
        self.fenced_by_nobody = False
        self._restarts_before = 0
        self._paused_until_ms = 0
        self._life = 0
        """Counts joins: what belongs to an earlier one is ignored."""
        self._is_rejoining = False

    # --- what a test has it do

    def start(self) -> None:
        """Join for the first time."""
        self._join()

    def pause(self, ms: int) -> None:
        """Stand still, as in a long garbage collection: afterwards it goes on with what it took for true."""
        self._paused_until_ms = max(self._paused_until_ms, self.world.now_ms + ms)

    def crash(self) -> None:
        """End without a word."""
        self.phase = Phase.GONE

    def leave(self) -> None:
        """End with a LeaveGroup, as dynamic members do when they close."""
        member_id, instance_id = self.member_id, self.instance_id
        self._send(lambda: self.world.leave(member_id, instance_id))
        self.phase = Phase.GONE

    def commit(self) -> None:
        """Commit as the member of the generation that it takes for the present one."""
        self._do(self._commit)

    def subscribe(self, metadata: bytes) -> None:
        """Want something else from the group, and so rejoin."""
        self.metadata = metadata
        if self.phase is Phase.STABLE:
            self._rejoin_soon()

    def _commit(self) -> None:
        if self.phase is Phase.STABLE:
            identity = self.member_id, self.instance_id, self.generation
            self._ask(lambda: self.world.commit(*identity), self._heard)

    # --- joining

    def _join(self) -> None:
        self.phase = Phase.JOINING
        self._is_rejoining = False
        self._life += 1
        self.owned = []
        request = JoinGroupRequest(
            group_id="g",
            session_timeout_ms=SESSION_MS,
            rebalance_timeout_ms=REBALANCE_MS,
            member_id=self.member_id,
            group_instance_id=self.instance_id,
            protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol(name="range", metadata=self.metadata)],
        )
        answered = self._answers(self._joined)

        def send() -> None:
            if self.instance_id is not None and not request.member_id:
                self.world.joined_last[self.instance_id] = self
                self._restarts_before = self.world.restarts
            self.world.join(request, self.version, f"m{next(_member_ids)}", answered)

        self._send(send)

    def _joined(self, answer: JoinGroupResponse) -> None:
        if answer.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id = answer.member_id
            self._join()
            return
        if answer.error_code:
            self._heard(answer.error_code)
            return
        self.member_id, self.generation = answer.member_id, answer.generation_id
        self.identities.append((self.member_id, self.instance_id, self.generation))
        self.phase = Phase.SYNCING
        self._heartbeat_later()
        assignments: list[SyncGroupRequestAssignment] = []
        if answer.leader == self.member_id and not answer.skip_assignment:
            ids = sorted(member.member_id for member in answer.members)
            assert ids, "a leader must be told of the members"
            assignments = [
                SyncGroupRequestAssignment(
                    member_id=member_id,
                    assignment=encode_assignment(list(range(position, self.world.partitions, len(ids)))),
                )
                for position, member_id in enumerate(ids)
            ]
        request = SyncGroupRequest(
            group_id="g",
            generation_id=self.generation,
            member_id=self.member_id,
            group_instance_id=self.instance_id,
            protocol_type="consumer",
            protocol_name="range",
            assignments=assignments,
        )
        answered = self._answers(self._synced)
        self._send(lambda: self.world.sync(request, answered))

    def _synced(self, answer: SyncGroupResponse) -> None:
        if answer.error_code:
            self._heard(answer.error_code)
            return
        self.phase = Phase.STABLE
        self.owned = decode_assignment(answer.assignment)

    # --- living

    def _heartbeat_later(self) -> None:
        life = self._life
        self._later(HEARTBEAT_MS, lambda: self._heartbeat(life))

    def _heartbeat(self, life: int) -> None:
        if life != self._life:
            return
        identity = self.member_id, self.instance_id, self.generation
        self._ask(lambda: self.world.heartbeat(*identity), self._heard)
        self._commit()
        self._heartbeat_later()

    def _heard(self, code: int) -> None:
        """React to the error code of any answer, as Java's and C's clients do."""
        if code == ErrorCode.NONE:
            return
        if code == ErrorCode.REBALANCE_IN_PROGRESS and self.phase is Phase.STABLE:
            self._rejoin_soon()
        elif code in (ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.ILLEGAL_GENERATION):
            if not (code == ErrorCode.REBALANCE_IN_PROGRESS and self.phase is Phase.SYNCING):
                self.generation = -1
            self._join()
        elif code == ErrorCode.UNKNOWN_MEMBER_ID:
            self.member_id, self.generation = "", -1
            self._join()
        elif code == ErrorCode.FENCED_INSTANCE_ID:
            assert self.instance_id is not None
            is_latest = self.world.joined_last[self.instance_id] is self
            # what a coordinator hasn't stored when it goes isn't known to the next: it fences then, as Kafka's does
            self.fenced_by_nobody = is_latest and self.world.restarts == self._restarts_before
            self.phase = Phase.GONE
        elif code == ErrorCode.GROUP_MAX_SIZE_REACHED:
            self.phase = Phase.GONE
        else:
            assert code in (
                ErrorCode.NOT_COORDINATOR,
                ErrorCode.COORDINATOR_NOT_AVAILABLE,
                ErrorCode.KAFKA_STORAGE_ERROR,
            )
            life = self._life
            self._later(BACKOFF_MS, lambda: self._join() if life == self._life else None)

    def _rejoin_soon(self) -> None:
        if self._is_rejoining:
            return
        self._is_rejoining = True
        life = self._life
        self._later(self.poll_ms, lambda: self._commit_and_join() if life == self._life else None)

    def _commit_and_join(self) -> None:
        self._commit()
        self._join()

    # --- its network and its time

    def _send(self, request: Callable[[], object]) -> None:
        """What has been sent arrives, even if the process ends meanwhile."""
        self.world.at(self.world.now_ms + LATENCY_MS, lambda: request())

    def _ask(self, request: Callable[[], int], answered: Callable[[int], None]) -> None:
        answers = self._answers(answered)
        self._send(lambda: answers(request()))

    def _answers(self, handle: Callable[[Any], None]) -> Callable[[Any], None]:
        """Handles an answer after its way, unless the member has joined anew since it asked."""
        life = self._life

        def answered(answer: Any) -> None:
            self._later(LATENCY_MS, lambda: handle(answer) if life == self._life else None)

        return answered

    def _later(self, ms: int, do: Callable[[], None]) -> None:
        self.world.at(self.world.now_ms + ms, lambda: self._do(do))

    def _do(self, do: Callable[[], None]) -> None:
        if self.phase is Phase.GONE:
            return
        if self._paused_until_ms > self.world.now_ms:
            self.world.at(self._paused_until_ms, lambda: self._do(do))
            return
        do()
