"""Test vectors: files of JSON lines that say which bytes a message is, run through the codecs both ways.

Each line of a message's file has ``kind``, ``version``, ``variant``, ``message`` and ``bytes`` (hex), and a ``prefix``
where an int16 stands before them. The files of whole frames, of primitive types and of record batches have lines of
their own kinds, which are known by their members.
"""

from __future__ import annotations

import gzip
import json
import re
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from walrusmq.protocol.codec import Codec, codec
from walrusmq.protocol.errors import KafkaError, MalformedMessage, UnencodableMessage
from walrusmq.protocol.frames import (
    FRAME_SIZE_BYTES,
    decode_request_header,
    encode_response_header,
    read_frame_size,
    request_header_version,
    response_header_version,
)
from walrusmq.protocol.json_form import differences, field_at, from_json, to_json
from walrusmq.protocol.layout import build, parse
from walrusmq.protocol.messages import API_BY_KEY, MESSAGES_BY_NAME
from walrusmq.protocol.messages.group_records import RECORD_TYPES
from walrusmq.protocol.messages.headers import RequestHeader
from walrusmq.protocol.primitives import Uvarint, Varint, Varlong
from walrusmq.protocol.schema import schema_of

VARIANT_WITH_UNKNOWN_TAGS = "unknown-tags"
PREFIX_BYTES = 2
WAYS = ("compiled", "construct")

Vector = dict[str, Any]


class UnreadableVectors(Exception):
    """A file that can't be read as vectors, with the reason."""


class NotDeclared(Exception):
    """There is no declaration for what a vector is about, which the message names."""


def read_vectors(path: Path) -> Iterator[tuple[int, Vector]]:
    """Each vector of a ``.jsonl`` or ``.jsonl.gz`` file with the number of its line. Raises UnreadableVectors."""
    opened = gzip.open if path.suffix == ".gz" else open
    number = 0
    try:
        with opened(path, "rt", encoding="utf-8") as lines:
            for number, line in enumerate(lines, 1):
                vector = json.loads(line)
                if not isinstance(vector, dict):
                    raise UnreadableVectors(f"line {number} is no JSON object")
                yield number, vector
    except json.JSONDecodeError as error:
        raise UnreadableVectors(f"line {number} is no JSON: {error}") from None
    except (OSError, EOFError, UnicodeDecodeError, zlib.error) as error:
        raise UnreadableVectors(getattr(error, "strerror", None) or str(error)) from None


def check_vector(file_name: str, vector: Vector) -> list[str]:
    """Run one vector through the codecs; give what is wrong, nothing where all is well. Raises NotDeclared."""
    try:
        return list(_check_of(vector)(file_name, vector))
    except (KeyError, TypeError) as error:
        return [f"not a vector: {type(error).__name__} {error}"]
    except (ValueError, KafkaError) as error:
        return [f"{type(error).__name__}: {error}"]


def title(vector: Vector) -> str:
    """What a line is about, in a few words."""
    words = (vector.get(name) for name in ("name", "kind", "type", "apiKey", "version", "variant"))
    return " ".join(str(word) for word in words if word is not None)


def _check_of(vector: Vector) -> Callable[[str, Vector], Iterator[str]]:
    if "requestFrame" in vector:
        return _check_frames
    if "batch" in vector:
        from walrusmq.protocol.record_vectors import check_record_batches

        return check_record_batches
    return _check_primitive if "type" in vector else _check_message


def message_class(file_name: str, kind: str) -> type:
    """The class that a file's lines of a kind are about: by the API's key or name, else the message's own name."""
    stem = file_name.partition(".")[0]
    key = re.match(r"\d+", stem)
    name = re.sub(r"^\d+-", "", stem)
    for api in API_BY_KEY.values():
        if (api.key == int(key[0]) if key else api.name == name) and kind in ("request", "response"):
            declared: type = api.request if kind == "request" else api.response
            return declared
    if name not in MESSAGES_BY_NAME:
        raise NotDeclared(name)
    return MESSAGES_BY_NAME[name]


def _check_message(file_name: str, vector: Vector) -> Iterator[str]:
    cls = message_class(file_name, vector["kind"])
    version = vector["version"]
    if version not in schema_of(cls).versions:
        raise NotDeclared(f"{cls.__name__} {version}")
    if "prefix" in vector:
        prefix = RECORD_TYPES[cls] if vector["kind"] == "coordinator-key" else version
        yield from differences(vector["prefix"], prefix.to_bytes(PREFIX_BYTES).hex(), "prefix")
    tried: Codec[Any] = codec(cls, version)
    data = bytes.fromhex(vector["bytes"])
    yield from _check_decoding(tried, data, vector["message"])
    message = from_json(tried.layout, vector["message"])
    if vector.get("variant") == VARIANT_WITH_UNKNOWN_TAGS:
        # The bytes can't come back, but they must stand for the same message.
        yield from _check_decoding(tried, tried.encode(message), vector["message"])
    else:
        yield from _check_encoding(tried, message, data)


