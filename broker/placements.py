"""Where partitions are, as clients are told: leader, replicas, and which of those aren't there."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from walrusmq.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from walrusmq.broker.image import ClusterImage, PartitionImage

NO_LEADER = -1


class Placement(NamedTuple):
    """Shared by answers, and never changed."""

    error_code: ErrorCode
    leader_id: int
    replica_nodes: list[int]
    isr_nodes: list[int]
    offline_replicas: list[int]


class Placements:
    """Those of an image as it is now: one for all partitions on the same nodes, since thousands of them have few."""

    __slots__ = ("_by_nodes", "_nodes")

    def __init__(self, image: ClusterImage) -> None:
        self._nodes = image.nodes
        self._by_nodes: dict[tuple[tuple[int, ...], tuple[int, ...], int], Placement] = {}

    def of(self, partition: PartitionImage) -> Placement:
        """Where a partition is; one whose leader isn't there has an error and no leader."""
        key = (partition.assigned, partition.open.members, partition.open.leader)
        placement = self._by_nodes.get(key)
        if placement is None:
            placement = self._by_nodes[key] = self._place(*key)
        return placement

    def _place(self, assigned: tuple[int, ...], members: tuple[int, ...], leader: int) -> Placement:
        is_led = leader in self._nodes
        return Placement(
            error_code=ErrorCode.NONE if is_led else ErrorCode.LEADER_NOT_AVAILABLE,
            leader_id=leader if is_led else NO_LEADER,
            replica_nodes=list(assigned),
            isr_nodes=list(members),
            offline_replicas=[node for node in assigned if node not in self._nodes],
        )
