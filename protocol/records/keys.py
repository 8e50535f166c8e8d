"""The keys of a batch's records alone: a third of the work of unpacking all of them."""

from __future__ import annotations

from collections.abc import Iterator

from walrusmq.protocol.errors import CorruptMessage, InvalidRecord
from walrusmq.protocol.records.compression import MAX_DECOMPRESSED_BYTES, decompress
from walrusmq.protocol.records.crc import crc32c
from walrusmq.protocol.records.header import HEADER_BYTES, parse_header
from walrusmq.protocol.records.legacy import CRC_COVERS_FROM
from walrusmq.protocol.records.varints import read_varint


def batch_keys(
    batch: bytes | memoryview, max_bytes: int = MAX_DECOMPRESSED_BYTES
) -> Iterator[tuple[int, bytes | None]]:
    """Offset and key of each record of one whole batch whose checksum holds.

    Raises CorruptMessage, InvalidRecord, CodecMissing.
    """
    view = memoryview(batch)
    header = parse_header(view)
    if crc32c(view[CRC_COVERS_FROM:]) != header.crc:
        raise CorruptMessage("the record batch doesn't match its checksum")
    records = decompress(header.codec, view[HEADER_BYTES:], MAX_DECOMPRESSED_BYTES)
    base_offset = header.base_offset
    for delta, key in record_keys(records, header.record_count):
        yield base_offset + delta, key


def record_keys(records: bytes, count: int) -> Iterator[tuple[int, bytes | None]]:
    """Offset delta and key of each of so many records, which are unpacked. Raises InvalidRecord."""
    end, total = 0, len(records)
    try:
        for index in range(count):
            length, start = read_varint(records, end)
            end = start + length
            _, position = read_varint(records, start + 1)  # behind the attributes: the timestamp
            delta, position = read_varint(records, position)
            key_bytes, position = read_varint(records, position)
            key_end = position + max(key_bytes, 0)
            if not start <= key_end <= end <= total:
                raise InvalidRecord(f"record {index} ends before its key does")
            yield delta, None if key_bytes < 0 else records[position:key_end]
    except IndexError:
        raise InvalidRecord("the records end before the last of them does") from None
