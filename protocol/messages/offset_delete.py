"""OffsetDelete: forget a group's offsets of topics that it isn't subscribed to (KIP-496)."""

from __future__ import annotations

from walrusmq.protocol.primitives import Array, Int16, Int32, String
from walrusmq.protocol.schema import field, message, struct


@struct
class OffsetDeleteRequestPartition:
    """A partition whose offset is to go."""

    partition_index: int = field(Int32, "0+")


@struct
class OffsetDeleteRequestTopic:
    """The partitions of one topic."""

    name: str = field(String, "0+")
    partitions: list[OffsetDeleteRequestPartition] = field(Array(OffsetDeleteRequestPartition), "0+")


@message(api_key=47, kind="request", versions="0", flexible="none")
class OffsetDeleteRequest:
    """Delete offsets of one group."""

    group_id: str = field(String, "0+")
    topics: list[OffsetDeleteRequestTopic] = field(Array(OffsetDeleteRequestTopic), "0+")


@struct
class OffsetDeleteResponsePartition:
    """What became of one partition's offset."""

    partition_index: int = field(Int32, "0+")
    error_code: int = field(Int16, "0+")


@struct
class OffsetDeleteResponseTopic:
    """The outcome for each partition of one topic."""

    name: str = field(String, "0+")
    partitions: list[OffsetDeleteResponsePartition] = field(Array(OffsetDeleteResponsePartition), "0+")


@message(api_key=47, kind="response", versions="0", flexible="none")
class OffsetDeleteResponse:
    """The outcome for each topic, or the error of the group."""

    error_code: int = field(Int16, "0+")
    throttle_time_ms: int = field(Int32, "0+", ignorable=True)
    topics: list[OffsetDeleteResponseTopic] = field(Array(OffsetDeleteResponseTopic), "0+")
