"""Kafka's primitive types as construct objects, and those that read and write them differently by version.

What has a length (strings, bytes, records, arrays) is declared in its plain form; ``resolved`` gives the form that a
version writes: compact or not, nullable or not. Lengths are checked against what is left before anything is allocated.
Malformed bytes raise ``MalformedMessage``, or one of construct's own errors where its classes read.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

from construct import (
    Construct,
    Float64b,
    FormatField,
    Int8sb,
    Int16sb,
    Int16ub,
    Int32sb,
    Int32ub,
    Int64sb,
    Subconstruct,
    stream_read,
    stream_write,
)

from walrusmq.protocol.errors import MalformedMessage, ValueOutOfRange

if TYPE_CHECKING:
    from io import BytesIO

ZERO_UUID = bytes(16)

MAX_STRING_BYTES = 0x7FFF
"""Kafka's limit for a string, which holds for compact ones too although their length could say more."""
MAX_LENGTH = 0x7FFF_FFFF
"""Lengths and counts are 31 bits in every form."""
UVARINT_BYTES = 5
VARLONG_BYTES = 10

Bool = FormatField(">", "?")
Int8 = Int8sb
Int16 = Int16sb
Uint16 = Int16ub
Int32 = Int32sb
Uint32 = Int32ub
Int64 = Int64sb
Float64 = Float64b


