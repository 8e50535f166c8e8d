"""The life of a group, in virtual time."""

from __future__ import annotations

import pytest

from walrusmq.broker.groups.effects import Reply, Store
from walrusmq.broker.groups.group import Group
from walrusmq.broker.groups.limits import GroupLimits
from walrusmq.broker.groups.member import GroupState
from walrusmq.protocol.errors import (
    CoordinatorNotAvailable,
    ErrorCode,
    FencedInstanceId,
    IllegalGeneration,
    KafkaStorageError,
    RebalanceInProgress,
    UnknownMemberId,
)
from walrusmq.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from walrusmq.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment, SyncGroupResponse

SESSION_MS = 10_000
REBALANCE_MS = 60_000


class Driver:
    """A group, its time, and what it answered to whom."""

    def __init__(self, **limits: int) -> None:
        self.limits = GroupLimits(**limits)
        self.now_ms = 1_000
        self.group = Group("g", self.limits, self.now_ms)
        self.joined: dict[str, JoinGroupResponse] = {}
        self.synced: dict[str, SyncGroupResponse] = {}
        self.stores: list[Store] = []

    def take(self) -> None:
        for effect in self.group.take_effects():
            if isinstance(effect, Store):
                self.stores.append(effect)
            else:
                assert isinstance(effect, Reply)
                answers = self.joined if isinstance(effect.response, JoinGroupResponse) else self.synced
                assert effect.to not in answers, "answered twice"
                answers[str(effect.to)] = effect.response  # type: ignore[assignment]

    def join(
        self,
        name: str,
        *,
        member_id: str | None = None,
        instance: str | None = None,
        protocols: tuple[tuple[str, bytes], ...] = (("range", b"r"),),
        protocol_type: str = "consumer",
        needs_member_id: bool = False,
        can_skip_assignment: bool = False,
        session_ms: int = SESSION_MS,
    ) -> JoinGroupResponse | None:
        """Send a JoinGroup; the answer if it came at once. A new member gets ``name`` as its id."""
        request = JoinGroupRequest(
            group_id="g",
            session_timeout_ms=session_ms,
            rebalance_timeout_ms=REBALANCE_MS,
            member_id=member_id or "",
            group_instance_id=instance,
            protocol_type=protocol_type,
            protocols=[JoinGroupRequestProtocol(name=key, metadata=value) for key, value in protocols],
        )
        self.joined.pop(name, None)
        self.group.join(request, name, needs_member_id, "client", "/127.0.0.1", name, self.now_ms, can_skip_assignment)
        self.take()
        return self.joined.get(name)

    def sync(self, name: str, generation: int | None = None, **assignments: bytes) -> SyncGroupResponse | None:
        request = SyncGroupRequest(
            group_id="g",
            generation_id=self.group.generation if generation is None else generation,
            member_id=name,
            assignments=[SyncGroupRequestAssignment(member_id=key, assignment=v) for key, v in assignments.items()],
        )
        self.synced.pop(name, None)
        self.group.sync(request, name, self.now_ms)
        self.take()
        return self.synced.get(name)

    def end_stores(self, error: KafkaStorageError | None = None) -> None:
        stores, self.stores = self.stores, []
        for store in stores:
            self.group.stored(store.generation, error, self.now_ms)
            self.take()

    def heartbeat(self, name: str, instance: str | None = None) -> None:
        self.group.heartbeat(name, instance, self.group.generation, self.now_ms)

    def after(self, ms: int) -> None:
        """Let time go on, with every deadline kept."""
        end = self.now_ms + ms
        while self.group.next_deadline_ms is not None and self.group.next_deadline_ms <= end:
            self.now_ms = max(self.now_ms, self.group.next_deadline_ms)
            self.group.tick(self.now_ms)
            self.take()
        self.now_ms = end

    def stable(self, *names: str, instances: bool = False) -> None:
        """Have these members in a stable generation."""
        for name in names:
            self.join(name, instance=f"i-{name}" if instances else None)
        if len(names) > 1:
            self.join(names[0], member_id=names[0], instance=f"i-{names[0]}" if instances else None)
        leader = self.group.leader
        assert leader is not None
        for name in names:
            if name != leader:
                self.sync(name)
        self.sync(leader, **{name: name.encode() for name in names})
        self.end_stores()
        assert self.group.state is GroupState.STABLE


