"""DescribeProducers: the producers that write to partitions (KIP-664)."""

from __future__ import annotations

from walrusmq.protocol.primitives import Array, Int16, Int32, Int64, String
from walrusmq.protocol.schema import field, message, struct


@struct
class TopicRequest:
    """The partitions of one topic to ask about."""

    name: str = field(String, "0+")
    partition_indexes: list[int] = field(Array(Int32), "0+")


@message(api_key=61, kind="request", versions="0", flexible="0+")
class DescribeProducersRequest:
    """Ask about the producers of partitions."""

    topics: list[TopicRequest] = field(Array(TopicRequest), "0+")


@struct
class ProducerState:
    """A producer's last batch, and the start of its open transaction; -1 where there is none."""

    producer_id: int = field(Int64, "0+")
    producer_epoch: int = field(Int32, "0+")
    last_sequence: int = field(Int32, "0+", default=-1)
    last_timestamp: int = field(Int64, "0+", default=-1)
    coordinator_epoch: int = field(Int32, "0+")
    current_txn_start_offset: int = field(Int64, "0+", default=-1)


@struct
class PartitionResponse:
    """The producers of one partition."""

    partition_index: int = field(Int32, "0+")
    error_code: int = field(Int16, "0+")
    error_message: str | None = field(String, "0+", default=None, nullable="0+")
    active_producers: list[ProducerState] = field(Array(ProducerState), "0+")


@struct
class TopicResponse:
    """The partitions of one topic."""

    name: str = field(String, "0+")
    partitions: list[PartitionResponse] = field(Array(PartitionResponse), "0+")


@message(api_key=61, kind="response", versions="0", flexible="0+")
class DescribeProducersResponse:
    """The producers by partition."""

    throttle_time_ms: int = field(Int32, "0+")
    topics: list[TopicResponse] = field(Array(TopicResponse), "0+")
