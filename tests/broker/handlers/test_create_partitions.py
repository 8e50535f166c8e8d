"""CreatePartitions: topics that grow, and what can't."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from support.embedded import Wire, batch_of, create_topic, fetch, produce, running_node
from support.handler_fakes import FakeNode, answer

from walrusmq.broker.commands import CreateTopic, NewPartition
from walrusmq.broker.handlers.create_partitions import create_partitions
from walrusmq.broker.topics import MAX_PARTITIONS_PER_REQUEST
from walrusmq.protocol.errors import ErrorCode, InvalidPartitions
from walrusmq.protocol.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)


def with_topics(*names: str, assigned: list[int] | None = None, partitions: int = 2) -> FakeNode:
    node = FakeNode()
    for other in (2, 3):
        node.join(other)
    for name in names:
        parts = [NewPartition(assigned=assigned or [1]) for _ in range(partitions)]
        node.apply(CreateTopic(topic_id=name.encode().rjust(16, b"_"), name=name, partitions=parts))
    return node


def wish(name: str, count: int, *assigned: list[int]) -> CreatePartitionsTopic:
    assignments = [CreatePartitionsAssignment(broker_ids=nodes) for nodes in assigned] if assigned else None
    return CreatePartitionsTopic(name=name, count=count, assignments=assignments)


def grow(node: FakeNode, *topics: CreatePartitionsTopic, timeout_ms: int = 5000, **more: Any) -> list[tuple[str, int]]:
    request = CreatePartitionsRequest(topics=list(topics), timeout_ms=timeout_ms, **more)
    return [(each.name, each.error_code) for each in answer(create_partitions, request, node, 3).results]


def assigned_nodes(node: FakeNode, name: str) -> list[tuple[int, ...]]:
    return [partition.assigned for partition in node.image.topics_by_name[name].partitions]


@pytest.mark.parametrize("version", range(4))
def test_a_topic_grows_to_the_wanted_count(version: int) -> None:
    node = with_topics("a")
    request = CreatePartitionsRequest(topics=[wish("a", 5)], timeout_ms=5000)
    (result,) = answer(create_partitions, request, node, version).results
    assert (result.name, result.error_code, result.error_message) == ("a", 0, None)
    assert len(node.image.topics_by_name["a"].partitions) == 5


def test_new_partitions_go_on_round_the_ring_with_as_many_replicas() -> None:
    node = with_topics("a", assigned=[2, 3], partitions=1)
    assert grow(node, wish("a", 4)) == [("a", 0)]
    assert assigned_nodes(node, "a") == [(2, 3), (3, 1), (1, 2), (2, 3)]


def test_new_partitions_live_where_they_are_assigned_to() -> None:
    node = with_topics("a")
    assert grow(node, wish("a", 4, [3], [2])) == [("a", 0)]
    assert assigned_nodes(node, "a") == [(1,), (1,), (3,), (2,)]


@pytest.mark.parametrize("count", [2, 1, 0, -1])
def test_a_count_that_is_no_increase_is_refused(count: int) -> None:
    assert grow(with_topics("a"), wish("a", count)) == [("a", ErrorCode.INVALID_PARTITIONS)]


@pytest.mark.parametrize("name", ["none", "a b", "", "__cluster_metadata"])
def test_a_name_that_no_topic_has_is_unknown(name: str) -> None:
    assert grow(with_topics(), wish(name, 3)) == [(name, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)]


@pytest.mark.parametrize(
    "assigned", [[[1], [1]], [[9]], [[1, 1]], [[]], [[1, 2]]], ids=["many", "unknown", "twice", "none", "replicas"]
)
def test_an_assignment_that_does_not_fit_is_refused(assigned: list[list[int]]) -> None:
    node = with_topics("a")
    assert grow(node, wish("a", 3, *assigned)) == [("a", ErrorCode.INVALID_REPLICA_ASSIGNMENT)]
    assert not node.proposed


def test_an_empty_assignment_is_one_too_few() -> None:
    topic = CreatePartitionsTopic(name="a", count=3, assignments=[])
    assert grow(with_topics("a"), topic) == [("a", ErrorCode.INVALID_REPLICA_ASSIGNMENT)]


def test_a_topic_that_is_given_twice_is_refused_once_and_the_others_grow() -> None:
    node = with_topics("a", "b")
    assert grow(node, wish("a", 3), wish("a", 4), wish("b", 3)) == [("a", ErrorCode.INVALID_REQUEST), ("b", 0)]
    assert (len(assigned_nodes(node, "a")), len(assigned_nodes(node, "b"))) == (2, 3)


def test_one_that_cannot_grow_does_not_keep_the_others_back() -> None:
    node = with_topics("a", "b", "c")
    node.refusals = [InvalidPartitions("somebody was faster")]
    assert grow(node, wish("a", 3), wish("none", 3), wish("b", 3)) == [
        ("a", ErrorCode.INVALID_PARTITIONS),
        ("none", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("b", 0),
    ]


def test_validating_changes_nothing() -> None:
    node = with_topics("a")
    assert grow(node, wish("a", 3), wish("none", 3), validate_only=True) == [
        ("a", 0),
        ("none", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ]
    assert not node.proposed


@pytest.mark.parametrize("timeout_ms", [0, -1])
def test_without_time_nothing_is_created(timeout_ms: int) -> None:
    node = with_topics("a", "b")
    assert grow(node, wish("a", 3), wish("none", 3), wish("b", 3), wish("b", 3), timeout_ms=timeout_ms) == [
        ("b", ErrorCode.INVALID_REQUEST),
        ("a", ErrorCode.REQUEST_TIMED_OUT),
        ("none", ErrorCode.REQUEST_TIMED_OUT),
    ]
    assert not node.proposed


def test_too_many_partitions_at_once_refuse_the_whole_request() -> None:
    node = with_topics("a", "b")
    assert grow(node, wish("a", 3), wish("b", MAX_PARTITIONS_PER_REQUEST + 2)) == [
        ("a", ErrorCode.POLICY_VIOLATION),
        ("b", ErrorCode.POLICY_VIOLATION),
    ]
    assert not node.proposed


def test_a_new_partition_is_served_at_once_and_after_a_restart(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running_node(tmp_path) as node, await Wire.to(node) as wire:
            await create_topic(wire, "t", 1)
            answered = await wire.ask(CreatePartitionsRequest(topics=[wish("t", 3)], timeout_ms=10_000), 3)
            assert answered.results[0].error_code == 0
            sent = await wire.ask(produce("t", batch_of(b"x"), partition=2), 9)
            assert sent.responses[0].partition_responses[0].error_code == 0
        async with running_node(tmp_path) as node, await Wire.to(node) as wire:
            found = (await wire.ask(fetch("t", 0, partition=2), 11)).responses[0].partitions[0]
            assert (found.error_code, found.high_watermark) == (0, 1)

    asyncio.run(scenario())
