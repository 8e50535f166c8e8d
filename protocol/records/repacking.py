"""A producer's batch unpacked, looked into and packed with another codec, without making its records into objects.

What the records of a batch say about offsets and time is relative to its header. So their bytes can go from one codec
to another as they are, and nothing of them changes.
"""

from __future__ import annotations

from struct import Struct

from walrusmq.protocol.errors import CorruptMessage, InvalidRecord
from walrusmq.protocol.records.compression import MAX_DECOMPRESSED_BYTES, Codec, compress, decompress
from walrusmq.protocol.records.crc import crc32c
from walrusmq.protocol.records.header import (
    ATTRIBUTES_AT,
    HEADER_BYTES,
    LOG_APPEND_TIME,
    MIN_RECORD_BYTES,
    parse_header,
)
from walrusmq.protocol.records.keys import record_keys
from walrusmq.protocol.records.legacy import CRC_AT, CRC_COVERS_FROM, LOG_OVERHEAD_BYTES, SIZE_AT
from walrusmq.protocol.records.varints import read_varint

_LENGTH = Struct(">i")
_CRC = Struct(">I")
_ATTRIBUTES = Struct(">h")


def unpacked(batch: memoryview, max_bytes: int = MAX_DECOMPRESSED_BYTES) -> bytes:
    """The records of a batch whose header was checked. Raises CodecMissing, InvalidRecord.

    InvalidRecord also for bytes that can't be unpacked: a client would send again for CorruptMessage, and in vain.
    """
    header = parse_header(batch)
    try:
        records = decompress(header.codec, batch[HEADER_BYTES:], max_bytes)
    except CorruptMessage as error:
        raise InvalidRecord(str(error)) from None
    _check_lengths(records, header.record_count)
    return records


def _check_lengths(records: bytes, count: int) -> None:
    """Raise InvalidRecord unless the bytes are so many records, by the length of each."""
    position, end = 0, len(records)
    try:
        for _ in range(count):
            length, position = read_varint(records, position)
            position += length
            if length < MIN_RECORD_BYTES - 1:
                raise InvalidRecord(f"a record of {length} bytes")
    except IndexError:
        position = -1
    if position != end:
        raise InvalidRecord(f"{end} bytes that aren't {count} records")


def keyless(records: bytes, count: int) -> list[int]:
    """Which of the records, as `unpacked` returned them, have no key (null). Raises InvalidRecord."""
    return [index for index, (_, key) in enumerate(record_keys(records, count)) if key is None]


def repacked(batch: memoryview, records: bytes, codec: Codec) -> bytearray:
    """The batch with its records, as `unpacked` returned them, in this codec. Raises CodecMissing.

    Attributes that mean nothing in what a producer sends are left out, as Kafka does.
    """
    body = compress(codec, records)
    out = bytearray(batch[:HEADER_BYTES])
    out += body
    (attributes,) = _ATTRIBUTES.unpack_from(out, ATTRIBUTES_AT)
    _ATTRIBUTES.pack_into(out, ATTRIBUTES_AT, attributes & LOG_APPEND_TIME | codec)
    _LENGTH.pack_into(out, SIZE_AT, len(out) - LOG_OVERHEAD_BYTES)
    _CRC.pack_into(out, CRC_AT, crc32c(memoryview(out)[CRC_COVERS_FROM:]))
    return out
