"""Straight-line decoders: from a layout to the source of a function that reads a message out of a buffer.

In the source ``buffer`` is what is read, ``limit`` its end, ``p`` the position, ``n`` a length or count just read, and
``left`` how many elements and tagged fields the message may still have.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

from construct import FormatField

from walrusmq.protocol.compiler import UUID_FORMAT, Run, Source, format_character, least_bytes
from walrusmq.protocol.errors import MalformedMessage
from walrusmq.protocol.layout import MIN_TAGGED_FIELD_BYTES, Absent, StructAdapter, TaggedFields, max_elements
from walrusmq.protocol.primitives import (
    Array,
    Blob,
    OrNull,
    Prefixed,
    RecordBytes,
    SignedVarint,
    Text,
    UnsignedVarint,
    UuidBytes,
    read_uvarint,
)

Decoder = Callable[..., tuple[Any, int]]


def compile_decoder(layout: StructAdapter, label: str) -> Decoder:
    """Make ``decode(buffer, position=0) -> (message, end)`` for a layout; ``label`` names it in errors."""
    return _DecoderWriter(layout, label).write()


def long_length(buffer: Any, position: int, first: int, max_length: int) -> tuple[int, int]:
    """Read a compact length (one more than the length) whose first byte, before ``position``, doesn't end it."""
    second = buffer[position]
    if second < 0x80:
        return first & 0x7F | second << 7, position + 1
    third = buffer[position + 1]
    if third < 0x80:
        value, position = first & 0x7F | (second & 0x7F) << 7 | third << 14, position + 2
    else:
        value, position = read_uvarint(buffer, position - 1)
    if value > max_length + 1:
        raise MalformedMessage(f"length {value - 1} is above {max_length}")
    return value, position


def skip_tagged_fields(buffer: Any, position: int, limit: int, count: int, left: int) -> tuple[int, int]:
    """Skip tagged fields, none of which is known; ``count`` is the first byte of their number, before ``position``."""
    count, position, left = tagged_field_count(buffer, position, limit, count, left)
    for _ in range(count):
        _, position = read_uvarint(buffer, position)
        size, position = read_uvarint(buffer, position)
        position += size
        if position > limit:
            raise MalformedMessage(f"a tagged field of {size} bytes goes past the end")
    return position, left


def tagged_field_count(buffer: Any, position: int, limit: int, count: int, left: int) -> tuple[int, int, int]:
    """Read the rest of the number of tagged fields, and hold it against the bytes and the elements that are left."""
    if count > 0x7F:
        count, position = read_uvarint(buffer, position - 1)
    if count * MIN_TAGGED_FIELD_BYTES > limit - position:
        raise MalformedMessage(f"{count} tagged fields, but {limit - position} bytes are left")
    if count > left:
        raise too_many_elements("tagged fields")
    return count, position, left - count


def too_many_elements(label: str) -> MalformedMessage:
    """The error for a message of more elements and tagged fields than it may have."""
    return MalformedMessage(f"{label}: more elements than a message may have")


def bad_length(label: str, length: int, left: int) -> MalformedMessage:
    """The error for a length or count that can't be."""
    if length == -1:
        return MalformedMessage(f"{label}: null where that can't be")
    return MalformedMessage(f"{label}: length {length}, but {left} bytes are left")


_SHARED_NAMES = {
    "MalformedMessage": MalformedMessage,
    "StructError": struct.error,
    "bad_length": bad_length,
    "long_length": long_length,
    "new": object.__new__,
    "read_uvarint": read_uvarint,
    "skip_tagged_fields": skip_tagged_fields,
    "tagged_field_count": tagged_field_count,
    "too_many_elements": too_many_elements,
    "unpack_from": struct.unpack_from,
}


