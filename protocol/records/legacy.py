"""What Produce answers to bytes that aren't exactly one batch of magic 2: old message sets, several batches, garbage.

A message set of magic 0 or 1, and a batch of magic 2, begin alike: an int64 offset and an int32 size of all after it,
and have their magic at byte 16. So one walk over sizes and magics tells them apart. Since Produce 3 (KIP-98) the data
of a partition is exactly one batch of magic 2; the codes are those of Kafka 4.4, the same in Produce 3 to 13.
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct

from walrusmq.protocol.errors import CorruptMessage, InvalidRecord, KafkaError
from walrusmq.protocol.records.crc import crc32c

SIZE_AT = 8
MAGIC_AT = 16
CRC_AT = 17
CRC_COVERS_FROM = 21
CURRENT_MAGIC = 2
LOG_OVERHEAD_BYTES = 12
"""The offset and the size that stand before what the size counts, in every format."""
MIN_LEGACY_MESSAGE_BYTES = 14
"""A message of magic 0 with neither key nor value: no entry of any format is smaller."""
MIN_BATCH_LENGTH = 49
"""What the size field of a magic 2 batch without records says."""

_SIZE = Struct(">i")
_CRC = Struct(">I")
_MAGIC = Struct(">b")


class NotOneBatch(InvalidRecord):
    """The data of a partition isn't exactly one batch of magic 2: nothing of a log was looked at."""


def entry_magics(buffer: memoryview) -> Iterator[tuple[int, int]]:
    """The magic and the size field of each whole entry, batch or old message, that the buffer begins with.

    Ends quietly where an entry is cut off, as Kafka does. Raises CorruptMessage at a size or magic that can't be.
    """
    position = 0
    while (left := len(buffer) - position) >= LOG_OVERHEAD_BYTES:
        (size,) = _SIZE.unpack_from(buffer, position + SIZE_AT)
        if size < MIN_LEGACY_MESSAGE_BYTES:
            raise CorruptMessage(f"a batch says its length is {size}, less than any format's smallest")
        if left <= MAGIC_AT:
            return
        (magic,) = _MAGIC.unpack_from(buffer, position + MAGIC_AT)
        if not 0 <= magic <= CURRENT_MAGIC:
            raise CorruptMessage(f"no record format has magic {magic}")
        if left < LOG_OVERHEAD_BYTES + size:
            return
        yield magic, size
        position += LOG_OVERHEAD_BYTES + size


def refusal(buffer: memoryview) -> KafkaError:
    """The error for a partition's data in Produce that isn't exactly one batch of magic 2; the caller raises it."""
    entries = entry_magics(buffer)
    try:
        magic, size = next(entries, (None, 0))
        if magic is None:
            return NotOneBatch(f"no whole record batch in {len(buffer)} bytes")
        if magic != CURRENT_MAGIC:
            return NotOneBatch(
                f"a message set of magic {magic}, but Produce takes only magic {CURRENT_MAGIC} since version 3"
            )
        if next(entries, None) is not None:
            return NotOneBatch("more than one record batch where exactly one is taken")
    except CorruptMessage as error:
        return error
    if size < MIN_BATCH_LENGTH:
        return CorruptMessage(f"a record batch says its length is {size}, less than its own header's")
    (checksum,) = _CRC.unpack_from(buffer, CRC_AT)
    if crc32c(buffer[CRC_COVERS_FROM : LOG_OVERHEAD_BYTES + size]) != checksum:
        return CorruptMessage("the record batch doesn't match its checksum")
    return NotOneBatch(f"{len(buffer) - size - LOG_OVERHEAD_BYTES} bytes after the record batch that are none")
