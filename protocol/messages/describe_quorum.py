"""DescribeQuorum: the voters and observers of the metadata log (KIP-595, KIP-836, KIP-853)."""

from __future__ import annotations

from walrusmq.protocol.primitives import Array, Int16, Int32, Int64, String, Uint16, Uuid
from walrusmq.protocol.schema import field, message, struct


@struct
class RequestedPartition:
    """A partition to ask about. Kafka calls it PartitionData, like that of the response."""

    partition_index: int = field(Int32, "0+")


@struct
class RequestedTopic:
    """A topic to ask about. Kafka calls it TopicData, like that of the response."""

    topic_name: str = field(String, "0+")
    partitions: list[RequestedPartition] = field(Array(RequestedPartition), "0+")


@message(api_key=55, kind="request", versions="0-2", flexible="0+")
class DescribeQuorumRequest:
    """Ask about the partitions of quorums; there is only ``__cluster_metadata`` 0."""

    topics: list[RequestedTopic] = field(Array(RequestedTopic), "0+")


@struct
class ReplicaState:
    """A voter or observer and how far it is; timestamps in milliseconds, -1 where unknown."""

    replica_id: int = field(Int32, "0+")
    replica_directory_id: bytes = field(Uuid, "2+")
    log_end_offset: int = field(Int64, "0+")
    last_fetch_timestamp: int = field(Int64, "1+", default=-1, ignorable=True)
    last_caught_up_timestamp: int = field(Int64, "1+", default=-1, ignorable=True)


@struct
class PartitionData:
    """The leader, the voters and the observers of one partition."""

    partition_index: int = field(Int32, "0+")
    error_code: int = field(Int16, "0+")
    error_message: str | None = field(String, "2+", nullable="2+", ignorable=True)
    leader_id: int = field(Int32, "0+")
    leader_epoch: int = field(Int32, "0+")
    high_watermark: int = field(Int64, "0+")
    current_voters: list[ReplicaState] = field(Array(ReplicaState), "0+")
    observers: list[ReplicaState] = field(Array(ReplicaState), "0+")


@struct
class TopicData:
    """The partitions of one topic."""

    topic_name: str = field(String, "0+")
    partitions: list[PartitionData] = field(Array(PartitionData), "0+")


@struct
class Listener:
    """An address of a node."""

    name: str = field(String, "2+")
    host: str = field(String, "2+")
    port: int = field(Uint16, "2+")


@struct
class Node:
    """A node that is a voter, and how the others reach it."""

    node_id: int = field(Int32, "2+")
    listeners: list[Listener] = field(Array(Listener), "2+")


@message(api_key=55, kind="response", versions="0-2", flexible="0+")
class DescribeQuorumResponse:
    """The state of the quorum."""

    error_code: int = field(Int16, "0+")
    error_message: str | None = field(String, "2+", nullable="2+", ignorable=True)
    topics: list[TopicData] = field(Array(TopicData), "0+")
    nodes: list[Node] = field(Array(Node), "2+")
