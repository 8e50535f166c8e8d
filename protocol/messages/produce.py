"""Produce: append a batch of records to each of some partitions."""

from __future__ import annotations

from typing import Any

from walrusmq.protocol.primitives import Array, Int16, Int32, Int64, Records, String, Uuid
from walrusmq.protocol.schema import field, message, struct


@struct
class PartitionProduceData:
    """What goes to one partition: from version 3 on exactly one batch of magic 2."""

    index: int = field(Int32, "0+")
    records: Any = field(Records, "0+", nullable="0+")


@struct
class TopicProduceData:
    """What goes to one topic, named by its id from version 13 on (KIP-516)."""

    name: str = field(String, "0-12", ignorable=True)
    topic_id: bytes = field(Uuid, "13+", ignorable=True)
    partition_data: list[PartitionProduceData] = field(Array(PartitionProduceData), "0+")


@message(api_key=0, kind="request", versions="3-13", flexible="9+")
class ProduceRequest:
    """Append batches; ``acks`` is 0 (no response at all), 1 or -1 (all)."""

    transactional_id: str | None = field(String, "3+", nullable="3+", default=None)
    acks: int = field(Int16, "0+")
    timeout_ms: int = field(Int32, "0+")
    topic_data: list[TopicProduceData] = field(Array(TopicProduceData), "0+")


@struct
class BatchIndexAndErrorMessage:
    """A record that was refused, by its place in the batch (KIP-467)."""

    batch_index: int = field(Int32, "8+")
    batch_index_error_message: str | None = field(String, "8+", nullable="8+", default=None)


@struct
class LeaderIdAndEpoch:
    """The partition's leader, told along with NOT_LEADER_OR_FOLLOWER; -1 is unknown (KIP-951)."""

    leader_id: int = field(Int32, "10+", default=-1)
    leader_epoch: int = field(Int32, "10+", default=-1)


@struct
class PartitionProduceResponse:
    """Where the batch went, or why not; ``log_append_time_ms`` is -1 unless the topic uses LogAppendTime."""

    index: int = field(Int32, "0+")
    error_code: int = field(Int16, "0+")
    base_offset: int = field(Int64, "0+")
    log_append_time_ms: int = field(Int64, "2+", default=-1, ignorable=True)
    log_start_offset: int = field(Int64, "5+", default=-1, ignorable=True)
    record_errors: list[BatchIndexAndErrorMessage] = field(Array(BatchIndexAndErrorMessage), "8+", ignorable=True)
    error_message: str | None = field(String, "8+", nullable="8+", default=None, ignorable=True)
    current_leader: LeaderIdAndEpoch = field(LeaderIdAndEpoch, "10+", tag=0)


@struct
class TopicProduceResponse:
    """The partitions of one topic, in the request's order."""

    name: str = field(String, "0-12", ignorable=True)
    topic_id: bytes = field(Uuid, "13+", ignorable=True)
    partition_responses: list[PartitionProduceResponse] = field(Array(PartitionProduceResponse), "0+")


@struct
class NodeEndpoint:
    """Where a leader named in this response can be reached (KIP-951)."""

    node_id: int = field(Int32, "10+")
    host: str = field(String, "10+")
    port: int = field(Int32, "10+")
    rack: str | None = field(String, "10+", nullable="10+", default=None)


@message(api_key=0, kind="response", versions="3-13", flexible="9+")
class ProduceResponse:
    """The outcome for each partition; there is none for ``acks`` 0."""

    responses: list[TopicProduceResponse] = field(Array(TopicProduceResponse), "0+")
    throttle_time_ms: int = field(Int32, "1+", ignorable=True)
    node_endpoints: list[NodeEndpoint] = field(Array(NodeEndpoint), "10+", tag=0)
