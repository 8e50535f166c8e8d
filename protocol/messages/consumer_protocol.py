"""The consumer protocol: what consumers tell each other through JoinGroup and SyncGroup (KIP-429, KIP-792, KIP-881).

An int16 stands before each message: its version.
"""

from __future__ import annotations

from walrusmq.protocol.primitives import Array, Bytes, Int32, String
from walrusmq.protocol.schema import field, message, struct


@struct
class TopicPartition:
    """Partitions of one topic."""

    topic: str = field(String, "0+")
    partitions: list[int] = field(Array(Int32), "0+")


@message(api_key=None, kind="data", versions="0-3", flexible="none")
class ConsumerProtocolSubscription:
    """What a consumer wants, and what it still owns, for a cooperative rebalance (KIP-429)."""

    topics: list[str] = field(Array(String), "0+")
    user_data: bytes | None = field(Bytes, "0+", default=None, nullable="0+")
    owned_partitions: list[TopicPartition] = field(Array(TopicPartition), "1+", ignorable=True)
    generation_id: int = field(Int32, "2+", default=-1, ignorable=True)
    rack_id: str | None = field(String, "3+", default=None, nullable="3+", ignorable=True)


@message(api_key=None, kind="data", versions="0-3", flexible="none")
class ConsumerProtocolAssignment:
    """What a consumer gets."""

    assigned_partitions: list[TopicPartition] = field(Array(TopicPartition), "0+")
    user_data: bytes | None = field(Bytes, "0+", default=None, nullable="0+")
