"""From a declaration and a version to a plain construct: the reference that says what the bytes are.

``layout(ProduceRequest, 9)`` parses bytes to a ``ProduceRequest`` and builds them again, with nothing but construct at
work. A declared class becomes a ``StructAdapter`` (Container to object and back) round a ``construct.Struct`` whose
members are, in the order of the declaration, the fields of the version, ``Absent`` for those that it hasn't got, and in
flexible versions ``TaggedFields`` at the end. The compiler walks the same tree and makes fast code of it.
"""

from __future__ import annotations

from io import BytesIO
from typing import Any

from construct import Adapter, Construct, ConstructError, Struct, stream_read, stream_write

from walrusmq.protocol.errors import MalformedMessage, UnsupportedField, UnsupportedVersion, ValueOutOfRange
from walrusmq.protocol.primitives import (
    MAX_LENGTH,
    Array,
    OrNull,
    Prefixed,
    RecordBytes,
    Uvarint,
    remaining_bytes,
    spend,
)
from walrusmq.protocol.schema import Field, is_declared, schema_of

TAGGED_FIELDS = "(tagged fields)"
"""The name of the last member of a flexible struct; not one that a field could have."""
MIN_TAGGED_FIELD_BYTES = 2
MAX_REQUEST_ELEMENTS = 1 << 17
"""Elements of arrays and tagged fields that a request may have in all. Each takes about a microsecond of the event loop
and a hundred bytes, of two or more on the wire: a frame of 100 MiB could stop a node for a minute, and fill its memory.
It is ten times what a client of 10,000 partitions sends."""


class Absent(Construct):  # type: ignore[misc]
    """A field that the version hasn't got: no bytes, read as its default."""

    def __init__(self, field: Field) -> None:
        super().__init__()
        self.field = field
        self.flagbuildnone = True

    def _parse(self, stream: BytesIO, context: Any, path: str) -> Any:
        return self.field.make_default()

    def _build(self, value: Any, stream: BytesIO, context: Any, path: str) -> Any:
        if not self.field.ignorable and value != self.field.default:
            raise UnsupportedField(f"{path}: this version can't carry {value!r}")
        return value


class TaggedField:
    """A tagged field in a version: its declaration, and how its value is written."""

    __slots__ = ("field", "subcon", "tag")

    def __init__(self, field: Field, subcon: Any) -> None:
        assert field.tag is not None, f"{field.name} is tagged, but has no tag"
        assert not isinstance(subcon, RecordBytes), f"{field.name}: records can't be tagged, as they aren't copied"
        self.tag = field.tag
        self.field = field
        self.subcon = subcon


class TaggedFields(Construct):  # type: ignore[misc]
    """What stands at the end of each struct in a flexible version (KIP-482); parses to the values by name.

    Like Kafka's own reader this one takes tags in any order, and the last of two with the same tag; unlike it, it
    refuses a value that isn't as long as its size says. Unknown tags are skipped.
    """

    def __init__(self, fields: list[TaggedField]) -> None:
        super().__init__()
        self.fields = sorted(fields, key=lambda each: each.tag)
        self.by_tag = {each.tag: each for each in fields}

    def _parse(self, stream: BytesIO, context: Any, path: str) -> dict[str, Any]:
        values = {each.field.name: each.field.make_default() for each in self.fields}
        count = Uvarint._parse(stream, context, path)
        if count * MIN_TAGGED_FIELD_BYTES > remaining_bytes(stream):
            raise MalformedMessage(f"{path}: {count} tagged fields, but {remaining_bytes(stream)} bytes are left")
        spend(context, count, path)
        for _ in range(count):
            tag = Uvarint._parse(stream, context, path)
            size = Uvarint._parse(stream, context, path)
            if size > remaining_bytes(stream):
                raise MalformedMessage(f"{path}: tag {tag} has {size} bytes, but {remaining_bytes(stream)} are left")
            known = self.by_tag.get(tag)
            if known is None:
                stream_read(stream, size, path)
                continue
            end = stream.tell() + size
            values[known.field.name] = known.subcon._parse(stream, context, f"{path} -> {known.field.name}")
            if stream.tell() != end:
                raise MalformedMessage(f"{path} -> {known.field.name}: the value isn't {size} bytes long")
        return values

    def _build(self, values: dict[str, Any], stream: BytesIO, context: Any, path: str) -> Any:
        present = [each for each in self.fields if values[each.field.name] != each.field.default]
        Uvarint._build(len(present), stream, context, path)
        for each in present:
            inner = BytesIO()
            each.subcon._build(values[each.field.name], inner, context, f"{path} -> {each.field.name}")
            Uvarint._build(each.tag, stream, context, path)
            Uvarint._build(len(inner.getvalue()), stream, context, path)
            stream_write(stream, inner.getvalue(), len(inner.getvalue()), path)
        return values


