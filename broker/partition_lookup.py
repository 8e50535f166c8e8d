"""Finding a partition by name, or the error that says why this node can't serve it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from walrusmq.protocol.errors import NotLeaderOrFollower, UnknownTopicOrPartition

if TYPE_CHECKING:
    from walrusmq.broker.node import Node
    from walrusmq.segments.partition import Partition


def led_partition(node: Node, topic: str, index: int) -> Partition:
    """The partition, if this node leads it; else raises NotLeaderOrFollower or UnknownTopicOrPartition."""
    partition = node.partitions_by_name.get(topic, {}).get(index)
    if partition is not None:
        return partition
    known = node.image.topics_by_name.get(topic)
    if known is None:
        raise UnknownTopicOrPartition(f"there is no topic {topic}")
    if not 0 <= index < len(known.partitions):
        raise UnknownTopicOrPartition(f"topic {topic} has {len(known.partitions)} partitions, and no {index}")
    raise NotLeaderOrFollower(f"node {node.node_id} doesn't lead {topic}/{index}")
