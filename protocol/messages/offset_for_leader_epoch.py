"""OffsetForLeaderEpoch: where a leader epoch ended, for consumers that check for truncation (KIP-320)."""

from __future__ import annotations

from walrusmq.protocol.primitives import Array, Int16, Int32, Int64, String
from walrusmq.protocol.schema import field, message, struct


@struct
class OffsetForLeaderPartition:
    """The epoch that the client knows of a partition, and the one to look up."""

    partition: int = field(Int32, "0+")
    current_leader_epoch: int = field(Int32, "2+", default=-1, ignorable=True)
    leader_epoch: int = field(Int32, "0+")


@struct
class OffsetForLeaderTopic:
    """The partitions of one topic, by name in all versions."""

    topic: str = field(String, "0+")
    partitions: list[OffsetForLeaderPartition] = field(Array(OffsetForLeaderPartition), "0+")


@message(api_key=23, kind="request", versions="2-4", flexible="4+")
class OffsetForLeaderEpochRequest:
    """Ask where epochs ended; ``replica_id`` -2 is a debugging consumer, -1 an ordinary one."""

    replica_id: int = field(Int32, "3+", default=-2, ignorable=True)
    topics: list[OffsetForLeaderTopic] = field(Array(OffsetForLeaderTopic), "0+")


@struct
class EpochEndOffset:
    """The largest epoch up to the one asked for, and its end; -1 where it isn't known."""

    error_code: int = field(Int16, "0+")
    partition: int = field(Int32, "0+")
    leader_epoch: int = field(Int32, "1+", default=-1, ignorable=True)
    end_offset: int = field(Int64, "0+", default=-1)


@struct
class OffsetForLeaderTopicResult:
    """The partitions of one topic."""

    topic: str = field(String, "0+")
    partitions: list[EpochEndOffset] = field(Array(EpochEndOffset), "0+")


@message(api_key=23, kind="response", versions="2-4", flexible="4+")
class OffsetForLeaderEpochResponse:
    """An end offset for each partition."""

    throttle_time_ms: int = field(Int32, "2+", ignorable=True)
    topics: list[OffsetForLeaderTopicResult] = field(Array(OffsetForLeaderTopicResult), "0+")
