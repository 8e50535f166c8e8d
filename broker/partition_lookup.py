"""Finding a partition by name, or the error that says why this node can't serve it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from walrusmq.protocol.errors import FencedLeaderEpoch, KafkaError, NotLeaderOrFollower, UnknownTopicOrPartition

if TYPE_CHECKING:
    from walrusmq.broker.node import Node
    from walrusmq.segments.partition import Partition

#: A client that doesn't say which leader epoch it believes in.
NO_EPOCH = -1


def led_partition(node: Node, topic: str, index: int, current_leader_epoch: int) -> Partition:
    """The partition, if this node leads it and the epoch that a client believes in is its own, or isn't said.

    Raises NotLeaderOrFollower, UnknownTopicOrPartition, FencedLeaderEpoch or UnknownLeaderEpoch.
    """
    partition = node.partitions_by_name.get(topic, {}).get(index)
    if partition is None:
        raise _why_not_led(node, topic, index)
    if current_leader_epoch < NO_EPOCH:
        # for Fetch every negative epoch is none, in Kafka too: that's what the partition itself goes by
        raise FencedLeaderEpoch(f"{current_leader_epoch} is no leader epoch")
    partition.check_leader_epoch(current_leader_epoch)
    return partition


def _why_not_led(node: Node, topic: str, index: int) -> KafkaError:
    known = node.image.topics_by_name.get(topic)
    if known is None:
        return UnknownTopicOrPartition(f"there is no topic {topic}")
    if not 0 <= index < len(known.partitions):
        return UnknownTopicOrPartition(f"topic {topic} has {len(known.partitions)} partitions, and no {index}")
    return NotLeaderOrFollower(f"node {node.node_id} doesn't lead {topic}/{index}")
