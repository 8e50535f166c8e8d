"""The 61-byte header of a record batch of magic 2 (KIP-98): read, checked for an append, patched in place.

The records behind it stay as the producer packed them. Base offset and leader epoch lie outside the checksum, so a
broker can place a batch without touching it; attributes and timestamps lie inside.
"""

from __future__ import annotations

from struct import Struct
from typing import NamedTuple

from walrusmq.protocol.errors import CorruptMessage, ErrorCode, InvalidRecord, KafkaError, UnsupportedCompressionType
from walrusmq.protocol.records.crc import crc32c
from walrusmq.protocol.records.legacy import (
    CRC_AT,
    CRC_COVERS_FROM,
    CURRENT_MAGIC,
    LOG_OVERHEAD_BYTES,
    refusal,
)
from walrusmq.protocol.records.varints import read_varint

HEADER_BYTES = 61
ATTRIBUTES_AT = 21
CODEC_AT = ATTRIBUTES_AT + 1
"""The attributes' low byte."""
MAX_TIMESTAMP_AT = 35
MIN_RECORD_BYTES = 7
"""A record with neither key nor value nor headers: a byte each for length, attributes, two deltas, three counts."""

CODEC_MASK = 0x07
LOG_APPEND_TIME = 0x08
TRANSACTIONAL = 0x10
CONTROL = 0x20
DELETE_HORIZON = 0x40
LAST_CODEC = 4
MAX_SEQUENCE = 2**31 - 1

_HEADER = Struct(">qiibIhiqqqhii")
_PLACE = Struct(">qii")
_CRC = Struct(">I")
_ATTRIBUTES = Struct(">h")
_TIMESTAMP = Struct(">q")
_unpack_header = _HEADER.unpack_from
_new_tuple = tuple.__new__  # three times as fast as BatchHeader._make, which counts again what the Struct has counted


class TransactionsNotSupported(KafkaError):
    """A transactional batch: Kafka answers this to a producer without the right to its transactional id."""

    code = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED


class BatchHeader(NamedTuple):
    """The header's fields as on the wire. Timestamps are in ms; -1 in producer_id and base_sequence means none."""

    base_offset: int
    batch_length: int
    partition_leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int

    @property
    def size_bytes(self) -> int:
        """The whole batch, header and all."""
        return self.batch_length + LOG_OVERHEAD_BYTES

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta

    @property
    def last_sequence(self) -> int:
        """After 2^31 - 1 comes 0; -1 for a batch without sequence numbers."""
        if self.base_sequence < 0:
            return -1
        return (self.base_sequence + self.last_offset_delta) & MAX_SEQUENCE

    @property
    def codec(self) -> int:
        """0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd; 5 to 7 mean nothing."""
        return self.attributes & CODEC_MASK

    @property
    def has_log_append_time(self) -> bool:
        """Each record's timestamp is the batch's max_timestamp."""
        return self.attributes & LOG_APPEND_TIME != 0

    @property
    def is_transactional(self) -> bool:
        return self.attributes & TRANSACTIONAL != 0

    @property
    def is_control(self) -> bool:
        return self.attributes & CONTROL != 0

    @property
    def delete_horizon_ms(self) -> int | None:
        """When a compacted log may drop the batch's tombstones (KIP-534); it then stands in base_timestamp."""
        return self.base_timestamp if self.attributes & DELETE_HORIZON else None


def parse_header(buffer: bytes | bytearray | memoryview, position: int = 0) -> BatchHeader:
    """The header at `position`, unchecked. Raises CorruptMessage where fewer than 61 bytes are left."""
    if len(buffer) - position < HEADER_BYTES:
        raise CorruptMessage(f"{len(buffer) - position} bytes are too few for the header of a record batch")
    return _new_tuple(BatchHeader, _unpack_header(buffer, position))


def codec_in(batch: memoryview) -> int | None:
    """The number of the codec in the header of what may be a batch; None where it is too short to say."""
    return batch[CODEC_AT] & CODEC_MASK if len(batch) > CODEC_AT else None


def check_batch(batch: memoryview) -> BatchHeader:
    """As `check_fields`, which the hot path uses: what a producer sent, checked, with names for its fields."""
    return _new_tuple(BatchHeader, check_fields(batch))