class _DecoderWriter:
    def __init__(self, layout: StructAdapter, label: str) -> None:
        self.layout = layout
        self.label = label
        self.source = Source()
        self.source.namespace.update(_SHARED_NAMES)
        self.run = Run()
        self.path: list[str] = []
        self.pending_functions: list[Callable[[], None]] = []

    def write(self) -> Decoder:
        source = self.source
        with source.block("def decode(buffer, position=0):"):
            with source.block("if type(buffer) is not memoryview:"):
                source.line("buffer = memoryview(buffer)")
            source.line("limit = len(buffer)")
            source.line("p = position")
            source.line(f"left = {max_elements(self.layout)}")
            with source.block("try:"):
                message = self._struct(self.layout)
                self._flush()
                source.line(f"return {message}, p")
            with source.block("except UnicodeDecodeError as error:"):
                source.line(f"raise MalformedMessage(f'{self.label}: {{error}}') from None")
            with source.block("except (IndexError, StructError):"):
                source.line(f"raise MalformedMessage('{self.label}: the bytes end early') from None")
        while self.pending_functions:
            self.pending_functions.pop()()
        return source.function("decode", self.label)

    def _struct(self, layout: StructAdapter) -> str:
        """Write the reading of a struct; give the variable that holds it."""
        message = self.source.fresh("m")
        self.source.line(f"{message} = new({self.source.constant(layout.cls.__name__, layout.cls)})")
        for member in layout.subcon.subcons:
            if isinstance(member.subcon, TaggedFields):
                self._tagged_fields(member.subcon, message)
            else:
                self.path.append(member.name)
                self._value(member.subcon, f"{message}.{member.name}")
                self.path.pop()
        return message

    def _value(self, construct: Any, target: str) -> None:
        """Write the reading of a value into a variable or attribute."""
        match construct:
            case FormatField():
                self.run.add(format_character(construct), target)
            case UuidBytes():
                self.run.add(UUID_FORMAT, target)
            case Absent():
                self._default(construct.field, target)
            case Text() | Blob():
                self._length(construct)
                self._with_null(construct, target, self._content)
            case Array():
                self._length(construct)
                self._with_null(construct, target, self._elements)
            case StructAdapter():
                self.source.line(f"{target} = {self._struct(construct)}")
            case OrNull():
                self._nullable_struct(construct, target)
            case UnsignedVarint():
                self._varint(construct, target)
            case _:
                raise TypeError(f"no decoder can be made for {construct!r}")

    def _default(self, field: Any, target: str) -> None:
        if field.is_shared:
            self.source.line(f"{target} = {self.source.constant('default', field.default)}")
        elif isinstance(field.type, Array):
            self.source.line(f"{target} = []")
        else:
            self.source.line(f"{target} = {self.source.constant(field.type.__name__, field.type)}()")

    def _flush(self) -> None:
        """Write the reading of what has gathered in the run."""
        format, targets = self.run.take()
        if format == "B":
            self.source.line(f"{targets[0]} = buffer[p]")
            self.source.line("p += 1")
        elif format == "?":
            self.source.line(f"{targets[0]} = buffer[p] != 0")
            self.source.line("p += 1")
        elif format:
            method = self.source.struct_method("unpack_from", format)
            self.source.line(f"{', '.join(targets)}{',' if len(targets) == 1 else ''} = {method}(buffer, p)")
            self.source.line(f"p += {struct.calcsize('>' + format)}")

    def _length(self, construct: Prefixed) -> None:
        """Write the reading of a length or count into ``n``; the first byte of a compact one belongs to the run."""
        self.run.add("B" if construct.compact else format_character(construct.plain_length), "n")
        self._flush()
        if construct.compact:
            with self.source.block("if n > 127:"):
                self.source.line(f"n, p = long_length(buffer, p, n, {construct.max_length})")
                if isinstance(construct, Array):
                    self._check_count(construct)

    def _with_null(self, construct: Prefixed, target: str, write: Callable[[Any, str], None]) -> None:
        """Write null where that can be, and the rest by ``write``."""
        if not construct.nullable:
            write(construct, target)
            return
        with self.source.block("if n:" if construct.compact else "if n != -1:"):
            write(construct, target)
        with self.source.block("else:"):
            self.source.line(f"{target} = None")

    def _content(self, construct: Text | Blob, target: str) -> None:
        less = " - 1" if construct.compact else ""
        self.source.line(f"e = p + n{less}")
        with self.source.block("if not p <= e <= limit:"):
            self.source.line(f"raise bad_length({self._label()}, n{less}, limit - p)")
        match construct:
            case Text():
                self.source.line(f"{target} = buffer[p:e].tobytes().decode()")
            case RecordBytes():
                self.source.line(f"{target} = buffer[p:e]")
            case _:
                self.source.line(f"{target} = buffer[p:e].tobytes()")
        self.source.line("p = e")

    def _elements(self, construct: Array, target: str) -> None:
        source, elements, count = self.source, self.source.fresh("a"), self.source.fresh("c")
        if not construct.compact:
            self._check_count(construct)
        elif not construct.nullable:
            with source.block("if n == 0:"):
                source.line(f"raise bad_length({self._label()}, -1, limit - p)")
        source.line(f"{count} = n - 1" if construct.compact else f"{count} = n")
        source.line(f"left -= {count}")
        with source.block("if left < 0:"):
            source.line(f"raise too_many_elements({self._label()})")
        if isinstance(construct.element, FormatField):
            size, character = construct.element.length, format_character(construct.element)
            source.line(f"{target} = list(unpack_from(f'>{{{count}}}{character}', buffer, p))")
            source.line(f"p += {count} * {size}")
            return
        source.line(f"{target} = {elements} = []")
        # For a few elements this is faster than making a range.
        with source.block(f"while {count}:"):
            source.line(f"{count} -= 1")
            if isinstance(construct.element, StructAdapter):
                element = self._struct(construct.element)
            else:
                element = source.fresh("v")
                self._value(construct.element, element)
            self._flush()
            source.line(f"{elements}.append({element})")

    def _check_count(self, construct: Array) -> None:
        # Kafka too refuses a count above the bytes left, even if elements should take no bytes at all. A compact count
        # of one byte needs no check: each element has at least its tagged fields, and they run out soon enough.
        least = least_bytes(construct.element)
        assert least or not construct.compact, f"{self._label()}: elements of no bytes"
        if construct.compact:
            count, condition = "n - 1", f"(n - 1) * {least} > limit - p"
        else:
            count, condition = "n", f"not 0 <= n * {max(1, least)} <= limit - p"
        with self.source.block(f"if {condition}:"):
            self.source.line(f"raise bad_length({self._label()}, {count}, limit - p)")

    def _nullable_struct(self, construct: OrNull, target: str) -> None:
        is_tagged = construct.null_marker == 0
        self.run.add("B" if is_tagged else "b", "n")
        self._flush()
        if is_tagged:
            with self.source.block("if n > 127:"):
                self.source.line("n, p = read_uvarint(buffer, p - 1)")
        else:
            with self.source.block("if n < -1:"):
                self.source.line(f"raise bad_length({self._label()}, n, limit - p)")
        with self.source.block(f"if n == {construct.null_marker}:"):
            self.source.line(f"{target} = None")
        with self.source.block("else:"):
            self.source.line(f"{target} = {self._struct(construct.subcon)}")
            self._flush()

    def _varint(self, construct: UnsignedVarint, target: str) -> None:
        self.run.add("B", "n")
        self._flush()
        with self.source.block("if n > 127:"):
            self.source.line(f"n, p = read_uvarint(buffer, p - 1, {construct.max_bytes})")
        self.source.line(f"{target} = " + ("(n >> 1) ^ -(n & 1)" if isinstance(construct, SignedVarint) else "n"))

    def _tagged_fields(self, construct: TaggedFields, message: str) -> None:
        for tagged in construct.fields:
            self._default(tagged.field, f"{message}.{tagged.field.name}")
        self.run.add("B", "n")
        self._flush()
        name = "skip_tagged_fields"
        arguments = "buffer, p, limit, n, left"
        if construct.fields:
            name, arguments = self.source.fresh("read_tagged_fields"), f"{arguments}, {message}"
            path = list(self.path)
            self.pending_functions.append(lambda: self._tagged_fields_function(name, construct, path))
        with self.source.block("if n:"):
            self.source.line(f"p, left = {name}({arguments})")

    def _tagged_fields_function(self, name: str, construct: TaggedFields, path: list[str]) -> None:
        source = self.source
        self.path = path
        with source.block(f"def {name}(buffer, p, limit, n, left, message):"):
            source.line("n, p, left = tagged_field_count(buffer, p, limit, n, left)")
            with source.block("for _ in range(n):"):
                source.line("tag, p = read_uvarint(buffer, p)")
                source.line("size, p = read_uvarint(buffer, p)")
                source.line("end = p + size")
                with source.block("if end > limit:"):
                    source.line("raise MalformedMessage(f'tag {tag}: {size} bytes go past the end')")
                for tagged in construct.fields:
                    with source.block(f"if tag == {tagged.tag}:"):
                        self.path.append(tagged.field.name)
                        self._value(tagged.subcon, f"message.{tagged.field.name}")
                        self._flush()
                        with source.block("if p != end:"):
                            source.line(f"raise MalformedMessage({self._label()} f': not {{size}} bytes long')")
                        self.path.pop()
                        source.line("continue")
                source.line("p = end")
            source.line("return p, left")

    def _label(self) -> str:
        return repr(".".join([self.label, *self.path]))
