"""Straight-line encoders: from a layout to the source of a function that writes a message.

In the source ``o`` is a list of the bytes so far, ``n`` a length or count and ``s`` content about to be written.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

from construct import FormatField

from walrusmq.protocol.compiler import UUID_FORMAT, Run, Source, format_character
from walrusmq.protocol.errors import UnencodableMessage, ValueOutOfRange
from walrusmq.protocol.layout import Absent, StructAdapter, TaggedFields, build
from walrusmq.protocol.primitives import (
    ZERO_UUID,
    Array,
    Blob,
    OrNull,
    Prefixed,
    RecordBytes,
    SignedVarint,
    Text,
    UnsignedVarint,
    UuidBytes,
    write_uvarint,
)
from walrusmq.protocol.schema import is_declared

Encoder = Callable[..., None]


def compile_encoder(layout: StructAdapter, label: str) -> Encoder:
    """Make ``encode_parts(message, parts)`` for a layout, which appends bytes and the values of ``records`` fields."""
    return _EncoderWriter(layout, label).write()


def explain(layout: StructAdapter, message: Any, error: Exception) -> UnencodableMessage:
    """Name what can't be written: build the message with construct, which knows where it is."""
    try:
        build(layout, message)
    except UnencodableMessage as named:
        return named
    return ValueOutOfRange(str(error))


def long_length(length: int, max_length: int) -> bytes:
    """Write a compact length (one more than the length) that takes several bytes."""
    if length > max_length + 1:
        raise ValueOutOfRange(f"length {length - 1} is above {max_length}")
    if length < 1 << 14:
        return bytes((length & 0x7F | 0x80, length >> 7))
    if length < 1 << 21:
        return bytes((length & 0x7F | 0x80, length >> 7 & 0x7F | 0x80, length >> 14))
    return write_uvarint(length)


_SHARED_NAMES = {
    "BYTE": tuple(bytes((value,)) for value in range(0x80)),
    "StructError": struct.error,
    "explain": explain,
    "join": b"".join,
    "long_length": long_length,
    "pack": struct.pack,
    "write_uvarint": write_uvarint,
}