def check_fields(batch: memoryview) -> tuple[int, ...]:
    """What a producer sent for one partition, checked without unpacking its records: exactly one good batch.

    The order and the codes are Kafka's (4.4, Produce 3 to 13): TransactionsNotSupported; CorruptMessage for a wrong
    checksum, magic or length; UnsupportedCompressionType; InvalidRecord for all else, as a control batch, a base offset
    other than 0, a count that doesn't fit the offsets or the bytes. zstd before Produce 7 is the caller's to refuse.
    """
    size = len(batch)
    if size < HEADER_BYTES:
        raise refusal(batch)
    fields: tuple[int, ...] = _unpack_header(batch)
    base_offset, length, _, magic, crc, attributes, last_delta, _, _, producer_id, _, sequence, count = fields
    if magic != CURRENT_MAGIC or length != size - LOG_OVERHEAD_BYTES:
        raise refusal(batch)
    if attributes & TRANSACTIONAL:
        raise TransactionsNotSupported("transactions are not supported")
    if base_offset:
        raise InvalidRecord(f"a producer's batch begins at offset 0, this one at {base_offset}")
    if crc32c(batch[CRC_COVERS_FROM:]) != crc:
        raise CorruptMessage("the record batch doesn't match its checksum")
    codec = attributes & CODEC_MASK
    if codec > LAST_CODEC:
        raise UnsupportedCompressionType(f"no compression has number {codec}")
    if attributes & CONTROL:
        raise InvalidRecord("clients don't write control batches")
    if producer_id >= 0 and sequence < 0:
        raise InvalidRecord(f"producer {producer_id} sent sequence number {sequence}")
    if count < 1 or last_delta != count - 1:
        raise InvalidRecord(f"a batch of {count} records with offsets 0 to {last_delta}")
    if codec:
        if size == HEADER_BYTES:
            raise InvalidRecord(f"a batch of {count} compressed records without a byte of them")
    elif not _can_hold(batch, size, count):
        raise InvalidRecord(f"{size - HEADER_BYTES} bytes that aren't {count} records")
    return fields


def _can_hold(batch: memoryview, size: int, count: int) -> bool:
    """Whether uncompressed records may be what they claim, by the length of the first, however many there are.

    A batch of one record is then known to end where its record does.
    """
    smallest_rest = (count - 1) * MIN_RECORD_BYTES
    if HEADER_BYTES + MIN_RECORD_BYTES + smallest_rest > size:
        return False
    first = batch[HEADER_BYTES]
    if first < 0x80:
        end = HEADER_BYTES + 1 + (first >> 1)
    elif (second := batch[HEADER_BYTES + 1]) < 0x80:
        end = HEADER_BYTES + 2 + (second << 6 | (first & 0x7F) >> 1)
    else:
        end = _first_record_end(batch)
    if first & 1 or end < HEADER_BYTES + MIN_RECORD_BYTES:
        return False
    return end == size if count == 1 else end + smallest_rest <= size


def _first_record_end(batch: memoryview) -> int:
    """Where the first record ends by its length; 0 where no record has that length."""
    try:
        length, start = read_varint(batch, HEADER_BYTES)
    except IndexError:
        return 0
    return start + length if length >= MIN_RECORD_BYTES - 1 else 0


def place_batch(batch: memoryview, base_offset: int, leader_epoch: int) -> None:
    """Patch the base offset and the leader epoch into one whole, writable batch; neither is under the checksum."""
    _PLACE.pack_into(batch, 0, base_offset, len(batch) - LOG_OVERHEAD_BYTES, leader_epoch)


def set_log_append_time(batch: memoryview, timestamp_ms: int) -> None:
    """Give all records of one whole, writable batch the broker's time (message.timestamp.type=LogAppendTime)."""
    (attributes,) = _ATTRIBUTES.unpack_from(batch, ATTRIBUTES_AT)
    _ATTRIBUTES.pack_into(batch, ATTRIBUTES_AT, attributes | LOG_APPEND_TIME)
    _TIMESTAMP.pack_into(batch, MAX_TIMESTAMP_AT, timestamp_ms)
    _CRC.pack_into(batch, CRC_AT, crc32c(batch[CRC_COVERS_FROM:]))


def set_create_time(batch: memoryview) -> None:
    """Clear the bit that a producer may not set: on a CreateTime topic Kafka stores such a batch without it."""
    (attributes,) = _ATTRIBUTES.unpack_from(batch, ATTRIBUTES_AT)
    _ATTRIBUTES.pack_into(batch, ATTRIBUTES_AT, attributes & ~LOG_APPEND_TIME)
    _CRC.pack_into(batch, CRC_AT, crc32c(batch[CRC_COVERS_FROM:]))
