"""Fetch: read batches from partitions, for consumers and for fetch sessions (KIP-227)."""

from __future__ import annotations

from typing import Any

from walrusmq.protocol.primitives import Array, Int8, Int16, Int32, Int64, Records, String, Uuid
from walrusmq.protocol.schema import field, message, struct


@struct
class ReplicaState:
    """Who fetches, if it is a replica; -1 is a consumer (KIP-903)."""

    replica_id: int = field(Int32, "15+", default=-1)
    replica_epoch: int = field(Int64, "15+", default=-1)


@struct
class FetchPartition:
    """From where to read one partition, and how much at the most."""

    partition: int = field(Int32, "0+")
    current_leader_epoch: int = field(Int32, "9+", default=-1, ignorable=True)
    fetch_offset: int = field(Int64, "0+")
    last_fetched_epoch: int = field(Int32, "12+", default=-1)
    log_start_offset: int = field(Int64, "5+", default=-1, ignorable=True)
    partition_max_bytes: int = field(Int32, "0+")
    replica_directory_id: bytes = field(Uuid, "17+", tag=0, ignorable=True)
    high_watermark: int = field(Int64, "18+", tag=1, default=0x7FFF_FFFF_FFFF_FFFF, ignorable=True)


@struct
class FetchTopic:
    """The partitions to read of one topic, named by its id from version 13 on (KIP-516)."""

    topic: str = field(String, "0-12", ignorable=True)
    topic_id: bytes = field(Uuid, "13+", ignorable=True)
    partitions: list[FetchPartition] = field(Array(FetchPartition), "0+")


@struct
class ForgottenTopic:
    """Partitions that leave the fetch session (KIP-227)."""

    topic: str = field(String, "7-12", ignorable=True)
    topic_id: bytes = field(Uuid, "13+", ignorable=True)
    partitions: list[int] = field(Array(Int32), "7+")


@message(api_key=1, kind="request", versions="4-18", flexible="12+")
class FetchRequest:
    """Read, or change a session and read; waits up to ``max_wait_ms`` for ``min_bytes``."""

    cluster_id: str | None = field(String, "12+", nullable="12+", tag=0, default=None, ignorable=True)
    replica_id: int = field(Int32, "0-14", default=-1)
    replica_state: ReplicaState = field(ReplicaState, "15+", tag=1)
    max_wait_ms: int = field(Int32, "0+")
    min_bytes: int = field(Int32, "0+")
    max_bytes: int = field(Int32, "3+", default=0x7FFF_FFFF, ignorable=True)
    isolation_level: int = field(Int8, "4+", ignorable=True)
    session_id: int = field(Int32, "7+", ignorable=True)
    session_epoch: int = field(Int32, "7+", default=-1, ignorable=True)
    topics: list[FetchTopic] = field(Array(FetchTopic), "0+")
    forgotten_topics_data: list[ForgottenTopic] = field(Array(ForgottenTopic), "7+")
    rack_id: str = field(String, "11+", ignorable=True)


@struct
class EpochEndOffset:
    """Where the log of the fetcher leaves this one, for replicas (KIP-595)."""

    epoch: int = field(Int32, "12+", default=-1)
    end_offset: int = field(Int64, "12+", default=-1)


@struct
class LeaderIdAndEpoch:
    """The partition's leader, told along with NOT_LEADER_OR_FOLLOWER; -1 is unknown (KIP-951)."""

    leader_id: int = field(Int32, "12+", default=-1)
    leader_epoch: int = field(Int32, "12+", default=-1)


@struct
class SnapshotId:
    """The snapshot that a replica of the metadata log should take instead (KIP-630)."""

    end_offset: int = field(Int64, "0+", default=-1)
    epoch: int = field(Int32, "0+", default=-1)


@struct
class AbortedTransaction:
    """A producer whose records from this offset on belong to an aborted transaction (KIP-98)."""

    producer_id: int = field(Int64, "4+")
    first_offset: int = field(Int64, "4+")


@struct
class PartitionData:
    """What was read of one partition; ``records`` may end in the middle of a batch only for old clients, never here."""

    partition_index: int = field(Int32, "0+")
    error_code: int = field(Int16, "0+")
    high_watermark: int = field(Int64, "0+")
    last_stable_offset: int = field(Int64, "4+", default=-1, ignorable=True)
    log_start_offset: int = field(Int64, "5+", default=-1, ignorable=True)
    diverging_epoch: EpochEndOffset = field(EpochEndOffset, "12+", tag=0)
    current_leader: LeaderIdAndEpoch = field(LeaderIdAndEpoch, "12+", tag=1)
    snapshot_id: SnapshotId = field(SnapshotId, "12+", tag=2)
    aborted_transactions: list[AbortedTransaction] | None = field(
        Array(AbortedTransaction), "4+", nullable="4+", ignorable=True
    )
    preferred_read_replica: int = field(Int32, "11+", default=-1)
    records: Any = field(Records, "0+", nullable="0+")


@struct
class FetchableTopicResponse:
    """The partitions of one topic."""

    topic: str = field(String, "0-12", ignorable=True)
    topic_id: bytes = field(Uuid, "13+", ignorable=True)
    partitions: list[PartitionData] = field(Array(PartitionData), "0+")


@struct
class NodeEndpoint:
    """Where a leader named in this response can be reached (KIP-951)."""

    node_id: int = field(Int32, "16+")
    host: str = field(String, "16+")
    port: int = field(Int32, "16+")
    rack: str | None = field(String, "16+", nullable="16+", default=None)


@message(api_key=1, kind="response", versions="4-18", flexible="12+")
class FetchResponse:
    """What was read; in an incremental session only the partitions with something to tell (KIP-227)."""

    throttle_time_ms: int = field(Int32, "1+", ignorable=True)
    error_code: int = field(Int16, "7+", ignorable=True)
    session_id: int = field(Int32, "7+")
    responses: list[FetchableTopicResponse] = field(Array(FetchableTopicResponse), "0+")
    node_endpoints: list[NodeEndpoint] = field(Array(NodeEndpoint), "16+", tag=0)