class _EncoderWriter:
    def __init__(self, layout: StructAdapter, label: str) -> None:
        self.layout = layout
        self.label = label
        self.source = Source()
        self.source.namespace.update(_SHARED_NAMES, LAYOUT=layout)
        self.run = Run()
        self.pending_functions: list[Callable[[], None]] = []

    def write(self) -> Encoder:
        source = self.source
        with source.block("def encode_parts(message, parts):"):
            source.line("start = len(parts)")
            source.line("o = []")
            with source.block("try:"):
                self._members(self.layout, "message")
                self._flush()
                with source.block("if o:"):
                    source.line("parts.append(join(o))")
            with source.block("except (StructError, TypeError, AttributeError, ValueError, OverflowError) as error:"):
                source.line("del parts[start:]")
                source.line("raise explain(LAYOUT, message, error) from None")
        while self.pending_functions:
            self.pending_functions.pop()()
        return source.function("encode_parts", self.label)

    def _members(self, layout: StructAdapter, message: str) -> None:
        for member in layout.subcon.subcons:
            if isinstance(member.subcon, TaggedFields):
                self._tagged_fields(member.subcon, message)
            else:
                self._value(member.subcon, f"{message}.{member.name}")

    def _value(self, construct: Any, expression: str) -> None:
        match construct:
            case FormatField():
                self.run.add(format_character(construct), expression)
            case UuidBytes():
                self._uuid(expression)
            case Absent():
                self._absent(construct, expression)
            case Text() | Blob():
                self._content(construct, expression)
            case Array():
                self._elements(construct, expression)
            case StructAdapter():
                inner = self.source.fresh("m")
                self.source.line(f"{inner} = {expression}")
                self._members(construct, inner)
            case OrNull():
                self._nullable_struct(construct, expression)
            case UnsignedVarint():
                self._flush()
                name = self.source.constant("signed" if isinstance(construct, SignedVarint) else "unsigned", construct)
                self.source.line(f"o.append({name}.build({expression}))")
            case _:
                raise TypeError(f"no encoder can be made for {construct!r}")

    def _flush(self) -> None:
        """Write what has gathered in the run."""
        format, items = self.run.take()
        if format:
            self.source.line(f"o.append({self._pack(format, items)})")

    def _flush_with(self, condition: str, format: str, item: str | None, otherwise: str) -> None:
        """Write the run and one thing more that has a short form under a condition, which the run takes in."""
        run, items = self.run.take()
        more = [] if item is None else [item]
        if not run:
            short = f"BYTE[{item}]" if item else self._pack(format, more)
            self.source.line(f"o.append({short} if {condition} else {otherwise})")
            return
        with self.source.block(f"if {condition}:"):
            self.source.line(f"o.append({self._pack(run + format, items + more)})")
        with self.source.block("else:"):
            self.source.line(f"o.append({self._pack(run, items)})")
            self.source.line(f"o.append({otherwise})")

    def _pack(self, format: str, items: list[str]) -> str:
        if not items:
            return repr(struct.pack(">" + format))
        return f"{self.source.struct_method('pack', format)}({', '.join(items)})"

    def _uuid(self, expression: str) -> None:
        value = self.source.fresh("u")
        self.source.line(f"{value} = {expression}")
        # struct would cut or fill up another length.
        with self.source.block(f"if len({value}) != {len(ZERO_UUID)}:"):
            self.source.line("raise ValueError('a UUID has 16 bytes')")
        self.run.add(UUID_FORMAT, value)

    def _absent(self, construct: Absent, expression: str) -> None:
        if not construct.field.ignorable:
            with self.source.block(f"if {self._differs(construct.field, expression)}:"):
                self.source.line("raise ValueError('the version has no such field')")

    def _differs(self, field: Any, expression: str) -> str:
        """A condition: the value isn't the default. Structs are compared by identity first, as most share it."""
        default = self.source.constant("default", field.default)
        if is_declared(field.type) and field.default is not None:
            return f"{expression} is not {default} and {expression} != {default}"
        return f"{expression} is not None" if field.default is None else f"{expression} != {default}"

    def _length(self, construct: Prefixed) -> None:
        """Write ``n``, which is one more than the length in the compact form; flushes the run."""
        if construct.compact:
            self._flush_with("n < 128", "B", "n", f"long_length(n, {construct.max_length})")
        else:
            self.run.add(format_character(construct.plain_length), "n")
            self._flush()

    def _content(self, construct: Text | Blob, expression: str) -> None:
        source, more = self.source, " + 1" if construct.compact else ""
        value = f"{expression}.encode()" if isinstance(construct, Text) else expression
        if construct.nullable:
            source.line(f"s = {expression}")
            with source.block("if s is None:"):
                source.line(f"n, s = {0 if construct.compact else -1}, b''")
            with source.block("else:"):
                if isinstance(construct, Text):
                    source.line("s = s.encode()")
                source.line(f"n = len(s){more}")
        else:
            source.line(f"s = {value}")
            source.line(f"n = len(s){more}")
        self._length(construct)
        if isinstance(construct, RecordBytes):
            with source.block(f"if n > {1 if construct.compact else 0}:"):
                source.line("parts.append(join(o))")
                source.line("parts.append(s)")
                source.line("o = []")
        else:
            source.line("o.append(s)")

    def _elements(self, construct: Array, expression: str) -> None:
        source, more = self.source, " + 1" if construct.compact else ""
        elements = source.fresh("a")
        source.line(f"{elements} = {expression}")
        if construct.nullable:
            source.line(f"n = {0 if construct.compact else -1} if {elements} is None else len({elements}){more}")
        else:
            source.line(f"n = len({elements}){more}")
        self._length(construct)
        if isinstance(construct.element, FormatField):
            with source.block(f"if {elements}:"):
                character = format_character(construct.element)
                source.line(f"o.append(pack(f'>{{len({elements})}}{character}', *{elements}))")
            return
        element = source.fresh("m")
        with source.block(f"for {element} in {elements}{' or ()' if construct.nullable else ''}:"):
            if isinstance(construct.element, StructAdapter):
                self._members(construct.element, element)
            else:
                self._value(construct.element, element)
            self._flush()

    def _nullable_struct(self, construct: OrNull, expression: str) -> None:
        source, inner = self.source, self.source.fresh("m")
        self._flush()
        source.line(f"{inner} = {expression}")
        with source.block(f"if {inner} is None:"):
            source.line(f"o.append({struct.pack('>b', construct.null_marker)!r})")
        with source.block("else:"):
            source.line("o.append(b'\\x01')")
            self._members(construct.subcon, inner)
            self._flush()

    def _tagged_fields(self, construct: TaggedFields, message: str) -> None:
        if not construct.fields:
            self.run.add("x")
            return
        name = self.source.fresh("tagged_fields")
        self.pending_functions.append(lambda: self._tagged_fields_function(name, construct))
        defaults = " and ".join(self._is_plainly_default(each.field, message) for each in construct.fields)
        self._flush_with(defaults, "x", None, f"{name}({message})")

    def _is_plainly_default(self, field: Any, message: str) -> str:
        """A cheap condition that holds for nearly all default values, and for no others."""
        expression, default = f"{message}.{field.name}", self.source.constant("default", field.default)
        if field.default is None or is_declared(field.type):
            return f"{expression} is {default}"
        return f"{expression} == {default}"

    def _tagged_fields_function(self, name: str, construct: TaggedFields) -> None:
        source = self.source
        with source.block(f"def {name}(message):"):
            source.line("fields = []")
            for each in construct.fields:
                expression = f"message.{each.field.name}"
                with source.block(f"if {self._differs(each.field, expression)}:"):
                    source.line("o = []")
                    self._value(each.subcon, expression)
                    self._flush()
                    source.line("value = join(o)")
                    source.line(f"fields.append({write_uvarint(each.tag)!r} + write_uvarint(len(value)) + value)")
            source.line("return write_uvarint(len(fields)) + join(fields)")
