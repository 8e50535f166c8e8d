"""Messages as the JSON documents of test vectors, and where two of them differ.

Names begin with a small letter; integers are plain; ``bytes`` and ``records`` are base64, a UUID is URL-safe base64
without padding; tagged fields that hold their default are left out, as on the wire.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator
from io import BytesIO
from typing import Any

from construct import ConstructError, FormatField

from walrusmq.protocol.errors import MalformedMessage
from walrusmq.protocol.layout import Absent, StructAdapter, TaggedFields
from walrusmq.protocol.primitives import Array, Blob, OrNull, Text, UuidBytes, Uvarint
from walrusmq.protocol.schema import Field


class NotThatMessage(ValueError):
    """A JSON document isn't one of the message that it should be."""


def to_json(construct: Any, value: Any) -> Any:
    """The JSON form of a value that ``construct`` describes."""
    if value is None:
        return None
    match construct:
        case StructAdapter():
            return _struct_to_json(construct, value)
        case OrNull():
            return to_json(construct.subcon, value)
        case Array():
            return [to_json(construct.element, element) for element in value]
        case Blob():
            return base64.b64encode(value).decode()
        case UuidBytes():
            return base64.urlsafe_b64encode(value).decode().rstrip("=")
    return value


def _struct_to_json(construct: StructAdapter, message: Any) -> dict[str, Any]:
    document = {}
    for field, subcon, is_tagged in present_fields(construct):
        value = getattr(message, field.name)
        if not is_tagged or value != field.default:
            document[_json_name(field)] = to_json(subcon, value)
    return document


def from_json(construct: Any, document: Any, path: str = "") -> Any:
    """The value that ``construct`` describes, of its JSON form. Raises NotThatMessage with the path of the fault."""
    if document is None:
        return None
    match construct:
        case StructAdapter():
            return _struct_from_json(construct, document, path)
        case OrNull():
            return from_json(construct.subcon, document, path)
        case Array():
            if not isinstance(document, list):
                raise NotThatMessage(f"{path}: {document!r} is no list")
            return [from_json(construct.element, each, f"{path}[{index}]") for index, each in enumerate(document)]
        case Blob():
            return _from_base64(document, path)
        case UuidBytes():
            return _from_base64(document, path, url_safe=True)
        case Text():
            return _of_type(document, str, path)
        case FormatField(fmtstr=">?"):
            return _of_type(document, bool, path)
        case FormatField(fmtstr=">d"):
            return _of_type(document, (int, float), path)
    return _of_type(document, int, path)


def _struct_from_json(construct: StructAdapter, document: Any, path: str) -> Any:
    values, rest = {}, dict(_of_type(document, dict, path))
    for field, subcon, is_tagged in present_fields(construct):
        name = _json_name(field)
        inner = f"{path}.{name}" if path else name
        if name in rest:
            values[field.name] = from_json(subcon, rest.pop(name), inner)
        elif not is_tagged:
            raise NotThatMessage(f"{inner}: missing, though {construct.cls.__name__} has it in this version")
    if rest:
        raise NotThatMessage(f"{path or construct.cls.__name__} has no {', '.join(map(repr, rest))} in this version")
    return construct.cls(**values)


def differences(expected: Any, actual: Any, path: str = "") -> Iterator[str]:
    """Say where two documents differ, each place with its path."""
    if isinstance(expected, dict) and isinstance(actual, dict):
        for name in [*expected, *(name for name in actual if name not in expected)]:
            inner = f"{path}.{name}" if path else name
            if name not in actual:
                yield f"{inner}: expected {_short(expected[name])}, but it isn't there"
            elif name not in expected:
                yield f"{inner}: {_short(actual[name])}, but it shouldn't be there"
            else:
                yield from differences(expected[name], actual[name], inner)
    elif isinstance(expected, list) and isinstance(actual, list):
        if len(expected) != len(actual):
            yield f"{path}: expected {len(expected)} elements, got {len(actual)}"
        for index, (left, right) in enumerate(zip(expected, actual, strict=False)):
            yield from differences(left, right, f"{path}[{index}]")
    elif expected != actual or isinstance(expected, bool) != isinstance(actual, bool):
        yield f"{path or 'value'}: expected {_short(expected)}, got {_short(actual)}"


def field_at(construct: Any, data: bytes, offset: int) -> str:
    """The path of the field whose bytes include the one at ``offset`` of a message, or the one where it goes wrong."""
    return _field_at(construct, BytesIO(data), offset, "") or "the message as a whole"


def _field_at(construct: Any, stream: BytesIO, offset: int, path: str) -> str:
    for name, part in _parts(construct, stream):
        start = stream.tell()
        if not _can_skip(part, stream) or stream.tell() > offset:
            stream.seek(start)
            return _field_at(part, stream, offset, f"{path}.{name}".lstrip(".").replace(".[", "["))
    return path


def _can_skip(construct: Any, stream: BytesIO) -> bool:
    try:
        construct.parse_stream(stream)
    except (ConstructError, MalformedMessage):
        return False
    return True


def _parts(construct: Any, stream: BytesIO) -> Iterator[tuple[str, Any]]:
    """The parts of a construct with their names, as they follow in the stream."""
    match construct:
        case StructAdapter():
            names = {field.name: _json_name(field) for field, _, _ in present_fields(construct)}
            yield from ((names.get(member.name, member.name), member.subcon) for member in construct.subcon.subcons)
        case Array():
            length = Uvarint if construct.compact else construct.plain_length
            count = length.parse_stream(stream) - construct.compact
            yield from ((f"[{index}]", construct.element) for index in range(count))


def present_fields(construct: StructAdapter) -> Iterator[tuple[Field, Any, bool]]:
    """The fields of a struct in its version: the declaration, the construct, and whether it is tagged."""
    declared = {field.name: field for field in construct.fields}
    for member in construct.subcon.subcons:
        if isinstance(member.subcon, TaggedFields):
            yield from ((tagged.field, tagged.subcon, True) for tagged in member.subcon.fields)
        elif not isinstance(member.subcon, Absent):
            yield declared[member.name], member.subcon, False


def _json_name(field: Field) -> str:
    return field.kafka_name[0].lower() + field.kafka_name[1:]


def _of_type(document: Any, type_: Any, path: str) -> Any:
    if not isinstance(document, type_) or (isinstance(document, bool) and type_ is not bool):
        raise NotThatMessage(f"{path}: {_short(document)} is of the wrong type")
    return document


def _from_base64(document: Any, path: str, *, url_safe: bool = False) -> bytes:
    text = _of_type(document, str, path)
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_" if url_safe else None, validate=True)
    except (binascii.Error, ValueError):
        raise NotThatMessage(f"{path}: {_short(text)} is no base64") from None


def _short(value: Any, max_characters: int = 80) -> str:
    text = repr(value)
    return text if len(text) <= max_characters else f"{text[:max_characters]}… ({len(text)} characters)"
