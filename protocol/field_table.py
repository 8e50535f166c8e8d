"""A message in one version as an aligned table of its fields."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from construct import FormatField

from walrusmq.protocol.json_form import present_fields
from walrusmq.protocol.layout import StructAdapter, layout
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
)
from walrusmq.protocol.schema import Field, is_declared, schema_of

HEADINGS = ("field", "type", "nullable", "tag", "default")

_NUMBER_NAMES = {
    ">?": "bool",
    ">b": "int8",
    ">h": "int16",
    ">H": "uint16",
    ">l": "int32",
    ">L": "uint32",
    ">q": "int64",
    ">d": "float64",
}

Row = tuple[str, str, str, str, str]


def field_table(cls: type, version: int) -> str:
    """The table of a message, with a line above that names it. Raises UnsupportedVersion."""
    schema = schema_of(cls)
    encoding = "flexible" if version in schema.flexible else "not flexible"
    key = "" if schema.api_key is None else f", API key {schema.api_key}"
    rows = [HEADINGS, *_rows(layout(cls, version), "")]
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEADINGS))]
    rows.insert(1, tuple("-" * width for width in widths))  # type: ignore[arg-type]
    lines = ["  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    title = f"{schema.name} version {version} ({schema.kind}{key}, {encoding})"
    return "\n".join([title, *(lines if len(rows) > 2 else ["no fields"])])


def _rows(construct: StructAdapter, indent: str) -> Iterator[Row]:
    for field, subcon, is_tagged in present_fields(construct):
        nullable = isinstance(subcon, OrNull) or (isinstance(subcon, Prefixed) and subcon.nullable)
        tag = str(field.tag) if is_tagged else ""
        yield indent + field.name, type_name(subcon), "nullable" if nullable else "", tag, _default(field)
        inner = subcon.element if isinstance(subcon, Array) else subcon.subcon if isinstance(subcon, OrNull) else subcon
        if isinstance(inner, StructAdapter):
            yield from _rows(inner, indent + "  ")


def type_name(construct: Any) -> str:
    """Kafka's name for a type, with ``compact`` before those that are."""
    compact = "compact " if isinstance(construct, Prefixed) and construct.compact else ""
    match construct:
        case FormatField():
            return _NUMBER_NAMES[construct.fmtstr]
        case Array():
            return f"{compact}[]{type_name(construct.element).removeprefix('compact ')}"
        case StructAdapter():
            return str(construct.cls.__name__)
        case OrNull():
            return type_name(construct.subcon)
        case Text():
            return f"{compact}string"
        case RecordBytes():
            return f"{compact}records"
        case Blob():
            return f"{compact}bytes"
        case UuidBytes():
            return "uuid"
        case SignedVarint():
            return "varint" if construct.bits == 32 else "varlong"
        case UnsignedVarint():
            return "uvarint"
    return type(construct).__name__


def _default(field: Field) -> str:
    value = field.default
    if value is None:
        return "null"
    if is_declared(field.type):
        return ""
    if value == ZERO_UUID:
        return "zero"
    return str(value).lower() if isinstance(value, bool) else repr(value)
