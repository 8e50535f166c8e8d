"""Random histories of the cluster image: it always agrees with itself, and a snapshot is as good as the history."""

from __future__ import annotations

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from support.image_commands import compact, create, register, roll, topic_id

from walrusmq.broker.commands import (
    AllocateProducerIds,
    CreatePartitions,
    DeleteTopic,
    MoveLogStart,
    NamedValue,
    NewPartition,
    ResourceType,
    RolloverReason,
    SetConfigs,
    UnregisterNode,
    encode_command,
)
from walrusmq.broker.image import ClusterImage
from walrusmq.protocol.errors import KafkaError

NODES = st.integers(1, 4)
NODE_SETS = st.lists(NODES, min_size=1, max_size=4).map(tuple)
TOPICS = st.integers(1, 4)


class Histories(RuleBasedStateMachine):
    """Three images take the same commands: one all along, one restored now and then, one replayed at the end."""

    def __init__(self) -> None:
        super().__init__()
        self.live = ClusterImage()
        self.restored = ClusterImage()
        self.payloads: list[bytes] = []

    def take(self, command: Any) -> None:
        payload = encode_command(command)
        self.payloads.append(payload)
        index = len(self.payloads)
        assert outcome(self.live, index, payload) == outcome(self.restored, index, payload)

    @initialize()
    def begin(self) -> None:
        self.take(register(1))
        self.take(create(1, partitions=2))

    @rule(node=NODES, rack=st.sampled_from([None, "a", "b"]))
    def register(self, node: int, rack: str | None) -> None:
        self.take(register(node, rack=rack))

    @rule(node=NODES, incarnation=st.integers(1, 30))
    def unregister(self, node: int, incarnation: int) -> None:
        known = self.live.nodes.get(node)
        self.take(UnregisterNode(node_id=node, incarnation=known.incarnation if known else incarnation))

    @rule(number=TOPICS, partitions=st.integers(0, 3), assigned=NODE_SETS)
    def create_topic(self, number: int, partitions: int, assigned: tuple[int, ...]) -> None:
        self.take(create(number, partitions, assigned, retention_ms="1"))

    @rule(number=TOPICS)
    def delete_topic(self, number: int) -> None:
        self.take(DeleteTopic(topic_id=topic_id(number)))

    @rule(number=TOPICS, first=st.integers(0, 4), assigned=NODE_SETS)
    def create_partitions(self, number: int, first: int, assigned: tuple[int, ...]) -> None:
        added = [NewPartition(assigned=list(assigned))]
        self.take(CreatePartitions(topic_id=topic_id(number), first_partition=first, partitions=added))

    @rule(
        number=TOPICS,
        partition=st.integers(0, 3),
        entries=st.integers(0, 200),
        members=NODE_SETS,
        reason=st.sampled_from(RolloverReason),
        stale=st.sampled_from([0, 0, 0, 1]),
    )
    def roll_over(
        self, number: int, partition: int, entries: int, members: tuple[int, ...], reason: int, stale: int
    ) -> None:
        topic = self.live.topics.get(topic_id(number))
        if topic is None or partition >= len(topic.partitions):
            return
        known = [node for node in dict.fromkeys(members) if node in self.live.nodes] or list(members)
        command = roll(self.live, number, partition, entries, reason=reason, next_members=known, next_leader=known[0])
        command.segment_id -= stale
        self.take(command)

    @rule(number=TOPICS, partition=st.integers(0, 3), offset=st.integers(-1, 1000))
    def move_log_start(self, number: int, partition: int, offset: int) -> None:
        topic = self.live.topics.get(topic_id(number))
        if topic is not None and partition < len(topic.partitions):
            offset = min(offset, topic.partitions[partition].open.first_offset + 10)
        self.take(MoveLogStart(topic_id=topic_id(number), partition=partition, log_start_offset=offset))

    @rule(
        number=TOPICS,
        partition=st.integers(0, 1),
        place=st.integers(0, 3),
        generation=st.integers(0, 5),
        size_bytes=st.sampled_from([-1, 0, 0, 7, 5000]),
    )
    def compact(self, number: int, partition: int, place: int, generation: int, size_bytes: int) -> None:
        topic = self.live.topics.get(topic_id(number))
        sealed = topic.partitions[partition].sealed if topic and partition < len(topic.partitions) else []
        segment_id = sealed[place].id if place < len(sealed) else place
        self.take(compact(segment_id, number, partition, generation=generation, size_bytes=size_bytes))

    @rule(kind=st.sampled_from(ResourceType), number=TOPICS, value=st.sampled_from([None, "1", "2"]))
    def set_configs(self, kind: ResourceType, number: int, value: str | None) -> None:
        name = f"topic-{number}" if kind == ResourceType.TOPIC else str(number)
        self.take(SetConfigs(resource_type=kind, name=name, configs=[NamedValue(name="retention.ms", value=value)]))

    @rule(node=NODES, count=st.integers(0, 1000))
    def allocate(self, node: int, count: int) -> None:
        known = self.live.nodes.get(node)
        self.take(AllocateProducerIds(node_id=node, incarnation=known.incarnation if known else 1, count=count))

    @rule()
    def restore(self) -> None:
        self.restored = ClusterImage.restore(self.restored.snapshot())

    @invariant()
    def the_images_agree_with_themselves_and_each_other(self) -> None:
        self.live.check()
        self.restored.check()
        assert self.live.snapshot() == self.restored.snapshot()

    def teardown(self) -> None:
        replayed = ClusterImage()
        for index, payload in enumerate(self.payloads, 1):
            outcome(replayed, index, payload)
        assert replayed.snapshot() == self.live.snapshot()


def outcome(image: ClusterImage, index: int, payload: bytes) -> str:
    try:
        return repr(image.apply_entry(index, 1, payload))
    except KafkaError as refusal:
        return f"{type(refusal).__name__}: {refusal}"


TestHistories = Histories.TestCase
TestHistories.settings = settings(max_examples=100, stateful_step_count=40, deadline=None)