def _check_decoding(tried: Codec[Any], data: bytes, document: Any) -> Iterator[str]:
    for way in WAYS:
        try:
            message, end = tried.decode(data) if way == "compiled" else parse(tried.layout, data)
        except MalformedMessage as error:
            yield f"refused when decoded ({way}): {error}"
            continue
        if end != len(data):
            yield f"decoding ended at byte {end} of {len(data)} ({way})"
        for difference in differences(document, to_json(tried.layout, message)):
            yield f"{difference} (decoded, {way})"


def _check_encoding(tried: Codec[Any], message: Any, data: bytes) -> Iterator[str]:
    for way in WAYS:
        try:
            encoded = tried.encode(message) if way == "compiled" else build(tried.layout, message)
        except UnencodableMessage as error:
            yield f"refused when encoded ({way}): {error}"
            continue
        if encoded != data:
            yield f"{_first_difference(tried, data, encoded)} (encoded, {way})"


def _first_difference(tried: Codec[Any], expected: bytes, actual: bytes) -> str:
    same = 0
    while same < min(len(expected), len(actual)) and expected[same] == actual[same]:
        same += 1
    place = field_at(tried.layout, expected, same)
    return f"{place}: byte {same}: expected {expected[same : same + 8].hex()}, got {actual[same : same + 8].hex()}"


def _check_frames(_: str, vector: Vector) -> Iterator[str]:
    key, version = vector["apiKey"], vector["version"]
    if key not in API_BY_KEY:
        raise NotDeclared(f"API {key}")
    for name, header_version in (
        ("requestHeaderVersion", request_header_version(key, version)),
        ("responseHeaderVersion", response_header_version(key, version)),
    ):
        yield from differences(vector[name], header_version, name)
    yield from _check_request_frame(vector, codec(API_BY_KEY[key].request, version))
    yield from _check_response_frame(vector, codec(API_BY_KEY[key].response, version))


def _check_request_frame(vector: Vector, tried: Codec[Any]) -> Iterator[str]:
    frame = bytes.fromhex(vector["requestFrame"])
    yield from differences(len(frame) - FRAME_SIZE_BYTES, read_frame_size(frame), "requestFrame.size")
    header, body = decode_request_header(frame, FRAME_SIZE_BYTES)
    expected = RequestHeader(
        api_key=vector["apiKey"],
        api_version=vector["version"],
        correlation_id=vector["correlationId"],
        client_id=vector["clientId"],
    )
    yield from differences(repr(expected), repr(header), "requestFrame.header")
    message, end = tried.decode(frame, body)
    yield from differences([repr(tried.cls()), len(frame)], [repr(message), end], "requestFrame.body")
    encoded = codec(RequestHeader, vector["requestHeaderVersion"]).encode(header) + tried.encode(message)
    yield from differences(frame[FRAME_SIZE_BYTES:].hex(), encoded.hex(), "requestFrame")


def _check_response_frame(vector: Vector, tried: Codec[Any]) -> Iterator[str]:
    frame = bytes.fromhex(vector["responseFrame"])
    header = encode_response_header(vector["correlationId"], vector["responseHeaderVersion"] == 1)
    encoded = header + tried.encode(tried.cls())
    yield from differences(frame.hex(), (len(encoded).to_bytes(FRAME_SIZE_BYTES) + encoded).hex(), "responseFrame")
    message, end = tried.decode(frame, FRAME_SIZE_BYTES + len(header))
    yield from differences([repr(tried.cls()), len(frame)], [repr(message), end], "responseFrame.body")


def _check_primitive(_: str, vector: Vector) -> Iterator[str]:
    data, value = bytes.fromhex(vector["bytes"]), vector["value"]
    if vector["type"] == "crc32c":
        from walrusmq.protocol.records.crc import crc32c

        yield from differences(value, crc32c(data))
        return
    construct = {"uvarint": Uvarint, "varint": Varint, "varlong": Varlong}.get(vector["type"])
    if construct is None:
        raise NotDeclared(f"the type {vector['type']!r}")
    yield from differences(value, construct.parse(data), "value")
    yield from differences(data.hex(), construct.build(value).hex(), "bytes")
