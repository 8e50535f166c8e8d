"""The life of a group with the classic protocol: who is in it, and in which generation. Decides, never does.

Messages and the time go in; answers and state to store come out of ``take_effects``. The rules are those of Kafka's
coordinator, with static members (KIP-345), member ids that are handed out first (KIP-394) and checks of protocol
type and name (KIP-559).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from walrusmq.broker.groups.answers import Answers
from walrusmq.broker.groups.effects import Effect, Store
from walrusmq.broker.groups.group_messages import (
    described,
    joined,
    joining_member,
    stored_member,
    stored_value,
)
from walrusmq.broker.groups.limits import MAX_PENDING_MEMBERS, NEW_MEMBER_PATIENCE_MS, GroupLimits
from walrusmq.broker.groups.member import GroupState, Member
from walrusmq.broker.groups.roster import Roster
from walrusmq.broker.groups.subscriptions import CONSUMER_PROTOCOL_TYPE, topics_of
from walrusmq.protocol.errors import (
    CoordinatorNotAvailable,
    FencedInstanceId,
    GroupMaxSizeReached,
    IllegalGeneration,
    InconsistentGroupProtocol,
    InvalidSessionTimeout,
    KafkaError,
    MemberIdRequired,
    NotCoordinator,
    RebalanceInProgress,
    UnknownMemberId,
)
from walrusmq.protocol.messages.describe_groups import DescribedGroup
from walrusmq.protocol.messages.group_records import GroupMetadataValue
from walrusmq.protocol.messages.join_group import JoinGroupRequest
from walrusmq.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse

_WITH_ASSIGNMENTS = (GroupState.COMPLETING_REBALANCE, GroupState.STABLE)


@dataclass(slots=True)
class _Takeover:
    """A static member's return that is being stored, and what to go back to if that fails."""

    generation: int
    member_id: str
    leader_before: str | None
    old: Member
    can_skip_assignment: bool