class StructAdapter(Adapter):  # type: ignore[misc]
    """Makes an object of a declared class from what its ``Struct`` parses, and takes one apart to build it."""

    def __init__(self, cls: type, subcon: Struct) -> None:
        super().__init__(subcon)
        self.cls = cls
        self.fields = schema_of(cls).fields
        self.names = [each.name for each in self.fields]

    def _decode(self, container: Any, context: Any, path: str) -> Any:
        values = {**container, **container.get(TAGGED_FIELDS, {})}
        return self.cls(**{name: values[name] for name in self.names})

    def _encode(self, value: Any, context: Any, path: str) -> dict[str, Any]:
        if not isinstance(value, self.cls):
            raise ValueOutOfRange(f"{path}: {type(value).__name__} instead of {self.cls.__name__}")
        values = {name: getattr(value, name) for name in self.names}
        return {**values, TAGGED_FIELDS: values}


_LAYOUTS: dict[tuple[type, int], StructAdapter] = {}


def layout(cls: type, version: int) -> StructAdapter:
    """The construct of a message in a version; made once. Raises UnsupportedVersion."""
    known = _LAYOUTS.get((cls, version))
    if known is None:
        schema = schema_of(cls)
        if version not in schema.versions:
            raise UnsupportedVersion(f"{schema.name} has no version {version}")
        known = _LAYOUTS[cls, version] = _resolve_struct(cls, version, version in schema.flexible)
    return known


def parse(construct: StructAdapter, data: bytes) -> tuple[Any, int]:
    """Parse with construct alone; give the message and where it ended. Raises MalformedMessage."""
    stream = BytesIO(data)
    try:
        message = construct.parse_stream(stream, elements_left=max_elements(construct))
    except ConstructError as error:
        raise MalformedMessage(_one_line(error)) from None
    return message, stream.tell()


def max_elements(construct: StructAdapter) -> int:
    """How many elements and tagged fields a message may have. Only requests come from strangers."""
    return MAX_REQUEST_ELEMENTS if schema_of(construct.cls).kind == "request" else MAX_LENGTH


def build(construct: StructAdapter, message: Any) -> bytes:
    """Build with construct alone. Raises UnencodableMessage, of the kind that fits."""
    try:
        data: bytes = construct.build(message)
    except ConstructError as error:
        raise ValueOutOfRange(_one_line(error)) from None
    return data


def _one_line(error: ConstructError) -> str:
    return " ".join(str(error).removeprefix("Error in path ").split())


def _resolve_struct(cls: type, version: int, flexible: bool) -> StructAdapter:
    members: list[Any] = []
    tagged: list[TaggedField] = []
    for field in schema_of(cls).fields:
        if version in field.tagged and flexible:
            tagged.append(TaggedField(field, _resolve_type(field, version, flexible)))
        elif version in field.versions:
            members.append(field.name / _resolve_type(field, version, flexible))
        else:
            members.append(field.name / Absent(field))
    if flexible:
        members.append(TAGGED_FIELDS / TaggedFields(tagged))
    return StructAdapter(cls, Struct(*members))


def _resolve_type(field: Field, version: int, flexible: bool) -> Any:
    nullable = version in field.nullable
    compact = flexible if field.flexible is None else version in field.flexible
    if is_declared(field.type):
        inner = _resolve_struct(field.type, version, flexible)
        return OrNull(inner, is_tagged=version in field.tagged) if nullable else inner
    if isinstance(field.type, Array):
        return field.type.with_element(_resolve_element(field.type.element, version, flexible, compact)).resolved(
            compact=compact, nullable=nullable
        )
    return _resolve_plain(field.type, compact, nullable)


def _resolve_element(element: Any, version: int, flexible: bool, compact: bool) -> Any:
    # Nullability is the array's, never its elements'.
    if is_declared(element):
        return _resolve_struct(element, version, flexible)
    return _resolve_plain(element, compact, nullable=False)


def _resolve_plain(primitive: Any, compact: bool, nullable: bool) -> Any:
    return primitive.resolved(compact=compact, nullable=nullable) if isinstance(primitive, Prefixed) else primitive
