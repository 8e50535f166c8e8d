"""Random schedules of a group in virtual time: members come, go, crash, stall and commit, and the disk fails."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, MultipleResults, RuleBasedStateMachine, initialize, invariant, multiple, rule
from support.group_client import REBALANCE_MS, SESSION_MS, GroupClient, Phase
from support.group_world import GroupWorld

from walrusmq.broker.groups.limits import GroupLimits
from walrusmq.broker.groups.member import GroupState

INSTANCES = st.sampled_from(["i-1", "i-2", "i-3"])
VERSIONS = st.sampled_from([3, 5, 9])
METADATA = st.sampled_from([b"x", b"y"])
TIMES_MS = st.sampled_from([3_000, 500, 3, 0, 11_000, 40_000])
#: After so long without faults every member has had its sessions, its rebalances and its first patience.
CALM_MS = 10 * (SESSION_MS + REBALANCE_MS)


class Schedules(RuleBasedStateMachine):
    """What must hold at each moment is in `GroupWorld`; here is what happens, and how it must end."""

    clients = Bundle("clients")

    def __init__(self) -> None:
        super().__init__()
        self.everyone: list[GroupClient] = []

    @initialize(
        target=clients,
        partitions=st.integers(1, 6),
        initial_delay_ms=st.sampled_from([0, 0, 3_000]),
        max_size=st.sampled_from([99, 99, 3]),
        instances=st.lists(st.none() | INSTANCES, min_size=2, max_size=5),
        after_ms=TIMES_MS,
    )
    def begin(
        self, partitions: int, initial_delay_ms: int, max_size: int, instances: list[str | None], after_ms: int
    ) -> MultipleResults[GroupClient]:
        self.world = GroupWorld(partitions, GroupLimits(initial_delay_ms=initial_delay_ms, max_size=max_size))
        started = [self._started(instance_id, 9, b"x") for instance_id in instances]
        self.world.run(after_ms)
        return multiple(*started)

    def _started(self, instance_id: str | None, version: int, metadata: bytes) -> GroupClient:
        client = GroupClient(self.world, instance_id, version, metadata)
        self.everyone.append(client)
        client.start()
        return client

    @rule(target=clients, version=VERSIONS, metadata=METADATA, after_ms=TIMES_MS)
    def start(self, version: int, metadata: bytes, after_ms: int) -> GroupClient:
        self.world.run(after_ms)
        return self._started(None, version, metadata)

    @rule(target=clients, instance_id=INSTANCES, metadata=METADATA, after_ms=TIMES_MS)
    def start_static(self, instance_id: str, metadata: bytes, after_ms: int) -> GroupClient:
        """Perhaps while another process has the instance id."""
        self.world.run(after_ms)
        return self._started(instance_id, 5, metadata)

    @rule(target=clients, client=clients, version=VERSIONS, after_ms=TIMES_MS)
    def restart(self, client: GroupClient, version: int, after_ms: int) -> GroupClient:
        client.crash()
        self.world.run(after_ms)
        return self._started(client.instance_id, max(version, 5), client.metadata)

    @rule(client=clients, after_ms=TIMES_MS)
    def crash(self, client: GroupClient, after_ms: int) -> None:
        self.world.run(after_ms)
        client.crash()

    @rule(client=clients, after_ms=TIMES_MS)
    def leave(self, client: GroupClient, after_ms: int) -> None:
        self.world.run(after_ms)
        client.leave()

    @rule(client=clients, ms=TIMES_MS, after_ms=TIMES_MS)
    def stall(self, client: GroupClient, ms: int, after_ms: int) -> None:
        self.world.run(after_ms)
        client.pause(ms)

    @rule(client=clients, ms=TIMES_MS)
    def poll_slowly(self, client: GroupClient, ms: int) -> None:
        client.poll_ms = ms

    @rule(client=clients, metadata=METADATA, after_ms=TIMES_MS)
    def subscribe(self, client: GroupClient, metadata: bytes, after_ms: int) -> None:
        self.world.run(after_ms)
        client.subscribe(metadata)

    @rule(client=clients, after_ms=TIMES_MS)
    def commit(self, client: GroupClient, after_ms: int) -> None:
        client.commit()
        self.world.run(after_ms)

    @rule(client=clients, generations_ago=st.integers(0, 3), after_ms=TIMES_MS)
    def arrive_late(self, client: GroupClient, generations_ago: int, after_ms: int) -> None:
        """Requests that have been on their way for long arrive, perhaps after the process that sent them has ended."""
        self.world.run(after_ms)
        if generations_ago < len(client.identities):
            self.world.late(*client.identities[-1 - generations_ago])

    @rule(instance_id=INSTANCES)
    def remove_static(self, instance_id: str) -> None:
        """As an administrator does it (KIP-345)."""
        self.world.leave("", instance_id)

    @rule(failing=st.integers(0, 2), store_ms=TIMES_MS)
    def disk(self, failing: int, store_ms: int) -> None:
        self.world.failing_stores = failing
        self.world.store_ms = store_ms

    @rule(stores_that_last=st.integers(0, 3), after_ms=TIMES_MS)
    def restart_coordinator(self, stores_that_last: int, after_ms: int) -> None:
        self.world.run(after_ms)
        self.world.restart(stores_that_last)

    @rule(ms=TIMES_MS)
    def run(self, ms: int) -> None:
        self.world.run(ms)

    @invariant()
    def nobody_is_fenced_but_by_a_later_process(self) -> None:
        assert not any(client.fenced_by_nobody for client in self.everyone)

    def teardown(self) -> None:
        if not self.everyone:
            return
        self.world.failing_stores = self.world.store_ms = 0
        for client in self.everyone:
            client.poll_ms = 0
        self.world.run(CALM_MS)
        self.nobody_is_fenced_but_by_a_later_process()
        live = [client for client in self.everyone if client.phase is not Phase.GONE]
        group = self.world.group
        assert all(client.phase is Phase.STABLE for client in live), [client.phase for client in live]
        if group is None:
            assert not live
            return
        assert group.state is (GroupState.STABLE if live else GroupState.EMPTY)
        assert set(group.members) == {client.member_id for client in live}
        assert {client.generation for client in live} <= {group.generation}
        assert not live or sorted(p for c in live for p in c.owned) == list(range(self.world.partitions))
        for client in live:
            assert self.world.commit(client.member_id, client.instance_id, client.generation) == 0


TestSchedules = Schedules.TestCase
TestSchedules.settings = settings(max_examples=50, stateful_step_count=50, deadline=None)
