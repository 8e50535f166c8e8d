"""The zigzag varints inside records: 7 bits a byte, the lowest first, the sign in the lowest bit."""

from __future__ import annotations

from walrusmq.protocol.errors import InvalidRecord

MAX_ENCODED = 2**64 - 1
MAX_ENCODED_BYTES = 10
"""What an int64 takes in zigzag, 7 bits a byte."""


def read_varint(data: bytes | memoryview, position: int) -> tuple[int, int]:
    """A varint or varlong and where it ends.

    Raises IndexError where the data end inside it, InvalidRecord where it holds more than an int64.
    """
    byte = data[position]
    if byte < 0x80:
        return (byte >> 1) ^ -(byte & 1), position + 1
    second = data[position + 1]
    if second < 0x80:
        value = second << 7 | byte & 0x7F
        return (value >> 1) ^ -(value & 1), position + 2
    value = (second & 0x7F) << 7 | byte & 0x7F
    for index in range(2, MAX_ENCODED_BYTES):
        byte = data[position + index]
        value |= (byte & 0x7F) << 7 * index
        if byte < 0x80 and value <= MAX_ENCODED:
            return (value >> 1) ^ -(value & 1), position + index + 1
    raise InvalidRecord("a number of more than 64 bits in a record")


def varint(value: int) -> bytes:
    """The shortest encoding of an int32 or int64."""
    unsigned = value << 1 if value >= 0 else ~(value << 1)
    if unsigned < 0x80:
        return _ONE_BYTE[unsigned]
    encoded = bytearray()
    while unsigned >= 0x80:
        encoded.append(unsigned & 0x7F | 0x80)
        unsigned >>= 7
    encoded.append(unsigned)
    return bytes(encoded)


_ONE_BYTE = [bytes([value]) for value in range(0x80)]
