"""The records of ``__consumer_offsets`` as bytes and back, and which partition has those of a group."""

from __future__ import annotations

from struct import Struct, error, iter_unpack
from typing import Any, NamedTuple

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
#: The versions in which Kafka writes values: an offset with an end of its own has no field for an epoch.
OFFSET_VERSION = 3
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


def _version(value: OffsetCommitValue | GroupMetadataValue) -> int:
    if isinstance(value, GroupMetadataValue):
        return GROUP_VERSION
    return OFFSET_VERSION if value.expire_timestamp == -1 else EXPIRING_OFFSET_VERSION


def _decoded(kind: type, version: int, data: bytes) -> Any:
    message: Any
    message, _ = codec(kind, version).decode(memoryview(data), _PREFIX.size)
    return message
