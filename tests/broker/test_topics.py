"""Planning of new topics: names, collisions, placement, configs."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.handler_fakes import FakeNode

from walrusmq.broker.commands import CreateTopic
from walrusmq.broker.topics import (
    MAX_PARTITIONS_PER_REQUEST,
    TopicPlanner,
    check_partition_total,
    is_internal,
    validate_topic_name,
)
from walrusmq.protocol.errors import ErrorCode, InvalidTopic, KafkaError, PolicyViolation
from walrusmq.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
)

ID = bytes(range(16))


def wanted(name: str = "t", partitions: int = 1, replicas: int = 1, **more: Any) -> CreatableTopic:
    return CreatableTopic(name=name, num_partitions=partitions, replication_factor=replicas, **more)


def by_hand(*assigned: tuple[int, list[int]], partitions: int = -1, replicas: int = -1) -> CreatableTopic:
    assignments = [CreatableReplicaAssignment(partition_index=index, broker_ids=nodes) for index, nodes in assigned]
    return wanted("t", partitions, replicas, assignments=assignments)


def with_configs(*configs: tuple[str, str | None], **more: int) -> CreatableTopic:
    return wanted(configs=[CreatableTopicConfig(name=name, value=value) for name, value in configs], **more)


def plan(topic: CreatableTopic, node: FakeNode | None = None, topic_id: bytes = ID) -> CreateTopic:
    node = node or FakeNode()
    return TopicPlanner(node.image, node.settings).plan(topic, topic_id)


def code(topic: CreatableTopic, node: FakeNode | None = None) -> ErrorCode:
    with pytest.raises(KafkaError) as refusal:
        plan(topic, node)
    assert str(refusal.value)
    return refusal.value.code


def with_topics(*names: str) -> FakeNode:
    node = FakeNode()
    for index, name in enumerate(names):
        node.apply(plan(wanted(name), node, index.to_bytes(16, "big")))
    return node


def cluster(size: int) -> FakeNode:
    node = FakeNode()
    for node_id in range(2, size + 1):
        node.join(node_id)
    return node


@pytest.mark.parametrize("name", ["a", "A.b_c-9", "x" * 249, "...", "-", "__consumer_offsets"])
def test_legal_names_are_taken(name: str) -> None:
    validate_topic_name(name)


@pytest.mark.parametrize("name", ["", ".", "..", "a b", "a/b", "ä", "x" * 250, "a:b", "a*", "a\n", "a\0", "٣"])
def test_illegal_names_are_refused(name: str) -> None:
    with pytest.raises(InvalidTopic):
        validate_topic_name(name)
    assert code(wanted(name)) is ErrorCode.INVALID_TOPIC_EXCEPTION


@given(st.text(max_size=300))
def test_any_text_is_a_name_or_refused(name: str) -> None:
    try:
        validate_topic_name(name)
    except InvalidTopic:
        return
    assert name.isascii()
    assert 0 < len(name) <= 249


def test_coordinators_topics_are_internal() -> None:
    assert is_internal("__consumer_offsets")
    assert not is_internal("__mine")


def test_a_plan_has_the_asked_partitions_and_the_id() -> None:
    command = plan(wanted("t", 3))
    assert (command.name, command.topic_id) == ("t", ID)
    assert [partition.assigned for partition in command.partitions] == [[1], [1], [1]]


def test_minus_one_means_the_nodes_defaults() -> None:
    node = cluster(3)
    node.settings.num_partitions, node.settings.default_replication_factor = 4, 2
    command = plan(wanted("t", -1, -1), node)
    assert [len(partition.assigned) for partition in command.partitions] == [2, 2, 2, 2]


@pytest.mark.parametrize("partitions", [0, -2])
def test_partition_counts_below_one_are_refused(partitions: int) -> None:
    assert code(wanted(partitions=partitions)) is ErrorCode.INVALID_PARTITIONS


@pytest.mark.parametrize("replicas", [0, -2, 2, 32767])
def test_replication_factors_that_the_cluster_cannot_have_are_refused(replicas: int) -> None:
    assert code(wanted(replicas=replicas)) is ErrorCode.INVALID_REPLICATION_FACTOR


def test_a_default_replication_factor_above_the_nodes_is_refused() -> None:
    node = FakeNode(default_replication_factor=3)
    assert code(wanted(replicas=-1), node) is ErrorCode.INVALID_REPLICATION_FACTOR


@given(
    nodes=st.integers(1, 6), partitions=st.integers(1, 30), data=st.data(), topic_id=st.binary(min_size=16, max_size=16)
)
def test_placement_spreads_leaders_and_replicas_evenly(
    nodes: int, partitions: int, data: st.DataObject, topic_id: bytes
) -> None:
    replicas = data.draw(st.integers(1, nodes))
    command = plan(wanted("t", partitions, replicas), cluster(nodes), topic_id)
    assigned = [partition.assigned for partition in command.partitions]
    assert all(len(set(each)) == replicas for each in assigned)
    for counts in (Counter(each[0] for each in assigned), Counter(node for each in assigned for node in each)):
        held = [counts[node] for node in range(1, nodes + 1)]
        assert max(held) - min(held) <= replicas


def test_single_partition_topics_are_led_by_different_nodes() -> None:
    node = cluster(4)
    leaders = {plan(wanted(), node, bytes((0, 0, 0, first)) + ID[4:]).partitions[0].assigned[0] for first in range(4)}
    assert leaders == {1, 2, 3, 4}


def test_an_existing_topic_is_refused_whatever_else_is_wrong() -> None:
    assert code(wanted("t", 0), with_topics("t")) is ErrorCode.TOPIC_ALREADY_EXISTS


@pytest.mark.parametrize(("old", "new"), [("a.b", "a_b"), ("a_b", "a.b"), ("a.b_c", "a_b.c")])
def test_names_that_differ_in_dots_and_underscores_collide(old: str, new: str) -> None:
    assert code(wanted(new), with_topics(old)) is ErrorCode.INVALID_TOPIC_EXCEPTION


def test_other_names_do_not_collide() -> None:
    plan(wanted("a_c"), with_topics("a.b", "a-c", "ac"))


def test_the_metadata_logs_name_is_refused() -> None:
    assert code(wanted("__cluster_metadata")) is ErrorCode.INVALID_REQUEST


def test_nodes_can_be_assigned_by_hand_in_any_order() -> None:
    command = plan(by_hand((1, [2, 1]), (0, [1, 2])), cluster(2))
    assert [partition.assigned for partition in command.partitions] == [[1, 2], [2, 1]]


@pytest.mark.parametrize(
    "assigned",
    [
        [(0, [1]), (2, [1])],
        [(1, [1])],
        [(-1, [1])],
        [(0, [1]), (0, [1])],
        [(0, [9])],
        [(0, [-1])],
        [(0, [])],
        [(0, [1, 1])],
        [(0, [1]), (1, [1, 2])],
    ],
)
def test_impossible_assignments_are_refused(assigned: list[tuple[int, list[int]]]) -> None:
    assert code(by_hand(*assigned), cluster(2)) is ErrorCode.INVALID_REPLICA_ASSIGNMENT


@pytest.mark.parametrize("counts", [{"partitions": 1}, {"replicas": 1}, {"partitions": -2}, {"replicas": 0}])
def test_an_assignment_by_hand_goes_with_no_counts(counts: dict[str, int]) -> None:
    assert code(by_hand((0, [1]), **counts)) is ErrorCode.INVALID_REQUEST


def test_configs_stand_in_the_command_by_name() -> None:
    command = plan(with_configs(("retention.ms", "1"), ("flush.messages", "1"), ("retention.ms", "2")))
    assert [(config.name, config.value) for config in command.configs] == [
        ("flush.messages", "1"),
        ("retention.ms", "2"),
    ]


@pytest.mark.parametrize(
    "config", [("no.such", "1"), ("retention.ms", "abc"), ("retention.ms", None), ("", "1"), ("log.retention.ms", "5")]
)
def test_bad_configs_are_refused_before_bad_counts(config: tuple[str, str | None]) -> None:
    assert code(with_configs(config, partitions=0, replicas=0)) is ErrorCode.INVALID_CONFIG


def test_configs_that_contradict_each_other_are_refused() -> None:
    lags = ("min.compaction.lag.ms", "50"), ("max.compaction.lag.ms", "40")
    assert code(with_configs(*lags)) is ErrorCode.INVALID_CONFIG
    assert plan(with_configs(lags[0])).configs


def test_a_bad_replication_factor_is_named_before_a_bad_count_as_in_kafka() -> None:
    assert code(wanted(partitions=0, replicas=0)) is ErrorCode.INVALID_REPLICATION_FACTOR
    assert code(wanted(partitions=0, replicas=2)) is ErrorCode.INVALID_PARTITIONS


def test_one_request_creates_a_bounded_number_of_partitions() -> None:
    settings = FakeNode(num_partitions=2).settings
    check_partition_total([wanted(partitions=MAX_PARTITIONS_PER_REQUEST - 2), wanted(partitions=-1)], settings)
    with pytest.raises(PolicyViolation):
        check_partition_total([wanted(partitions=MAX_PARTITIONS_PER_REQUEST - 1), wanted(partitions=-1)], settings)
    with pytest.raises(PolicyViolation):
        check_partition_total([wanted(partitions=-5000), wanted(partitions=MAX_PARTITIONS_PER_REQUEST + 1)], settings)
    with pytest.raises(PolicyViolation):
        check_partition_total([wanted(partitions=MAX_PARTITIONS_PER_REQUEST), by_hand((0, [1]))], settings)
