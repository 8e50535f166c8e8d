"""ListPartitionReassignments: which partitions are moving to other replicas (KIP-455)."""

from __future__ import annotations

from walrusmq.protocol.primitives import Array, Int16, Int32, String
from walrusmq.protocol.schema import field, message, struct


@struct
class ListPartitionReassignmentsTopics:
    """The partitions of one topic to ask about."""

    name: str = field(String, "0+")
    partition_indexes: list[int] = field(Array(Int32), "0+")


@message(api_key=46, kind="request", versions="0", flexible="0+")
class ListPartitionReassignmentsRequest:
    """Ask about partitions; null means all of them."""

    timeout_ms: int = field(Int32, "0+", default=60000)
    topics: list[ListPartitionReassignmentsTopics] | None = field(
        Array(ListPartitionReassignmentsTopics), "0+", default=None, nullable="0+"
    )


@struct
class OngoingPartitionReassignment:
    """A partition that moves; ``replicas`` includes those to come and those to go."""

    partition_index: int = field(Int32, "0+")
    replicas: list[int] = field(Array(Int32), "0+")
    adding_replicas: list[int] = field(Array(Int32), "0+")
    removing_replicas: list[int] = field(Array(Int32), "0+")


@struct
class OngoingTopicReassignment:
    """The moving partitions of one topic."""

    name: str = field(String, "0+")
    partitions: list[OngoingPartitionReassignment] = field(Array(OngoingPartitionReassignment), "0+")


@message(api_key=46, kind="response", versions="0", flexible="0+")
class ListPartitionReassignmentsResponse:
    """The partitions that move."""

    throttle_time_ms: int = field(Int32, "0+")
    error_code: int = field(Int16, "0+")
    error_message: str | None = field(String, "0+", nullable="0+")
    topics: list[OngoingTopicReassignment] = field(Array(OngoingTopicReassignment), "0+")
