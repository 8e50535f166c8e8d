"""DeleteRecords: move the log start offset of partitions forward (KIP-107)."""

from __future__ import annotations

from walrusmq.protocol.primitives import Array, Int16, Int32, Int64, String
from walrusmq.protocol.schema import field, message, struct


@struct
class DeleteRecordsPartition:
    """A partition and its new log start offset; -1 stands for the high watermark."""

    partition_index: int = field(Int32, "0+")
    offset: int = field(Int64, "0+")


@struct
class DeleteRecordsTopic:
    """The partitions of one topic."""

    name: str = field(String, "0+")
    partitions: list[DeleteRecordsPartition] = field(Array(DeleteRecordsPartition), "0+")


@message(api_key=21, kind="request", versions="0-2", flexible="2+")
class DeleteRecordsRequest:
    """Delete the records before an offset."""

    topics: list[DeleteRecordsTopic] = field(Array(DeleteRecordsTopic), "0+")
    timeout_ms: int = field(Int32, "0+")


@struct
class DeleteRecordsPartitionResult:
    """What became of one partition: its log start offset, or -1 with an error."""

    partition_index: int = field(Int32, "0+")
    low_watermark: int = field(Int64, "0+")
    error_code: int = field(Int16, "0+")


@struct
class DeleteRecordsTopicResult:
    """The outcome for each partition of one topic."""

    name: str = field(String, "0+")
    partitions: list[DeleteRecordsPartitionResult] = field(Array(DeleteRecordsPartitionResult), "0+")


@message(api_key=21, kind="response", versions="0-2", flexible="2+")
class DeleteRecordsResponse:
    """The outcome for each topic."""

    throttle_time_ms: int = field(Int32, "0+")
    topics: list[DeleteRecordsTopicResult] = field(Array(DeleteRecordsTopicResult), "0+")
