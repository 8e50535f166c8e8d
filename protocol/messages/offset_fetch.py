"""OffsetFetch: how far groups have come, for one up to version 7, for several from version 8 on (KIP-709)."""

from __future__ import annotations

from walrusmq.protocol.primitives import Array, Bool, Int16, Int32, Int64, String, Uuid
from walrusmq.protocol.schema import field, message, struct


@struct
class OffsetFetchRequestTopic:
    """The partitions of one topic, up to version 7."""

    name: str = field(String, "0-7")
    partition_indexes: list[int] = field(Array(Int32), "0-7")


@struct
class OffsetFetchRequestTopics:
    """The partitions of one topic, by name in versions 8 and 9, by id from version 10 on (KIP-848)."""

    name: str = field(String, "8-9", ignorable=True)
    topic_id: bytes = field(Uuid, "10+", ignorable=True)
    partition_indexes: list[int] = field(Array(Int32), "8+")


@struct
class OffsetFetchRequestGroup:
    """A group and the partitions to ask about; null means all that it has offsets for."""

    group_id: str = field(String, "8+")
    member_id: str | None = field(String, "9+", default=None, nullable="9+", ignorable=True)
    member_epoch: int = field(Int32, "9+", default=-1, ignorable=True)
    topics: list[OffsetFetchRequestTopics] | None = field(Array(OffsetFetchRequestTopics), "8+", nullable="8+")


@message(api_key=9, kind="request", versions="1-10", flexible="6+")
class OffsetFetchRequest:
    """Ask for offsets; ``require_stable`` wants an error where a transaction's are pending (KIP-447)."""

    group_id: str = field(String, "0-7")
    topics: list[OffsetFetchRequestTopic] | None = field(Array(OffsetFetchRequestTopic), "0-7", nullable="2-7")
    groups: list[OffsetFetchRequestGroup] = field(Array(OffsetFetchRequestGroup), "8+")
    require_stable: bool = field(Bool, "7+")


@struct
class OffsetFetchResponsePartition:
    """The offset of one partition, up to version 7; -1 where there is none."""

    partition_index: int = field(Int32, "0-7")
    committed_offset: int = field(Int64, "0-7")
    committed_leader_epoch: int = field(Int32, "5-7", default=-1, ignorable=True)
    metadata: str | None = field(String, "0-7", nullable="0-7")
    error_code: int = field(Int16, "0-7")


@struct
class OffsetFetchResponseTopic:
    """The offsets of one topic, up to version 7."""

    name: str = field(String, "0-7")
    partitions: list[OffsetFetchResponsePartition] = field(Array(OffsetFetchResponsePartition), "0-7")


@struct
class OffsetFetchResponsePartitions:
    """The offset of one partition, from version 8 on; -1 where there is none."""

    partition_index: int = field(Int32, "8+")
    committed_offset: int = field(Int64, "8+")
    committed_leader_epoch: int = field(Int32, "8+", default=-1, ignorable=True)
    metadata: str | None = field(String, "8+", nullable="8+")
    error_code: int = field(Int16, "8+")


@struct
class OffsetFetchResponseTopics:
    """The offsets of one topic, from version 8 on."""

    name: str = field(String, "8-9", ignorable=True)
    topic_id: bytes = field(Uuid, "10+", ignorable=True)
    partitions: list[OffsetFetchResponsePartitions] = field(Array(OffsetFetchResponsePartitions), "8+")


@struct
class OffsetFetchResponseGroup:
    """The offsets of one group."""

    group_id: str = field(String, "8+")
    topics: list[OffsetFetchResponseTopics] = field(Array(OffsetFetchResponseTopics), "8+")
    error_code: int = field(Int16, "8+")


@message(api_key=9, kind="response", versions="1-10", flexible="6+")
class OffsetFetchResponse:
    """The offsets of one group up to version 7, of several from version 8 on."""

    throttle_time_ms: int = field(Int32, "3+", ignorable=True)
    topics: list[OffsetFetchResponseTopic] = field(Array(OffsetFetchResponseTopic), "0-7")
    error_code: int = field(Int16, "2-7", ignorable=True)
    groups: list[OffsetFetchResponseGroup] = field(Array(OffsetFetchResponseGroup), "8+")
