"""Where partitions are, as clients are told."""

from __future__ import annotations

from walrusmq.broker.image import ClusterImage
from walrusmq.broker.image_parts import NodeImage, PartitionImage
from walrusmq.broker.placements import Placements
from walrusmq.protocol.errors import ErrorCode
from walrusmq.segments.facts import OpenSegment


def image_of(*node_ids: int) -> ClusterImage:
    image = ClusterImage()
    image.nodes = {node_id: NodeImage(node_id, 1, None, {}, "0", 1) for node_id in node_ids}
    return image


def partition(*assigned: int, leader: int, members: tuple[int, ...]) -> PartitionImage:
    return PartitionImage(assigned, 0, [], OpenSegment(1, leader, 0, 0, members), (1,) * len(members))


def test_a_partition_is_on_its_assigned_nodes_and_in_sync_on_the_members_of_its_open_segment() -> None:
    placement = Placements(image_of(1, 2, 3)).of(partition(1, 2, 3, leader=2, members=(2, 3)))
    assert placement == (ErrorCode.NONE, 2, [1, 2, 3], [2, 3], [])


def test_a_partition_whose_leader_is_not_there_has_none() -> None:
    placement = Placements(image_of(1)).of(partition(1, 2, leader=2, members=(1, 2)))
    assert placement == (ErrorCode.LEADER_NOT_AVAILABLE, -1, [1, 2], [1, 2], [2])


def test_partitions_on_the_same_nodes_share_a_placement() -> None:
    placements = Placements(image_of(1, 2))
    first = placements.of(partition(1, 2, leader=1, members=(1, 2)))
    assert placements.of(partition(1, 2, leader=1, members=(1, 2))) is first
    assert placements.of(partition(1, 2, leader=2, members=(1, 2))) is not first
