"""DescribeTopicPartitions: topics and their partitions, page by page (KIP-966)."""

from __future__ import annotations

from walrusmq.protocol.primitives import Array, Bool, Int16, Int32, String, Uuid
from walrusmq.protocol.schema import field, message, struct


@struct
class TopicRequest:
    """A topic to describe."""

    name: str = field(String, "0+")


@struct
class Cursor:
    """The topic and partition where a page begins."""

    topic_name: str = field(String, "0+")
    partition_index: int = field(Int32, "0+")


@message(api_key=75, kind="request", versions="0", flexible="0+")
class DescribeTopicPartitionsRequest:
    """Ask for topics, all if none is named, from a cursor on."""

    topics: list[TopicRequest] = field(Array(TopicRequest), "0+")
    response_partition_limit: int = field(Int32, "0+", default=2000)
    cursor: Cursor | None = field(Cursor, "0+", nullable="0+", default=None)


@struct
class DescribeTopicPartitionsResponsePartition:
    """One partition, with the replicas that may be elected though not in sync (KIP-966)."""

    error_code: int = field(Int16, "0+")
    partition_index: int = field(Int32, "0+")
    leader_id: int = field(Int32, "0+")
    leader_epoch: int = field(Int32, "0+", default=-1, ignorable=True)
    replica_nodes: list[int] = field(Array(Int32), "0+")
    isr_nodes: list[int] = field(Array(Int32), "0+")
    eligible_leader_replicas: list[int] | None = field(Array(Int32), "0+", nullable="0+", default=None)
    last_known_elr: list[int] | None = field(Array(Int32), "0+", nullable="0+", default=None)
    offline_replicas: list[int] = field(Array(Int32), "0+", ignorable=True)


@struct
class DescribeTopicPartitionsResponseTopic:
    """One topic with the partitions on this page."""

    error_code: int = field(Int16, "0+")
    name: str | None = field(String, "0+", nullable="0+")
    topic_id: bytes = field(Uuid, "0+", ignorable=True)
    is_internal: bool = field(Bool, "0+", ignorable=True)
    partitions: list[DescribeTopicPartitionsResponsePartition] = field(
        Array(DescribeTopicPartitionsResponsePartition), "0+"
    )
    topic_authorized_operations: int = field(Int32, "0+", default=-0x8000_0000)


@message(api_key=75, kind="response", versions="0", flexible="0+")
class DescribeTopicPartitionsResponse:
    """A page, and the cursor of the next one or null."""

    throttle_time_ms: int = field(Int32, "0+", ignorable=True)
    topics: list[DescribeTopicPartitionsResponseTopic] = field(Array(DescribeTopicPartitionsResponseTopic), "0+")
    next_cursor: Cursor | None = field(Cursor, "0+", nullable="0+", default=None)
