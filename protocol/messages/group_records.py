"""The records of ``__consumer_offsets``: the keys and values in which Kafka keeps offsets and groups.

An int16 stands before each: before a key the type of the record, before a value its version.
"""

from __future__ import annotations

from walrusmq.protocol.primitives import Array, Bytes, Int32, Int64, String, Uuid
from walrusmq.protocol.schema import field, message, struct


@message(api_key=None, kind="coordinator-key", versions="0", flexible="none")
class OffsetCommitKey:
    """The key of a committed offset."""

    group: str = field(String, "0")
    topic: str = field(String, "0")
    partition: int = field(Int32, "0")


@message(api_key=None, kind="coordinator-value", versions="0-4", flexible="4+")
class OffsetCommitValue:
    """A committed offset; from version 3 on it has a leader epoch (KIP-320). A null value deletes it."""

    offset: int = field(Int64, "0+")
    leader_epoch: int = field(Int32, "3+", default=-1, ignorable=True)
    metadata: str = field(String, "0+")
    commit_timestamp: int = field(Int64, "0+")
    expire_timestamp: int = field(Int64, "1", default=-1, ignorable=True)
    topic_id: bytes = field(Uuid, "4+", tag=0, ignorable=True)


@message(api_key=None, kind="coordinator-key", versions="0", flexible="none")
class GroupMetadataKey:
    """The key of a group's state."""

    group: str = field(String, "0")


@struct
class MemberMetadata:
    """A member, with its timeouts in milliseconds, and what it subscribed to and was assigned."""

    member_id: str = field(String, "0+")
    group_instance_id: str | None = field(String, "3+", default=None, nullable="3+", ignorable=True)
    client_id: str = field(String, "0+")
    client_host: str = field(String, "0+")
    rebalance_timeout: int = field(Int32, "1+", default=-1, ignorable=True)
    session_timeout: int = field(Int32, "0+")
    subscription: bytes = field(Bytes, "0+")
    assignment: bytes = field(Bytes, "0+")


@message(api_key=None, kind="coordinator-value", versions="0-4", flexible="4+")
class GroupMetadataValue:
    """A group at the end of a rebalance. A null value deletes it."""

    protocol_type: str = field(String, "0+")
    generation: int = field(Int32, "0+")
    protocol: str | None = field(String, "0+", nullable="0+")
    leader: str | None = field(String, "0+", nullable="0+")
    current_state_timestamp: int = field(Int64, "2+", default=-1, ignorable=True)
    members: list[MemberMetadata] = field(Array(MemberMetadata), "0+")


RECORD_TYPES: dict[type, int] = {OffsetCommitKey: 1, GroupMetadataKey: 2}
"""The int16 before each key. Type 0 was that of offsets before Kafka 0.9."""
