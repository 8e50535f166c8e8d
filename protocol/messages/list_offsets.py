"""ListOffsets: find an offset by timestamp, or the earliest, the latest and other special ones."""

from __future__ import annotations

from walrusmq.protocol.primitives import Array, Int8, Int16, Int32, Int64, String
from walrusmq.protocol.schema import field, message, struct


@struct
class ListOffsetsPartition:
    """One partition and its timestamp in ms, or -1 latest, -2 earliest, -3 maximum timestamp (KIP-734), and others."""

    partition_index: int = field(Int32, "0+")
    current_leader_epoch: int = field(Int32, "4+", default=-1, ignorable=True)
    timestamp: int = field(Int64, "0+")


@struct
class ListOffsetsTopic:
    """The partitions of one topic, by name in all versions."""

    name: str = field(String, "0+")
    partitions: list[ListOffsetsPartition] = field(Array(ListOffsetsPartition), "0+")


@message(api_key=2, kind="request", versions="1-11", flexible="6+")
class ListOffsetsRequest:
    """Ask for offsets; ``isolation_level`` 1 counts only what read_committed consumers see (KIP-98)."""

    replica_id: int = field(Int32, "0+")
    isolation_level: int = field(Int8, "2+")
    topics: list[ListOffsetsTopic] = field(Array(ListOffsetsTopic), "0+")
    timeout_ms: int = field(Int32, "10+", ignorable=True)


@struct
class ListOffsetsPartitionResponse:
    """The first offset at or after the timestamp; -1 where there is none."""

    partition_index: int = field(Int32, "0+")
    error_code: int = field(Int16, "0+")
    timestamp: int = field(Int64, "1+", default=-1)
    offset: int = field(Int64, "1+", default=-1)
    leader_epoch: int = field(Int32, "4+", default=-1)


@struct
class ListOffsetsTopicResponse:
    """The partitions of one topic, in the request's order."""

    name: str = field(String, "0+")
    partitions: list[ListOffsetsPartitionResponse] = field(Array(ListOffsetsPartitionResponse), "0+")


@message(api_key=2, kind="response", versions="1-11", flexible="6+")
class ListOffsetsResponse:
    """An offset for each partition."""

    throttle_time_ms: int = field(Int32, "2+", ignorable=True)
    topics: list[ListOffsetsTopicResponse] = field(Array(ListOffsetsTopicResponse), "0+")