class Group:
    """One group. Every deadline is a time in ms on the clock that the caller's ``now_ms`` comes from."""

    def __init__(self, group_id: str, limits: GroupLimits, now_ms: int) -> None:
        self.group_id = group_id
        self.state = GroupState.EMPTY
        self.protocol_type: str | None = None
        self.generation = 0
        self.protocol: str | None = None
        self.leader: str | None = None
        self.members = Roster()
        self.empty_since_ms: int | None = now_ms
        """Since when the group has been without members, None if that isn't known; means nothing while it has some."""
        self.next_deadline_ms: int | None = None
        """When ``tick`` has something to do at the earliest."""
        self._limits = limits
        self._answers = Answers()
        self._pending: dict[str, int] = {}
        self._missing_syncs: set[str] = set()
        self._assignments: dict[str, bytes] | None = None
        self._takeovers: list[_Takeover] = []
        self._join_deadline_ms: int | None = None
        self._sync_deadline_ms: int | None = None
        self._is_initial = False
        self._initial_delay_left_ms = 0
        self._joined_during_delay = False
        self._has_lost_members = False
        """Whether the generation's assignments speak of members that aren't there any more."""

    @classmethod
    def restored(cls, group_id: str, value: GroupMetadataValue, limits: GroupLimits, now_ms: int) -> Group:
        """A group as it was stored; its members' sessions start anew."""
        group = cls(group_id, limits, now_ms)
        group.generation = value.generation
        group.protocol_type = value.protocol_type or None
        has_timestamp = value.current_state_timestamp >= 0
        group.empty_since_ms = value.current_state_timestamp if has_timestamp else None
        for stored in value.members:
            member = stored_member(stored, value.protocol)
            group._add(member)
            group._set_deadline(member, now_ms + member.session_timeout_ms)
        if group.members:
            group.state = GroupState.STABLE
            group.protocol = value.protocol
            group.leader = value.leader
            if len(group.members) > limits.max_size:
                group._prepare_rebalance(now_ms)
        return group

    @property
    def is_empty(self) -> bool:
        """Whether nobody is in the group or about to be."""
        return not self.members and not self._pending

    def take_effects(self) -> list[Effect]:
        """What is to be done since the last call, in this order."""
        return self._answers.take_effects()

    def join(
        self,
        request: JoinGroupRequest,
        member_id_if_new: str,
        needs_member_id: bool,
        client_id: str,
        client_host: str,
        to: object,
        now_ms: int,
        can_skip_assignment: bool = False,
    ) -> None:
        """Take a member in, or have it rejoin. The answer, also a refusal, comes as a Reply.

        ``needs_member_id`` is true from JoinGroup 4 on, ``can_skip_assignment`` from 9 on (KIP-814).
        """
        try:
            self._check_join(request, now_ms)
            joining = joining_member(request, client_id, client_host)
            if request.member_id:
                joining.member_id = request.member_id
                self._join_as_known(joining, to, now_ms)
            elif request.group_instance_id is not None:
                joining.member_id = member_id_if_new
                self._join_as_static(joining, to, now_ms, can_skip_assignment)
            elif needs_member_id:
                self._hand_out_id(member_id_if_new, joining.session_timeout_ms, to, now_ms)
            else:
                joining.member_id = member_id_if_new
                self._join_as_new(joining, to, now_ms)
        except KafkaError as error:
            self._answers.refuse_join(to, request.member_id, error)

    def sync(self, request: SyncGroupRequest, to: object, now_ms: int) -> None:
        """Take the leader's assignments, or a member's wish for its own. The answer comes as a Reply."""
        try:
            self._check_sync(request)
        except KafkaError as error:
            self._answers.refuse_sync(to, error)
            return
        member_id = request.member_id
        self._missing_syncs.discard(member_id)
        if self.state is GroupState.STABLE:
            self._touch(self.members[member_id], now_ms)
            self._reply_sync(to, self.members[member_id])
            return
        self._answers.await_sync(member_id, to)
        if member_id == self.leader and self._assignments is None:
            given = {assignment.member_id: assignment.assignment for assignment in request.assignments}
            self._assignments = {member: given.get(member, b"") for member in self.members}
            self._store(now_ms, self._assignments)

    def heartbeat(self, member_id: str, instance_id: str | None, generation: int, now_ms: int) -> None:
        """Prolong a member's session. Raises what the member must react to, a rebalance among it."""
        member = self._member_in_generation(member_id, instance_id, generation)
        self._touch(member, now_ms)
        if self.state is GroupState.PREPARING_REBALANCE:
            raise RebalanceInProgress(f"group {self.group_id} is rebalancing")

    def leave(self, identities: list[tuple[str, str | None]], now_ms: int) -> list[int]:
        """Let members go, each by its member id, its instance id or both; returns an error code for each."""
        self._check_alive()
        codes = []
        for member_id, instance_id in identities:
            try:
                self._leave_one(member_id, instance_id)
                codes.append(0)
            except KafkaError as error:
                codes.append(int(error.code))
        if 0 in codes:
            self._go_on(now_ms)
        return codes

    def check_commit(self, member_id: str, instance_id: str | None, generation: int, now_ms: int) -> None:
        """Raise unless this member may commit offsets now; one that may has its session prolonged."""
        self._check_alive()
        if generation < 0 and self.state is GroupState.EMPTY:
            return
        if generation < 0 and not member_id and instance_id is None:
            raise UnknownMemberId(f"group {self.group_id} has members: only they can commit")
        member = self._member_in_generation(member_id, instance_id, generation)
        if self.state is GroupState.COMPLETING_REBALANCE:
            raise RebalanceInProgress(f"group {self.group_id} waits for its leader's assignments")
        self._touch(member, now_ms)

    def stored(self, generation: int, error: KafkaError | None, now_ms: int) -> None:
        """Hear how the oldest unfinished Store of a generation ended; what waited for it goes on."""
        if self._assignments is not None and generation == self.generation:
            self._end_sync(error, now_ms)
            return
        for takeover in self._takeovers:
            if takeover.generation == generation:
                self._takeovers.remove(takeover)
                self._end_takeover(takeover, error, now_ms)
                return

    def tick(self, now_ms: int) -> None:
        """Do what is due."""
        if self.next_deadline_ms is None or now_ms < self.next_deadline_ms or self.state is GroupState.DEAD:
            return
        self._end_sessions(now_ms)
        if self._sync_deadline_ms is not None and now_ms >= self._sync_deadline_ms:
            self._end_patience_for_syncs(now_ms)
        if self._join_deadline_ms is not None and now_ms >= self._join_deadline_ms:
            self._end_patience_for_joins(now_ms)
        deadlines = [*self._pending.values(), *(m.deadline_ms for m in self.members.values() if self._has_session(m))]
        deadlines += [due for due in (self._join_deadline_ms, self._sync_deadline_ms) if due is not None]
        self.next_deadline_ms = min(deadlines, default=None)

    def retire(self) -> None:
        """End the group: it is deleted, or its node no longer coordinates it. What waits is told so."""
        error = NotCoordinator(f"group {self.group_id} is gone")
        for member_id in self.members:
            self._answers.fail(member_id, error)
        self.members.clear()
        self._pending.clear()
        self._missing_syncs.clear()
        self._takeovers.clear()
        self._assignments = self.next_deadline_ms = self._join_deadline_ms = self._sync_deadline_ms = None
        self.leader = None
        self.state = GroupState.DEAD

    def describe(self) -> DescribedGroup:
        """The group as DescribeGroups shows it: what members can do is told once they are stable."""
        return described(self)

    def subscribed_topics(self) -> set[str] | None:
        """The topics that the members of a consumer group want; None where they can't be read."""
        if self.protocol_type != CONSUMER_PROTOCOL_TYPE:
            return None
        topics: set[str] = set()
        for member in self.members.values():
            wanted = topics_of(member.metadata(self.protocol or member.protocols[0][0]))
            if wanted is None:
                return None
            topics.update(wanted)
        return topics

    def metadata_value(self, now_ms: int, assignments: Mapping[str, bytes] | None = None) -> GroupMetadataValue:
        """The group as it is stored, with these assignments in place of those that its members have."""
        return stored_value(self, now_ms, assignments)

    # Joining

    def _check_join(self, request: JoinGroupRequest, now_ms: int) -> None:
        limits = self._limits
        self._check_alive()
        if not limits.min_session_ms <= request.session_timeout_ms <= limits.max_session_ms:
            raise InvalidSessionTimeout(
                f"a session timeout of {request.session_timeout_ms} ms isn't within "
                f"{limits.min_session_ms} to {limits.max_session_ms} ms"
            )
        if not self._has_room(request.member_id):
            member = self.members.get(request.member_id)
            if member is not None:
                self._remove(member.member_id, GroupMaxSizeReached(f"group {self.group_id} is full"))
                self._go_on(now_ms)
            raise GroupMaxSizeReached(f"group {self.group_id} has {limits.max_size} members, and no room for more")
        if not self._can_do(request):
            raise InconsistentGroupProtocol(f"no protocol of the member is one that all of {self.group_id} can do")

    def _has_room(self, member_id: str) -> bool:
        if self.state is GroupState.EMPTY:
            return True
        if self.state is GroupState.PREPARING_REBALANCE:
            return member_id in self._answers.joins or len(self._answers.joins) < self._limits.max_size
        return member_id in self.members or len(self.members) < self._limits.max_size

    def _can_do(self, request: JoinGroupRequest) -> bool:
        if not self.members:
            return bool(request.protocol_type and request.protocols)
        if request.protocol_type != self.protocol_type:
            return False
        return self.members.have_any_of(protocol.name for protocol in request.protocols)

    def _hand_out_id(self, member_id: str, session_timeout_ms: int, to: object, now_ms: int) -> None:
        if len(self._pending) >= MAX_PENDING_MEMBERS:
            raise GroupMaxSizeReached(f"{MAX_PENDING_MEMBERS} members of group {self.group_id} are about to join")
        self._pending[member_id] = now_ms + session_timeout_ms
        self._arm(self._pending[member_id])
        self._answers.refuse_join(to, member_id, MemberIdRequired("join again with this member id"))

    def _join_as_known(self, joining: Member, to: object, now_ms: int) -> None:
        member_id = joining.member_id
        if member_id in self._pending and joining.instance_id is None:
            self._join_as_new(joining, to, now_ms)
            return
        member = self._member(member_id, joining.instance_id)
        is_unchanged = member.protocols == joining.protocols
        if is_unchanged and (
            self.state is GroupState.COMPLETING_REBALANCE
            or (self.state is GroupState.STABLE and member_id != self.leader)
        ):
            # the answer got lost, or the member only asks where the group is
            self._touch(member, now_ms)
            self._reply_join(to, member, member.member_id == self.leader)
            return
        self.members.update(member, joining)
        self._answers.await_join(member_id, to)
        self._rebalance_or_go_on(now_ms)

    def _join_as_new(self, joining: Member, to: object, now_ms: int) -> None:
        self._pending.pop(joining.member_id, None)
        if self._is_initial:
            self._joined_during_delay = True
        if not self.members:
            self.protocol_type = joining.protocol_type
        self._add(joining)
        self._set_deadline(joining, now_ms + NEW_MEMBER_PATIENCE_MS)
        self._answers.await_join(joining.member_id, to)
        self._rebalance_or_go_on(now_ms)

    def _join_as_static(self, joining: Member, to: object, now_ms: int, can_skip_assignment: bool) -> None:
        assert joining.instance_id is not None
        old_id = self.members.id_of(joining.instance_id)
        if old_id is None:
            self._join_as_new(joining, to, now_ms)
            return
        leader_before = self.leader
        old = self._take_over(old_id, joining)
        self._touch(joining, now_ms)
        self._answers.await_join(joining.member_id, to)
        if self.state is GroupState.STABLE and self.members.chosen_protocol(self.leader) == self.protocol:
            self._takeovers.append(
                _Takeover(self.generation, joining.member_id, leader_before, old, can_skip_assignment)
            )
            self._store(now_ms, None)
            return
        self._rebalance_or_go_on(now_ms)

    def _take_over(self, old_id: str, new: Member) -> Member:
        """Put a static member's new life in the place of the old one, which is fenced; returns the old."""
        assert new.instance_id is not None
        self._answers.fail(old_id, FencedInstanceId(f"a newer member has the instance id {new.instance_id}"))
        old = self.members[old_id]
        was_leader = self.leader == old_id
        new.assignment = old.assignment
        new.is_new = False
        self.members.replace(old_id, new)
        if was_leader:
            self.leader = new.member_id
        if old_id in self._missing_syncs:
            self._missing_syncs.remove(old_id)
            self._missing_syncs.add(new.member_id)
        return old

    def _end_takeover(self, takeover: _Takeover, error: KafkaError | None, now_ms: int) -> None:
        member = self.members.get(takeover.member_id)
        if member is None or self.state is not GroupState.STABLE or self.generation != takeover.generation:
            return  # a rebalance has begun meanwhile, and the member waits for its end like all the others
        if error is not None:
            self._answers.fail_join(takeover.member_id, error)
            self._take_over(takeover.member_id, takeover.old)
            self._touch(takeover.old, now_ms)
            return
        to = self._answers.joins.pop(takeover.member_id, None)
        if to is None:
            return
        self._touch(member, now_ms)
        if takeover.can_skip_assignment:
            is_leader = member.member_id == self.leader
            self._reply_join(to, member, is_leader, skip_assignment=is_leader)
        else:
            # told of the leader's former id, a member doesn't take itself for one that must assign
            self._reply_join(to, member, False, leader=takeover.leader_before)

    # Rebalancing

    def _rebalance_or_go_on(self, now_ms: int) -> None:
        if self.state is GroupState.PREPARING_REBALANCE:
            self._complete_join_if_all_joined(now_ms)
        else:
            self._prepare_rebalance(now_ms)

    def _go_on(self, now_ms: int) -> None:
        """Members have gone: the others may have to share anew, or have waited for those."""
        if self.state in _WITH_ASSIGNMENTS and self._has_lost_members:
            self._prepare_rebalance(now_ms)
        elif self.state is GroupState.PREPARING_REBALANCE:
            self._complete_join_if_all_joined(now_ms)

    def _prepare_rebalance(self, now_ms: int) -> None:
        self._fail_all_syncs(RebalanceInProgress(f"group {self.group_id} is rebalancing"), now_ms)
        if self.state is GroupState.COMPLETING_REBALANCE:
            for member in self.members.values():
                member.assignment = b""
        self._assignments = None
        self._missing_syncs.clear()
        self._sync_deadline_ms = None
        was_empty = self.state is GroupState.EMPTY
        self.state = GroupState.PREPARING_REBALANCE
        timeout_ms = self.members.rebalance_timeout_ms()
        if was_empty and self._limits.initial_delay_ms > 0:
            delay_ms = self._limits.initial_delay_ms
            self._is_initial = True
            self._joined_during_delay = False
            self._initial_delay_left_ms = max(timeout_ms - delay_ms, 0)
            self._set_join_deadline(now_ms + delay_ms)
        elif was_empty:
            self._complete_join(now_ms)
        else:
            self._set_join_deadline(now_ms + timeout_ms)
            self._complete_join_if_all_joined(now_ms)

    def _complete_join_if_all_joined(self, now_ms: int) -> None:
        if not self._is_initial and not self._pending and len(self._answers.joins) == len(self.members):
            self._complete_join(now_ms)

    def _end_patience_for_joins(self, now_ms: int) -> None:
        if self._is_initial and self._joined_during_delay and self._initial_delay_left_ms > 0:
            delay_ms = min(self._limits.initial_delay_ms, self._initial_delay_left_ms)
            self._initial_delay_left_ms -= delay_ms
            self._joined_during_delay = False
            self._set_join_deadline(now_ms + delay_ms)
        else:
            self._complete_join(now_ms)

    def _complete_join(self, now_ms: int) -> None:
        """Begin the next generation with those who have joined, and static members that may come back."""
        self._is_initial = False
        late = [m for m in self.members.values() if m.member_id not in self._answers.joins and m.instance_id is None]
        for member in late:
            self._remove(member.member_id, UnknownMemberId("the member didn't rejoin in time"))
        if self.members and not self._answers.joins:
            # only static members, none of them here: their sessions decide
            self._set_join_deadline(now_ms + self.members.rebalance_timeout_ms())
            return
        if self.members and self.leader not in self._answers.joins:
            self.leader = next(iter(self._answers.joins))
        self._begin_generation(now_ms)

    def _begin_generation(self, now_ms: int) -> None:
        self._join_deadline_ms = None
        self._has_lost_members = False
        self.generation += 1
        if not self.members:
            self.protocol = None
            self.state = GroupState.EMPTY
            self.empty_since_ms = now_ms
            self._store(now_ms, None)
            return
        self.protocol = self.members.chosen_protocol(self.leader)
        self.state = GroupState.COMPLETING_REBALANCE
        self._missing_syncs = set(self.members)
        self._sync_deadline_ms = now_ms + self.members.rebalance_timeout_ms()
        self._arm(self._sync_deadline_ms)
        for member in self.members.values():
            to = self._answers.joins.pop(member.member_id, None)
            member.is_new = False
            self._touch(member, now_ms)
            if to is not None:
                self._reply_join(to, member, member.member_id == self.leader)

    def _end_sync(self, error: KafkaError | None, now_ms: int) -> None:
        assignments, self._assignments = self._assignments, None
        assert assignments is not None
        assert self.state is GroupState.COMPLETING_REBALANCE
        if error is not None:
            self._fail_all_syncs(error, now_ms)
            self._prepare_rebalance(now_ms)
            return
        self.state = GroupState.STABLE
        for member in self.members.values():
            member.assignment = assignments.get(member.member_id, b"")
            to = self._answers.syncs.pop(member.member_id, None)
            if to is not None:
                self._touch(member, now_ms)
                self._reply_sync(to, member)

    def _end_patience_for_syncs(self, now_ms: int) -> None:
        self._sync_deadline_ms = None
        for member_id in list(self._missing_syncs):
            self._remove(member_id, UnknownMemberId("the member didn't sync in time"))
        self._go_on(now_ms)

    # Members

    def _check_alive(self) -> None:
        if self.state is GroupState.DEAD:
            raise CoordinatorNotAvailable(f"group {self.group_id} is gone")

    def _member(self, member_id: str, instance_id: str | None) -> Member:
        self._check_alive()
        if instance_id is not None:
            current = self.members.id_of(instance_id)
            if current is None:
                raise UnknownMemberId(f"group {self.group_id} has no member with instance id {instance_id}")
            if current != member_id:
                raise FencedInstanceId(f"a newer member of {self.group_id} has the instance id {instance_id}")
        member = self.members.get(member_id)
        if member is None:
            raise UnknownMemberId(f"group {self.group_id} has no member {member_id}")
        return member

    def _member_in_generation(self, member_id: str, instance_id: str | None, generation: int) -> Member:
        member = self._member(member_id, instance_id)
        if generation != self.generation:
            raise IllegalGeneration(f"generation {generation} isn't the current one, {self.generation}")
        return member

    def _check_sync(self, request: SyncGroupRequest) -> None:
        self._member_in_generation(request.member_id, request.group_instance_id, request.generation_id)
        if request.protocol_type is not None and request.protocol_type != self.protocol_type:
            raise InconsistentGroupProtocol(f"the group's protocol type is {self.protocol_type}")
        if request.protocol_name is not None and request.protocol_name != self.protocol:
            raise InconsistentGroupProtocol(f"the group's protocol is {self.protocol}")
        if self.state is GroupState.PREPARING_REBALANCE:
            raise RebalanceInProgress(f"group {self.group_id} is rebalancing")

    def _add(self, member: Member) -> None:
        if self.leader is None:
            self.leader = member.member_id
        self.members.add(member)

    def _remove(self, member_id: str, error: KafkaError) -> None:
        """Take a member out; ``error`` goes to what it waits for."""
        self._answers.fail(member_id, error)
        self.members.remove(member_id)
        self._missing_syncs.discard(member_id)
        self._has_lost_members = True
        if self.leader == member_id:
            self.leader = next(iter(self.members), None)

    def _leave_one(self, member_id: str, instance_id: str | None) -> None:
        if not member_id:
            found = self.members.id_of(instance_id)
            if found is None:
                raise UnknownMemberId(f"group {self.group_id} has no member with instance id {instance_id}")
            member_id = found
        elif self._pending.pop(member_id, None) is not None:
            return
        else:
            self._member(member_id, instance_id)
        self._remove(member_id, UnknownMemberId("the member has left"))

    # Time

    def _end_sessions(self, now_ms: int) -> None:
        for member_id in [key for key, deadline_ms in self._pending.items() if now_ms >= deadline_ms]:
            del self._pending[member_id]
        ended = [m for m in self.members.values() if self._has_session(m) and now_ms >= m.deadline_ms]
        for member in ended:
            self._remove(member.member_id, UnknownMemberId("the member's session has ended"))
        self._go_on(now_ms)

    def _has_session(self, member: Member) -> bool:
        """Whether the member must be heard of: one that waits for us can't be expected to send anything."""
        return member.is_new or not self._answers.are_awaited_by(member.member_id)

    def _touch(self, member: Member, now_ms: int) -> None:
        self._set_deadline(member, now_ms + member.session_timeout_ms)

    def _set_deadline(self, member: Member, deadline_ms: int) -> None:
        member.deadline_ms = deadline_ms
        self._arm(deadline_ms)

    def _set_join_deadline(self, deadline_ms: int) -> None:
        self._join_deadline_ms = deadline_ms
        self._arm(deadline_ms)

    def _arm(self, deadline_ms: int) -> None:
        if self.next_deadline_ms is None or deadline_ms < self.next_deadline_ms:
            self.next_deadline_ms = deadline_ms

    # Answers and storing

    def _fail_all_syncs(self, error: KafkaError, now_ms: int) -> None:
        """Have the members that wait for assignments react; their sessions, which stood still, begin anew."""
        for member_id in list(self._answers.syncs):
            self._answers.fail_sync(member_id, error)
            self._touch(self.members[member_id], now_ms)

    def _reply_join(
        self,
        to: object,
        member: Member,
        with_members: bool,
        *,
        leader: str | None = None,
        skip_assignment: bool = False,
    ) -> None:
        response = joined(self, member, with_members, leader or self.leader or "", skip_assignment)
        self._answers.reply(to, response)

    def _reply_sync(self, to: object, member: Member) -> None:
        response = SyncGroupResponse(
            protocol_type=self.protocol_type, protocol_name=self.protocol, assignment=member.assignment
        )
        self._answers.reply(to, response)

    def _store(self, now_ms: int, assignments: dict[str, bytes] | None) -> None:
        self._answers.effects.append(Store(self.generation, self.metadata_value(now_ms, assignments)))