def test_a_lone_member_is_answered_at_once_and_leads() -> None:
    driver = Driver()
    answer = driver.join("a")
    assert answer is not None
    assert (answer.error_code, answer.generation_id, answer.leader, answer.member_id) == (0, 1, "a", "a")
    assert (answer.protocol_type, answer.protocol_name) == ("consumer", "range")
    assert [(m.member_id, m.metadata) for m in answer.members] == [("a", b"r")]
    assert driver.group.state is GroupState.COMPLETING_REBALANCE


def test_an_assignment_is_given_out_once_it_is_stored() -> None:
    driver = Driver()
    driver.join("a")
    assert driver.sync("a", a=b"all") is None
    assert driver.stores[0].value.members[0].assignment == b"all"
    driver.end_stores()
    assert driver.synced["a"].assignment == b"all"
    assert driver.group.state is GroupState.STABLE


def test_a_failed_store_has_the_members_join_again() -> None:
    driver = Driver()
    driver.join("a")
    driver.sync("a", a=b"all")
    driver.end_stores(KafkaStorageError("disk full"))
    assert driver.synced["a"].error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert driver.group.state is GroupState.PREPARING_REBALANCE


def test_a_second_member_makes_the_first_rejoin() -> None:
    driver = Driver()
    driver.stable("a")
    assert driver.join("b") is None
    with pytest.raises(RebalanceInProgress):
        driver.heartbeat("a")
    answer = driver.join("a", member_id="a")
    assert answer is not None
    assert (answer.generation_id, answer.leader, len(answer.members)) == (2, "a", 2)
    assert (driver.joined["b"].generation_id, driver.joined["b"].members) == (2, [])