def read_uvarint(buffer: Any, position: int, max_bytes: int = UVARINT_BYTES) -> tuple[int, int]:
    """Read seven bits a byte, lowest first, from anything that indexes to bytes; give the value and its end.

    Raises MalformedMessage for more than 32 bits in five bytes (64 in ten), IndexError where the buffer ends.
    """
    value = shift = 0
    for _ in range(max_bytes):
        byte = buffer[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            if value >> (32 if max_bytes == UVARINT_BYTES else 64):
                break
            return value, position
        shift += 7
    raise MalformedMessage(f"a varint that ends at {position} is too long")


def write_uvarint(value: int) -> bytes:
    """Write an unsigned integer of up to 64 bits."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def spend(context: Any, elements: int, path: str) -> None:
    """Count what a message consists of, where ``layout.parse`` has set a bound. Raises MalformedMessage above it."""
    if "elements_left" in context._params:
        context._params.elements_left -= elements
        if context._params.elements_left < 0:
            raise MalformedMessage(f"{path}: more elements than a message may have")


def remaining_bytes(stream: BytesIO) -> int:
    """How much of an in-memory stream is left."""
    return stream.getbuffer().nbytes - stream.tell()


# construct has no types: to mypy its classes are Any, which can't be subclassed without saying so.
class UnsignedVarint(Construct):  # type: ignore[misc]
    """An unsigned integer, seven bits a byte, of at most ``bits``."""

    def __init__(self, bits: int = 32) -> None:
        super().__init__()
        self.bits = bits
        self.max_bytes = UVARINT_BYTES if bits == 32 else VARLONG_BYTES

    def _parse(self, stream: BytesIO, context: Any, path: str) -> int:
        data = bytearray()
        while len(data) < self.max_bytes:
            data += stream_read(stream, 1, path)
            if data[-1] < 0x80:
                break
        return read_uvarint(data, 0, self.max_bytes)[0] if data[-1] < 0x80 else self._too_long(path)

    def _too_long(self, path: str) -> int:
        raise MalformedMessage(f"{path}: a varint of more than {self.max_bytes} bytes")

    def _build(self, value: int, stream: BytesIO, context: Any, path: str) -> int:
        if not isinstance(value, int) or not 0 <= value < 1 << self.bits:
            raise ValueOutOfRange(f"{path}: {value!r} is no unsigned integer of {self.bits} bits")
        stream.write(write_uvarint(value))
        return value


class SignedVarint(UnsignedVarint):
    """A signed integer, zigzag (0, -1, 1, -2 … as 0, 1, 2, 3 …), then as unsigned."""

    def _parse(self, stream: BytesIO, context: Any, path: str) -> int:
        value = super()._parse(stream, context, path)
        return (value >> 1) ^ -(value & 1)

    def _build(self, value: int, stream: BytesIO, context: Any, path: str) -> int:
        limit = 1 << (self.bits - 1)
        if not isinstance(value, int) or not -limit <= value < limit:
            raise ValueOutOfRange(f"{path}: {value!r} is no integer of {self.bits} bits")
        super()._build(value << 1 if value >= 0 else ~(value << 1), stream, context, path)
        return value


class UuidBytes(Construct):  # type: ignore[misc]
    """The 16 bytes of a UUID, as bytes."""

    def _parse(self, stream: BytesIO, context: Any, path: str) -> bytes:
        data: bytes = stream_read(stream, len(ZERO_UUID), path)
        return data

    def _build(self, value: bytes, stream: BytesIO, context: Any, path: str) -> bytes:
        if not isinstance(value, bytes) or len(value) != len(ZERO_UUID):
            raise ValueOutOfRange(f"{path}: {value!r} isn't the 16 bytes of a UUID")
        stream_write(stream, value, len(value), path)
        return value


class Prefixed(Construct):  # type: ignore[misc]
    """Something with its length before it: ``plain_length`` with -1 for null, or compact: length + 1, 0 for null."""

    plain_length: Any = Int32
    max_length = MAX_LENGTH

    def __init__(self) -> None:
        super().__init__()
        self.compact = False
        self.nullable = False

    def resolved(self, *, compact: bool, nullable: bool) -> Prefixed:
        """The form of this type in a version."""
        form: Prefixed = copy.copy(self)
        form.compact = compact
        form.nullable = nullable
        return form

    def _parse(self, stream: BytesIO, context: Any, path: str) -> Any:
        length = Uvarint._parse(stream, context, path) - 1 if self.compact else self._parse_plain(stream, context, path)
        if length == -1 and self.nullable:
            return None
        if not 0 <= length <= self.max_length:
            raise MalformedMessage(f"{path}: {'null' if length == -1 else f'length {length}'} where that can't be")
        if length > remaining_bytes(stream):
            raise MalformedMessage(f"{path}: length {length}, but {remaining_bytes(stream)} bytes are left")
        return self._parse_content(length, stream, context, path)

    def _parse_plain(self, stream: BytesIO, context: Any, path: str) -> int:
        length: int = self.plain_length._parse(stream, context, path)
        return length

    def _build(self, value: Any, stream: BytesIO, context: Any, path: str) -> Any:
        if value is None:
            if not self.nullable:
                raise ValueOutOfRange(f"{path}: null where that can't be")
            self._build_length(-1, stream, context, path)
        else:
            self._build_content(value, stream, context, path)
        return value

    def _build_length(self, length: int, stream: BytesIO, context: Any, path: str) -> None:
        if length > self.max_length:
            raise ValueOutOfRange(f"{path}: {length} is longer than {self.max_length}")
        if self.compact:
            Uvarint._build(length + 1, stream, context, path)
        else:
            self.plain_length._build(length, stream, context, path)

    def _parse_content(self, length: int, stream: BytesIO, context: Any, path: str) -> Any:
        raise NotImplementedError

    def _build_content(self, value: Any, stream: BytesIO, context: Any, path: str) -> None:
        raise NotImplementedError


class Text(Prefixed):
    """A string in UTF-8; length in bytes."""

    plain_length = Int16
    max_length = MAX_STRING_BYTES

    def _parse_content(self, length: int, stream: BytesIO, context: Any, path: str) -> str:
        try:
            return str(stream_read(stream, length, path), "utf-8")
        except UnicodeDecodeError as error:
            raise MalformedMessage(f"{path}: {error}") from None

    def _build_content(self, value: str, stream: BytesIO, context: Any, path: str) -> None:
        if not isinstance(value, str):
            raise ValueOutOfRange(f"{path}: {value!r} is no string")
        try:
            data = value.encode()
        except UnicodeEncodeError as error:
            raise ValueOutOfRange(f"{path}: {error}") from None
        self._build_length(len(data), stream, context, path)
        stream.write(data)


class Blob(Prefixed):
    """Bytes."""

    def _parse_content(self, length: int, stream: BytesIO, context: Any, path: str) -> Any:
        return stream_read(stream, length, path)

    def _build_content(self, value: Any, stream: BytesIO, context: Any, path: str) -> None:
        if not isinstance(value, (bytes, bytearray, memoryview)):
            raise ValueOutOfRange(f"{path}: {type(value).__name__} instead of bytes")
        self._build_length(len(value), stream, context, path)
        stream.write(value)


class RecordBytes(Blob):
    """Record batches as they are: a memoryview when read, anything with a length when written (in parts)."""

    def _parse_content(self, length: int, stream: BytesIO, context: Any, path: str) -> memoryview:
        return memoryview(stream_read(stream, length, path))


class Array(Prefixed):
    """A list of elements of one type: a construct object, or a struct's class in a declaration."""

    def __init__(self, element: Any) -> None:
        super().__init__()
        self.element = element

    def with_element(self, element: Any) -> Array:
        """The same array of an element that has been resolved for a version."""
        form: Array = copy.copy(self)
        form.element = element
        return form

    def _parse_content(self, length: int, stream: BytesIO, context: Any, path: str) -> list[Any]:
        # Kafka too refuses a count above the bytes left, even if elements should take no bytes at all.
        spend(context, length, path)
        return [self.element._parse(stream, context, f"{path}[{index}]") for index in range(length)]

    def _build_content(self, value: list[Any], stream: BytesIO, context: Any, path: str) -> None:
        if not isinstance(value, (list, tuple)):
            raise ValueOutOfRange(f"{path}: {type(value).__name__} instead of a list")
        self._build_length(len(value), stream, context, path)
        for index, element in enumerate(value):
            self.element._build(element, stream, context, f"{path}[{index}]")


class OrNull(Subconstruct):  # type: ignore[misc]
    """A struct that may be null: 1 before it, or -1 in its place as an int8; in a tagged field 1 or 0 as a uvarint."""

    def __init__(self, subcon: Any, *, is_tagged: bool) -> None:
        super().__init__(subcon)
        self.marker = Uvarint if is_tagged else Int8
        self.null_marker = 0 if is_tagged else -1

    def _parse(self, stream: BytesIO, context: Any, path: str) -> Any:
        marker = self.marker._parse(stream, context, path)
        if marker == self.null_marker:
            return None
        if marker < 0:
            raise MalformedMessage(f"{path}: {marker} is neither -1 for null nor 1")
        return self.subcon._parse(stream, context, path)

    def _build(self, value: Any, stream: BytesIO, context: Any, path: str) -> Any:
        self.marker._build(self.null_marker if value is None else 1, stream, context, path)
        if value is not None:
            self.subcon._build(value, stream, context, path)
        return value


Uvarint = UnsignedVarint(32)
Varint = SignedVarint(32)
Varlong = SignedVarint(64)
Uuid = UuidBytes()
String = Text()
Bytes = Blob()
Records = RecordBytes()
