"""Record batches of magic 2 with their records: unpacking and packing. Appends and fetches never come here.

Decoding is safe on hostile bytes: it takes time and memory in proportion to the batch and to the bound on what it may
unpack to, and ends in a RecordBatch or in CorruptMessage, InvalidRecord, UnsupportedCompressionType or CodecMissing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from struct import Struct
from typing import NamedTuple

from walrusmq.protocol.errors import CorruptMessage, InvalidRecord
from walrusmq.protocol.records.compression import MAX_DECOMPRESSED_BYTES, Codec, compress, decompress
from walrusmq.protocol.records.crc import crc32c
from walrusmq.protocol.records.header import (
    DELETE_HORIZON,
    HEADER_BYTES,
    MIN_RECORD_BYTES,
    BatchHeader,
    parse_header,
)
from walrusmq.protocol.records.legacy import (
    CRC_COVERS_FROM,
    CURRENT_MAGIC,
    LOG_OVERHEAD_BYTES,
    MAGIC_AT,
    SIZE_AT,
    refusal,
)
from walrusmq.protocol.records.varints import read_varint, varint

NO_TIMESTAMP = -1
MAX_INT64 = 2**63 - 1
MAX_INT32 = 2**31 - 1

_INT32 = Struct(">i")
_OUTSIDE_CHECKSUM = Struct(">qiibI")
_UNDER_CHECKSUM = Struct(">hiqqqhii")

Headers = tuple[tuple[str, bytes | None], ...]


class Record(NamedTuple):
    """One entry. The timestamp is in ms since 1970, -1 for none.

    Keys of headers are UTF-8 on the wire. Bytes of one that aren't come as lone surrogates (PEP 383) and go back as the
    bytes they were, so that no batch changes by being unpacked and packed.
    """

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Headers = ()


class Producer(NamedTuple):
    """Who sent a batch, for the check of sequence numbers (KIP-98)."""

    id: int
    epoch: int
    base_sequence: int


NO_PRODUCER = Producer(-1, -1, -1)


@dataclass(slots=True, frozen=True)
class RecordBatch:
    """A batch as decoded, its records with absolute offsets and timestamps. A compacted one has gaps or is empty."""

    header: BatchHeader
    records: list[Record]


def decode_batch(data: bytes | bytearray | memoryview, max_bytes: int = MAX_DECOMPRESSED_BYTES) -> RecordBatch:
    """Exactly one batch, its checksum and records checked; its records may unpack to `max_bytes`.

    Old message sets, several batches and pieces of one raise what Produce answers to them.
    """
    batch = memoryview(data)
    if len(batch) < HEADER_BYTES:
        raise refusal(batch)
    header = parse_header(batch)
    if header.magic != CURRENT_MAGIC or header.size_bytes != len(batch):
        raise refusal(batch)
    if crc32c(batch[CRC_COVERS_FROM:]) != header.crc:
        raise CorruptMessage("the record batch doesn't match its checksum")
    body = decompress(header.codec, batch[HEADER_BYTES:], max_bytes)
    try:
        return RecordBatch(header, _decode_records(body, header))
    except IndexError:
        raise InvalidRecord("the records end before the last of them does") from None


def decode_batches(
    data: bytes | bytearray | memoryview, max_bytes: int = MAX_DECOMPRESSED_BYTES
) -> Iterator[RecordBatch]:
    """The batches of a Fetch response. Ends at the last whole one, since a response may be cut off inside the next."""
    view = memoryview(data)
    position = 0
    while len(view) - position > MAGIC_AT:
        (length,) = _INT32.unpack_from(view, position + SIZE_AT)
        size = LOG_OVERHEAD_BYTES + length
        if length >= 0 and size > len(view) - position:
            return
        yield decode_batch(view[position : position + max(size, HEADER_BYTES)], max_bytes)
        position += size


def check_records(data: bytes | bytearray | memoryview, max_bytes: int = MAX_DECOMPRESSED_BYTES) -> None:
    """Unpack a producer's batch and check what `check_batch` can't see. Raises what `decode_batch` does.

    Beyond being whole, the records of a producer have the offsets 0, 1, 2 ... without a gap.
    """
    batch = decode_batch(data, max_bytes)
    if len(batch.records) != batch.header.last_offset_delta + 1:
        raise InvalidRecord(f"{len(batch.records)} records with offsets 0 to {batch.header.last_offset_delta}")


def _decode_records(body: bytes, header: BatchHeader) -> list[Record]:
    """Raises IndexError, besides InvalidRecord, where the bytes end too early."""
    count = header.record_count
    if not 0 <= count <= len(body) // MIN_RECORD_BYTES:
        raise InvalidRecord(f"{count} records in {len(body)} bytes")
    if not header.base_offset <= header.last_offset <= MAX_INT64:
        raise InvalidRecord(f"a batch of offsets {header.base_offset} to {header.last_offset}")
    records = []
    position, next_offset = 0, header.base_offset
    for _ in range(count):
        length, start = read_varint(body, position)
        position = start + length
        if length < MIN_RECORD_BYTES - 1 or position > len(body):
            raise InvalidRecord(f"a record of {length} bytes where {len(body) - start} are left")
        record = _decode_record(body, start, position, header)
        if not next_offset <= record.offset <= header.last_offset:
            raise InvalidRecord(f"offset {record.offset} where {next_offset} to {header.last_offset} may follow")
        next_offset = record.offset + 1
        records.append(record)
    if position != len(body):
        raise InvalidRecord(f"{len(body) - position} bytes after the last of {count} records")
    return records


def _decode_record(body: bytes, start: int, end: int, header: BatchHeader) -> Record:
    """The record between `start`, behind its length, and `end`. The attributes in its first byte mean nothing yet."""
    timestamp_delta, position = read_varint(body, start + 1)
    offset_delta, position = read_varint(body, position)
    key, position = _nullable_bytes(body, position)
    value, position = _nullable_bytes(body, position)
    header_count, position = read_varint(body, position)
    headers: Headers = ()
    if header_count:
        headers, position = _decode_headers(body, position, header_count)
    if position != end:
        raise InvalidRecord(f"a record's parts end {abs(end - position)} bytes off its own end")
    if header.has_log_append_time:
        timestamp = header.max_timestamp
    else:
        timestamp = _wrapped(header.base_timestamp + timestamp_delta)
    return Record(header.base_offset + offset_delta, timestamp, key, value, headers)


def _decode_headers(body: bytes, position: int, count: int) -> tuple[Headers, int]:
    if not 0 <= count <= (len(body) - position) // 2:
        raise InvalidRecord(f"{count} headers in a record")
    headers = []
    for _ in range(count):
        key, position = _nullable_bytes(body, position)
        if key is None:
            raise InvalidRecord("a header's key that is null")
        value, position = _nullable_bytes(body, position)
        headers.append((key.decode("utf-8", "surrogateescape"), value))
    return tuple(headers), position


def _wrapped(timestamp: int) -> int:
    """A difference or sum of two int64 as Java has it, so that the wildest timestamps come back as they were."""
    if -MAX_INT64 <= timestamp <= MAX_INT64:
        return timestamp
    return (timestamp + MAX_INT64 + 1) % (2 * MAX_INT64 + 2) - MAX_INT64 - 1


def _nullable_bytes(body: bytes, position: int) -> tuple[bytes | None, int]:
    """Bytes behind their length, which is -1 for null. Fewer than the length says only where the body ends before."""
    length, position = read_varint(body, position)
    if length < 0:
        if length != -1:
            raise InvalidRecord(f"a key or value of {length} bytes")
        return None, position
    end = position + length
    return body[position:end], end


def encode_batch(
    records: Sequence[Record],
    *,
    codec: Codec = Codec.NONE,
    producer: Producer = NO_PRODUCER,
    leader_epoch: int = -1,
    flags: int = 0,
    base_offset: int | None = None,
    last_offset: int | None = None,
    max_timestamp: int | None = None,
    delete_horizon_ms: int | None = None,
) -> bytes:
    """One batch of magic 2. Raises CodecMissing, and ValueError for offsets that no batch can have.

    `records` have ascending offsets. Where `base_offset` and `last_offset` aren't given they are the first and the last
    record's; a compacted batch keeps those it had. `flags` are of TRANSACTIONAL, CONTROL and LOG_APPEND_TIME; with the
    latter `max_timestamp` is every record's. A `delete_horizon_ms` stands in the place of the base timestamp (KIP-534).
    """
    if base_offset is None:
        base_offset = records[0].offset if records else 0
    if last_offset is None:
        last_offset = records[-1].offset if records else base_offset
    if max_timestamp is None:
        max_timestamp = max((record.timestamp for record in records), default=NO_TIMESTAMP)
    if delete_horizon_ms is not None:
        flags |= DELETE_HORIZON
        base_timestamp = delete_horizon_ms
    else:
        base_timestamp = records[0].timestamp if records else NO_TIMESTAMP
    _check_offsets(records, base_offset, last_offset)
    body = compress(codec, b"".join(_encode_records(records, base_offset, base_timestamp)))
    under_checksum = (
        _UNDER_CHECKSUM.pack(
            flags | codec, last_offset - base_offset, base_timestamp, max_timestamp, *producer, len(records)
        )
        + body
    )
    length = HEADER_BYTES - LOG_OVERHEAD_BYTES + len(body)
    return (
        _OUTSIDE_CHECKSUM.pack(base_offset, length, leader_epoch, CURRENT_MAGIC, crc32c(under_checksum))
        + under_checksum
    )


def _check_offsets(records: Sequence[Record], base_offset: int, last_offset: int) -> None:
    previous = base_offset - 1
    for record in records:
        if record.offset <= previous:
            raise ValueError(f"offset {record.offset} after {previous} in a batch")
        previous = record.offset
    if not max(previous - base_offset, 0) <= last_offset - base_offset <= MAX_INT32:
        raise ValueError(f"a batch of offsets {base_offset} to {last_offset} whose last record has {previous}")


def _encode_records(records: Iterable[Record], base_offset: int, base_timestamp: int) -> Iterator[bytes]:
    for record in records:
        parts = [b"\x00", varint(_wrapped(record.timestamp - base_timestamp)), varint(record.offset - base_offset)]
        parts += _sized(record.key)
        parts += _sized(record.value)
        parts.append(varint(len(record.headers)))
        for key, value in record.headers:
            parts += _sized(key.encode("utf-8", "surrogateescape"))
            parts += _sized(value)
        encoded = b"".join(parts)
        yield varint(len(encoded))
        yield encoded


def _sized(value: bytes | None) -> tuple[bytes, bytes]:
    return (varint(-1), b"") if value is None else (varint(len(value)), value)
