"""OffsetForLeaderEpoch: where epochs ended, and which epochs are refused."""

from __future__ import annotations

import pytest
from support.handler_fakes import FakeNode, FakePartition, answer

from walrusmq.broker.commands import CreateTopic, NewPartition
from walrusmq.broker.handlers.offset_for_leader_epoch import offset_for_leader_epoch
from walrusmq.protocol.errors import ErrorCode
from walrusmq.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)

ALL_VERSIONS = range(2, 5)


@pytest.fixture
def node() -> FakeNode:
    """Topic t: partition 0 is at epoch 3; partition 1 is led elsewhere."""
    node = FakeNode()
    node.apply(CreateTopic(topic_id=b"t" * 16, name="t", partitions=[NewPartition(assigned=[1])] * 2))
    node.partitions_by_name = {"t": {0: FakePartition(leader_epoch=3, epoch_ends={0: (0, 5), 1: (0, 5), 3: (3, 9)})}}
    return node


def ask(
    node: FakeNode, *wanted: tuple[int, int, int], topic: str = "t", version: int = 4, replica: int = -1
) -> list[tuple[int, int, int, int]]:
    partitions = [
        OffsetForLeaderPartition(partition=index, current_leader_epoch=current, leader_epoch=epoch)
        for index, current, epoch in wanted
    ]
    request = OffsetForLeaderEpochRequest(
        replica_id=replica, topics=[OffsetForLeaderTopic(topic=topic, partitions=partitions)]
    )
    [told] = answer(offset_for_leader_epoch, request, node, version).topics
    assert told.topic == topic
    return [(part.partition, part.error_code, part.leader_epoch, part.end_offset) for part in told.partitions]


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_an_epoch_ends_where_the_partition_says(node: FakeNode, version: int) -> None:
    assert ask(node, (0, -1, 0), (0, 3, 1), (0, 3, 3), version=version) == [(0, 0, 0, 5), (0, 0, 0, 5), (0, 0, 3, 9)]


def test_an_epoch_that_nobody_knows_has_no_end(node: FakeNode) -> None:
    assert ask(node, (0, -1, 9), (0, -1, -1)) == [(0, 0, -1, -1), (0, 0, -1, -1)]


def test_current_epochs_are_checked(node: FakeNode) -> None:
    assert ask(node, (0, 2, 0), (0, 4, 0)) == [
        (0, ErrorCode.FENCED_LEADER_EPOCH, -1, -1),
        (0, ErrorCode.UNKNOWN_LEADER_EPOCH, -1, -1),
    ]


def test_partitions_that_are_not_there_or_led_elsewhere_have_their_errors(node: FakeNode) -> None:
    assert [part[1] for part in ask(node, (2, -1, 0), (-1, -1, 0), (1, -1, 0))] == [3, 3, 6]
    assert ask(node, (0, -1, 0), topic="none") == [(0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1, -1)]


@pytest.mark.parametrize("replica", [-3, -2, 0, 5])
def test_replicas_are_told_the_same(node: FakeNode, replica: int) -> None:
    assert ask(node, (0, -1, 3), replica=replica) == [(0, 0, 3, 9)]


def test_nothing_is_answered_for_nothing(node: FakeNode) -> None:
    assert answer(offset_for_leader_epoch, OffsetForLeaderEpochRequest(), node, 4).topics == []
