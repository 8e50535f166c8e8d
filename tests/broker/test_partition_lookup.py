"""Partitions by name, and the errors of those that this node doesn't serve."""

from __future__ import annotations

import pytest
from support.handler_fakes import FakeNode, FakePartition

from walrusmq.broker.commands import CreateTopic, NewPartition
from walrusmq.broker.partition_lookup import NO_EPOCH, led_partition
from walrusmq.protocol.errors import (
    FencedLeaderEpoch,
    KafkaError,
    NotLeaderOrFollower,
    UnknownLeaderEpoch,
    UnknownTopicOrPartition,
)


def a_node() -> FakeNode:
    node = FakeNode()
    node.apply(CreateTopic(topic_id=b"t" * 16, name="t", partitions=[NewPartition(assigned=[1])] * 2))
    return node


def test_a_partition_that_this_node_leads_is_found() -> None:
    node, partition = a_node(), FakePartition()
    node.partitions_by_name["t"] = {1: partition}
    assert led_partition(node, "t", 1, NO_EPOCH) is partition  # type: ignore[arg-type, comparison-overlap]


@pytest.mark.parametrize(("epoch", "error"), [(-2, FencedLeaderEpoch), (4, FencedLeaderEpoch), (6, UnknownLeaderEpoch)])
def test_a_client_that_believes_in_another_leader_epoch_is_told(epoch: int, error: type[KafkaError]) -> None:
    node, partition = a_node(), FakePartition(leader_epoch=5)
    node.partitions_by_name["t"] = {1: partition}
    for said in (NO_EPOCH, 5):
        assert led_partition(node, "t", 1, said) is partition  # type: ignore[arg-type, comparison-overlap]
    with pytest.raises(error):
        led_partition(node, "t", 1, epoch)  # type: ignore[arg-type]


def test_a_partition_that_another_node_leads_is_not_ours() -> None:
    with pytest.raises(NotLeaderOrFollower):
        led_partition(a_node(), "t", 1, NO_EPOCH)  # type: ignore[arg-type]


@pytest.mark.parametrize(("topic", "index"), [("none", 0), ("a b", 0), ("t", 2), ("t", -1)])
def test_what_the_image_does_not_have_is_unknown(topic: str, index: int) -> None:
    with pytest.raises(UnknownTopicOrPartition):
        led_partition(a_node(), topic, index, NO_EPOCH)  # type: ignore[arg-type]
