"""OffsetCommit: store how far a group has come."""

from __future__ import annotations

from walrusmq.protocol.primitives import Array, Int16, Int32, Int64, String, Uuid
from walrusmq.protocol.schema import field, message, struct


@struct
class OffsetCommitRequestPartition:
    """The next offset to read of one partition; its leader epoch (KIP-320) and free text beside it."""

    partition_index: int = field(Int32, "0+")
    committed_offset: int = field(Int64, "0+")
    committed_leader_epoch: int = field(Int32, "6+", default=-1, ignorable=True)
    committed_metadata: str | None = field(String, "0+", nullable="0+")


@struct
class OffsetCommitRequestTopic:
    """The partitions of one topic, by name up to version 9, by id from version 10 on (KIP-848)."""

    name: str = field(String, "0-9", ignorable=True)
    topic_id: bytes = field(Uuid, "10+", ignorable=True)
    partitions: list[OffsetCommitRequestPartition] = field(Array(OffsetCommitRequestPartition), "0+")


@message(api_key=8, kind="request", versions="2-10", flexible="8+")
class OffsetCommitRequest:
    """Commit offsets, as a member in its generation, or with -1 and no member id from outside the group."""

    group_id: str = field(String, "0+")
    generation_id_or_member_epoch: int = field(Int32, "1+", default=-1, ignorable=True)
    member_id: str = field(String, "1+", ignorable=True)
    group_instance_id: str | None = field(String, "7+", default=None, nullable="7+")
    retention_time_ms: int = field(Int64, "2-4", default=-1, ignorable=True)
    topics: list[OffsetCommitRequestTopic] = field(Array(OffsetCommitRequestTopic), "0+")


@struct
class OffsetCommitResponsePartition:
    """What became of one partition's offset."""

    partition_index: int = field(Int32, "0+")
    error_code: int = field(Int16, "0+")


@struct
class OffsetCommitResponseTopic:
    """The outcome for each partition of one topic."""

    name: str = field(String, "0-9", ignorable=True)
    topic_id: bytes = field(Uuid, "10+", ignorable=True)
    partitions: list[OffsetCommitResponsePartition] = field(Array(OffsetCommitResponsePartition), "0+")


@message(api_key=8, kind="response", versions="2-10", flexible="8+")
class OffsetCommitResponse:
    """The outcome for each topic."""

    throttle_time_ms: int = field(Int32, "3+", ignorable=True)
    topics: list[OffsetCommitResponseTopic] = field(Array(OffsetCommitResponseTopic), "0+")