def test_a_member_that_does_not_rejoin_is_out_after_the_rebalance_timeout() -> None:
    driver = Driver()
    driver.stable("a")
    driver.join("b")
    for _ in range(REBALANCE_MS // 5_000 - 1):
        driver.after(5_000)
        with pytest.raises(RebalanceInProgress):
            driver.heartbeat("a")
    assert "b" not in driver.joined
    driver.after(5_000)
    assert driver.joined["b"].leader == "b"
    assert list(driver.group.members) == ["b"]


def test_a_silent_member_is_out_after_its_session() -> None:
    driver = Driver()
    driver.stable("a", "b")
    driver.after(SESSION_MS // 2)
    driver.heartbeat("a")
    driver.after(SESSION_MS // 2)
    assert list(driver.group.members) == ["a"]
    assert driver.group.state is GroupState.PREPARING_REBALANCE
    with pytest.raises(UnknownMemberId):
        driver.heartbeat("b")


def test_a_group_that_its_last_member_leaves_is_empty_and_stored() -> None:
    driver = Driver()
    driver.stable("a")
    driver.now_ms += 5
    assert driver.group.leave([("a", None), ("b", None)], driver.now_ms) == [0, ErrorCode.UNKNOWN_MEMBER_ID]
    driver.take()
    assert driver.group.state is GroupState.EMPTY
    assert driver.group.is_empty
    assert (driver.group.generation, driver.group.empty_since_ms) == (2, driver.now_ms)
    assert driver.stores[-1].value.members == []


def test_members_that_wait_for_assignments_rejoin_when_the_leader_leaves() -> None:
    driver = Driver()
    driver.stable("a", "b")
    driver.join("a", member_id="a")
    driver.join("b", member_id="b")
    assert driver.sync("b") is None
    driver.group.leave([("a", None)], driver.now_ms)
    driver.take()
    assert driver.synced["b"].error_code == ErrorCode.REBALANCE_IN_PROGRESS


def test_a_member_that_never_syncs_is_out() -> None:
    driver = Driver()
    driver.join("a")
    for _ in range(REBALANCE_MS // 5_000):
        driver.heartbeat("a")
        driver.after(5_000)
    assert driver.group.state is GroupState.EMPTY


def test_a_member_id_is_handed_out_before_joining() -> None:
    driver = Driver()
    answer = driver.join("a", needs_member_id=True)
    assert answer is not None
    assert (answer.error_code, answer.member_id) == (ErrorCode.MEMBER_ID_REQUIRED, "a")
    assert driver.group.state is GroupState.EMPTY
    answer = driver.join("a", member_id="a", needs_member_id=True)
    assert answer is not None
    assert answer.generation_id == 1


def test_an_unused_member_id_is_forgotten() -> None:
    driver = Driver()
    driver.join("a", needs_member_id=True)
    driver.after(SESSION_MS)
    answer = driver.join("a", member_id="a", needs_member_id=True)
    assert answer is not None
    assert answer.error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert driver.group.is_empty


def test_most_votes_choose_among_the_protocols_that_all_can_do() -> None:
    driver = Driver()
    driver.join("a", protocols=(("x", b""), ("y", b"ay")))
    driver.join("b", protocols=(("z", b""), ("y", b"by"), ("x", b"")))
    driver.join("c", protocols=(("y", b"cy"), ("x", b"")))
    driver.join("a", member_id="a", protocols=(("x", b""), ("y", b"ay")))
    assert driver.joined["a"].protocol_name == "y"
    assert [m.metadata for m in driver.joined["a"].members] == [b"ay", b"by", b"cy"]


@pytest.mark.parametrize(
    ("protocol_type", "protocols"), [("connect", (("range", b""),)), ("consumer", (("other", b""),))]
)
def test_a_member_whose_protocols_do_not_fit_is_refused(
    protocol_type: str, protocols: tuple[tuple[str, bytes], ...]
) -> None:
    driver = Driver()
    driver.stable("a")
    answer = driver.join("b", protocol_type=protocol_type, protocols=protocols)
    assert answer is not None
    assert answer.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert driver.group.state is GroupState.STABLE


@pytest.mark.parametrize("session_ms", [5_999, 1_800_001])
def test_a_session_timeout_out_of_bounds_is_refused(session_ms: int) -> None:
    answer = Driver().join("a", session_ms=session_ms)
    assert answer is not None
    assert answer.error_code == ErrorCode.INVALID_SESSION_TIMEOUT


def test_a_full_group_takes_nobody_else() -> None:
    driver = Driver(max_size=1)
    driver.stable("a")
    answer = driver.join("b")
    assert answer is not None
    assert answer.error_code == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert driver.group.state is GroupState.STABLE


def test_a_group_that_has_become_too_full_goes_on_without_the_last_that_rejoins() -> None:
    driver = Driver()
    driver.stable("a", "b")
    value = driver.group.metadata_value(driver.now_ms)
    driver.group = Group.restored("g", value, GroupLimits(max_size=1), driver.now_ms)
    assert driver.join("a", member_id="a") is None
    answer = driver.join("b", member_id="b")
    assert answer is not None
    assert answer.error_code == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert [member.member_id for member in driver.joined["a"].members] == ["a"]


@pytest.mark.parametrize("ending", ["rebalance", "failed store"])
def test_a_member_has_a_whole_session_after_it_has_waited_for_assignments(ending: str) -> None:
    driver = Driver()
    driver.stable("a", "b")
    for name in ("a", "b"):
        driver.join(name, member_id=name)
    driver.sync("b")
    driver.after(SESSION_MS // 2)
    driver.heartbeat("a")
    driver.after(SESSION_MS // 2)
    if ending == "rebalance":
        driver.join("c")
    else:
        driver.sync("a")
        driver.end_stores(KafkaStorageError("disk full"))
    assert driver.synced["b"].error_code
    driver.after(SESSION_MS - 1)
    assert "b" in driver.group.members
    driver.after(1)
    assert "b" not in driver.group.members


def test_the_initial_delay_gathers_members() -> None:
    driver = Driver(initial_delay_ms=3_000)
    assert driver.join("a") is None
    driver.after(2_000)
    driver.join("b")
    driver.after(1_000)
    assert not driver.joined
    driver.after(3_000)
    assert len(driver.joined["a"].members) == 2
    assert driver.joined["b"].generation_id == 1


@pytest.mark.parametrize("can_skip_assignment", [True, False])
def test_a_static_leader_comes_back_without_a_rebalance(can_skip_assignment: bool) -> None:
    driver = Driver()
    driver.stable("a", "b", instances=True)
    assert driver.join("a2", instance="i-a", can_skip_assignment=can_skip_assignment) is None
    driver.end_stores()
    answer = driver.joined["a2"]
    assert (answer.error_code, answer.generation_id, answer.member_id) == (0, 2, "a2")
    assert answer.skip_assignment is can_skip_assignment
    assert answer.leader == ("a2" if can_skip_assignment else "a")
    assert len(answer.members) == (2 if can_skip_assignment else 0)
    synced = driver.sync("a2")
    assert synced is not None
    assert synced.assignment == b"a"
    with pytest.raises(FencedInstanceId):
        driver.heartbeat("a", "i-a")
    with pytest.raises(FencedInstanceId):
        driver.group.check_commit("a", "i-a", 2, driver.now_ms)
    driver.heartbeat("b", "i-b")


def test_a_static_member_whose_return_is_not_stored_stays_who_it_was() -> None:
    driver = Driver()
    driver.stable("a", instances=True)
    driver.join("a2", instance="i-a")
    driver.end_stores(KafkaStorageError("disk full"))
    assert driver.joined["a2"].error_code == ErrorCode.KAFKA_STORAGE_ERROR
    driver.heartbeat("a", "i-a")
    assert driver.group.leader == "a"


def test_a_static_member_may_be_removed_by_its_instance_id() -> None:
    driver = Driver()
    driver.stable("a", instances=True)
    codes = driver.group.leave([("", "i-a"), ("", "i-x"), ("", None)], driver.now_ms)
    assert codes == [0, ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.UNKNOWN_MEMBER_ID]


def test_static_members_are_awaited_until_their_sessions_end() -> None:
    driver = Driver()
    driver.stable("a", "b", instances=True)
    driver.join("a", member_id="a", instance="i-a", protocols=(("range", b"changed"),))
    driver.after(SESSION_MS)
    assert driver.joined["a"].generation_id == 3
    assert list(driver.group.members) == ["a"]


def test_a_lost_join_answer_is_given_again() -> None:
    driver = Driver()
    driver.stable("a", "b")
    answer = driver.join("b", member_id="b")
    assert answer is not None
    assert (answer.generation_id, answer.leader) == (2, "a")
    assert driver.group.state is GroupState.STABLE


def test_a_leader_that_joins_again_starts_a_rebalance() -> None:
    driver = Driver()
    driver.stable("a", "b")
    assert driver.join("a", member_id="a") is None
    assert driver.group.state is GroupState.PREPARING_REBALANCE


def test_an_older_join_of_the_same_member_is_answered() -> None:
    driver = Driver()
    driver.stable("a", "b")
    driver.join("a", member_id="a")
    driver.group.take_effects()
    request = JoinGroupRequest(
        group_id="g",
        session_timeout_ms=SESSION_MS,
        member_id="a",
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=b"r")],
    )
    driver.group.join(request, "", True, "client", "/127.0.0.1", "again", driver.now_ms)
    driver.take()
    assert driver.joined["a"].error_code == ErrorCode.REBALANCE_IN_PROGRESS


def test_commits_are_checked_against_members_and_generation() -> None:
    driver = Driver()
    driver.group.check_commit("", None, -1, driver.now_ms)
    driver.join("a")
    with pytest.raises(RebalanceInProgress):
        driver.group.check_commit("a", None, 1, driver.now_ms)
    driver.sync("a")
    driver.end_stores()
    driver.group.check_commit("a", None, 1, driver.now_ms)
    with pytest.raises(UnknownMemberId):
        driver.group.check_commit("", None, -1, driver.now_ms)
    with pytest.raises(UnknownMemberId):
        driver.group.check_commit("b", None, 1, driver.now_ms)
    with pytest.raises(IllegalGeneration):
        driver.group.check_commit("a", None, 0, driver.now_ms)


@pytest.mark.parametrize(("field", "value"), [("protocol_type", "connect"), ("protocol_name", "other")])
def test_a_sync_for_another_protocol_is_refused(field: str, value: str) -> None:
    driver = Driver()
    driver.join("a")
    request = SyncGroupRequest(group_id="g", generation_id=1, member_id="a", **{field: value})
    driver.group.sync(request, "a", driver.now_ms)
    driver.take()
    assert driver.synced["a"].error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_a_restored_group_goes_on_with_its_members() -> None:
    driver = Driver()
    driver.stable("a", "b", instances=True)
    value = driver.group.metadata_value(driver.now_ms)
    driver.now_ms += 100_000
    driver.group = Group.restored("g", value, driver.limits, driver.now_ms)
    driver.heartbeat("a", "i-a")
    answer = driver.sync("b")
    assert answer is not None
    assert answer.assignment == b"b"
    driver.after(SESSION_MS - 1)
    driver.heartbeat("a", "i-a")
    driver.after(1)
    assert list(driver.group.members) == ["a"]


def test_a_retired_group_answers_who_waits_and_takes_nobody() -> None:
    driver = Driver()
    driver.stable("a")
    driver.join("b")
    driver.group.retire()
    driver.take()
    assert driver.joined["b"].error_code == ErrorCode.NOT_COORDINATOR
    with pytest.raises(CoordinatorNotAvailable):
        driver.heartbeat("a")


def test_a_description_tells_what_members_do_once_they_are_stable() -> None:
    driver = Driver()
    driver.join("a")
    described = driver.group.describe()
    assert (described.group_state, described.protocol_data) == ("CompletingRebalance", "")
    assert described.members[0].member_metadata == b""
    driver.sync("a", a=b"all")
    driver.end_stores()
    described = driver.group.describe()
    assert (described.group_state, described.protocol_type, described.protocol_data) == ("Stable", "consumer", "range")
    assert (described.members[0].member_metadata, described.members[0].member_assignment) == (b"r", b"all")


def test_the_topics_of_a_consumer_group_are_read_and_are_unknown_where_one_member_sends_garbage() -> None:
    driver = Driver()
    subscription = b"\0\1" + b"\0\0\0\2\0\1x\0\1y" + b"\xff\xff\xff\xff" + b"\0\0\0\0"
    driver.join("a", protocols=(("range", subscription),))
    assert driver.group.subscribed_topics() == {"x", "y"}
    driver.join("b", protocols=(("range", b"\0\1\0\0\0\x09"),))
    assert driver.group.subscribed_topics() is None


def test_protocol_names_that_nobody_has_any_more_are_forgotten() -> None:
    driver = Driver()
    driver.join("stays", protocols=(("range", b""),))
    for count in range(100):
        driver.join(f"m{count}", protocols=(("range", b""), (f"odd-{count}", b"")))
        driver.group.leave([(f"m{count}", None)], driver.now_ms)
        driver.take()
    assert set(driver.group.members.protocol_counts) == {"range"}
