"""The records of ``__consumer_offsets`` as bytes and back, and which partition has those of a group."""

from __future__ import annotations

from struct import Struct, error, iter_unpack
from typing import Any, NamedTuple

from walrusmq.broker.groups.offsets import NO_EXPIRY_MS, CommittedOffset, TopicPartition
from walrusmq.protocol.codec import codec
from walrusmq.protocol.errors import MalformedMessage
from walrusmq.protocol.messages.group_records import (
    RECORD_TYPES,
    GroupMetadataKey,
    GroupMetadataValue,
    OffsetCommitKey,
    OffsetCommitValue,
)
from walrusmq.protocol.records.batch import Record

_PREFIX = Struct(">h")
_KEY_TYPES = {number: kind for kind, number in RECORD_TYPES.items()} | {0: OffsetCommitKey}
_VALUE_TYPES: dict[type, type] = {OffsetCommitKey: OffsetCommitValue, GroupMetadataKey: GroupMetadataValue}
#: The versions in which Kafka writes values: an offset with an end of its own has no field for epoch and topic id.
OFFSET_VERSION = 4
EXPIRING_OFFSET_VERSION = 1
GROUP_VERSION = 3
MAX_VALUE_VERSION = 4
MAX_INT32 = 2**31 - 1


class OffsetRecord(NamedTuple):
    """One record: its value is None where it deletes what the key names."""

    key: OffsetCommitKey | GroupMetadataKey
    value: OffsetCommitValue | GroupMetadataValue | None


class UnknownRecord(ValueError):
    """A record of a kind or version that this node doesn't know, or one that isn't whole."""


def partition_for(group_id: str, partitions: int) -> int:
    """The partition of ``__consumer_offsets`` that has a group: by Java's hash of its id, as in Kafka."""
    value = 0
    for (unit,) in iter_unpack(">H", group_id.encode("utf-16-be", "surrogatepass")):
        value = (31 * value + unit) & 0xFFFFFFFF
    distance = value if value <= MAX_INT32 else (1 << 32) - value
    return 0 if distance > MAX_INT32 else distance % partitions


def encode_record(record: OffsetRecord, timestamp_ms: int, offset: int) -> Record:
    """The record to append. Raises UnencodableMessage."""
    kind = type(record.key)
    key = _PREFIX.pack(RECORD_TYPES[kind]) + codec(kind, 0).encode(record.key)
    value = None
    if record.value is not None:
        version = _version(record.value)
        value = _PREFIX.pack(version) + codec(type(record.value), version).encode(record.value)
    return Record(offset, timestamp_ms, key, value)


def decode_record(record: Record) -> OffsetRecord:
    """What a record says. Raises UnknownRecord."""
    if record.key is None:
        raise UnknownRecord("a record without a key")
    try:
        (number,) = _PREFIX.unpack_from(record.key)
        kind = _KEY_TYPES.get(number)
        if kind is None:
            raise UnknownRecord(f"a key of type {number}")
        key = _decoded(kind, 0, record.key)
        if record.value is None:
            return OffsetRecord(key, None)
        (version,) = _PREFIX.unpack_from(record.value)
        if not 0 <= version <= MAX_VALUE_VERSION:
            raise UnknownRecord(f"a value of version {version}")
        return OffsetRecord(key, _decoded(_VALUE_TYPES[kind], version, record.value))
    except (MalformedMessage, error) as fault:
        raise UnknownRecord(f"a record that isn't whole: {fault}") from fault


def offset_record(group_id: str, key: TopicPartition, committed: CommittedOffset) -> OffsetRecord:
    """The record of a commit."""
    topic, partition = key
    return OffsetRecord(
        OffsetCommitKey(group=group_id, topic=topic, partition=partition),
        OffsetCommitValue(
            offset=committed.offset,
            leader_epoch=committed.leader_epoch,
            metadata=committed.metadata,
            commit_timestamp=committed.commit_ms,
            expire_timestamp=committed.expire_ms,
            topic_id=committed.topic_id,
        ),
    )


def offset_removal(group_id: str, key: TopicPartition) -> OffsetRecord:
    """The record that deletes an offset."""
    topic, partition = key
    return OffsetRecord(OffsetCommitKey(group=group_id, topic=topic, partition=partition), None)


def group_record(group_id: str, value: GroupMetadataValue | None) -> OffsetRecord:
    """The record of a group's state; without a value it deletes the group."""
    return OffsetRecord(GroupMetadataKey(group=group_id), value)


def committed_of(value: OffsetCommitValue) -> CommittedOffset:
    """What a stored commit says."""
    return CommittedOffset(
        offset=value.offset,
        leader_epoch=value.leader_epoch,
        metadata=value.metadata,
        commit_ms=value.commit_timestamp,
        expire_ms=value.expire_timestamp,
        topic_id=value.topic_id,
    )


def _version(value: OffsetCommitValue | GroupMetadataValue) -> int:
    if isinstance(value, GroupMetadataValue):
        return GROUP_VERSION
    return OFFSET_VERSION if value.expire_timestamp == NO_EXPIRY_MS else EXPIRING_OFFSET_VERSION


def _decoded(kind: type, version: int, data: bytes) -> Any:
    message: Any
    message, _ = codec(kind, version).decode(memoryview(data), _PREFIX.size)
    return message
