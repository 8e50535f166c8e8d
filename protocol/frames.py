"""Frames: an int32 size, a header, a body. The size counts what follows it."""

from __future__ import annotations

import struct
from typing import Any, Protocol

from walrusmq.protocol.codec import Codec, codec
from walrusmq.protocol.errors import MalformedMessage
from walrusmq.protocol.messages import API_BY_KEY
from walrusmq.protocol.messages.headers import RequestHeader, ResponseHeader
from walrusmq.protocol.schema import schema_of

__all__ = [
    "FRAME_SIZE_BYTES",
    "MAX_FRAME_BYTES",
    "FileHandle",
    "FileRegion",
    "RequestHeader",
    "ResponseHeader",
    "decode_request_header",
    "encode_response_header",
    "read_frame_size",
    "request_header_version",
    "response_header_version",
]

MAX_FRAME_BYTES = 100 * 1024 * 1024
"""The default of ``socket.request.max.bytes``, as in Kafka: a larger frame is refused before it is read."""
FRAME_SIZE_BYTES = 4
API_VERSIONS_KEY = 18

_FRAME_SIZE = struct.Struct(">i")
_API_AND_VERSION = struct.Struct(">hh")
_PLAIN_RESPONSE_HEADER = struct.Struct(">i")
_FLEXIBLE_RESPONSE_HEADER = struct.Struct(">ix")

_header_codecs: dict[tuple[int, ...], Codec[RequestHeader]] = {}
"""By api key and version; only of versions that exist, so that nobody can fill it."""


class FileHandle(Protocol):
    """An open file that may be closed under a reader unless it is pinned."""

    fd: int

    def pin(self) -> None:
        """Keep the file open until as many ``unpin`` have followed."""

    def unpin(self) -> None:
        """Let the file be closed again."""


class FileRegion:
    """A stretch of a file that goes to a socket without passing through Python; stands for bytes in a message.

    Whoever queues it pins the handle, and unpins it when the bytes have left.
    """

    __slots__ = ("handle", "position", "size")

    def __init__(self, handle: FileHandle, position: int, size: int) -> None:
        self.handle = handle
        self.position = position
        self.size = size

    def __len__(self) -> int:
        return self.size

    def __repr__(self) -> str:
        return f"FileRegion(fd={self.handle.fd}, position={self.position}, size={self.size})"


def read_frame_size(buffer: Any, position: int = 0, max_bytes: int = MAX_FRAME_BYTES) -> int:
    """Read how many bytes follow the four of the size. Raises MalformedMessage if negative or above the limit."""
    size: int = _FRAME_SIZE.unpack_from(buffer, position)[0]
    if not 0 <= size <= max_bytes:
        raise MalformedMessage(f"a frame of {size} bytes, where at most {max_bytes} are allowed")
    return size


def request_header_version(api_key: int, api_version: int) -> int:
    """The version of the header before this request; known for any version, even one that the API hasn't got.

    Raises MalformedMessage for an unknown API: its header can't be read, and Kafka closes the connection.
    """
    api = API_BY_KEY.get(api_key)
    if api is None:
        raise MalformedMessage(f"unknown api key {api_key}")
    return 2 if api_version in schema_of(api.request).flexible else 1


def response_header_version(api_key: int, api_version: int) -> int:
    """The version of the header before this response: 0 for ApiVersions always, so that any client can read it."""
    if api_key == API_VERSIONS_KEY:
        return 0
    return 1 if api_version in schema_of(API_BY_KEY[api_key].response).flexible else 0


def decode_request_header(buffer: Any, position: int = 0) -> tuple[RequestHeader, int]:
    """Read a request's header, whichever its version; give it and where the body starts. Raises MalformedMessage."""
    try:
        api_and_version = _API_AND_VERSION.unpack_from(buffer, position)
    except struct.error:
        raise MalformedMessage("the frame ends inside of the request header") from None
    header_codec = _header_codecs.get(api_and_version) or _find_header_codec(*api_and_version)
    return header_codec.decode(buffer, position)


def _find_header_codec(api_key: int, api_version: int) -> Codec[RequestHeader]:
    header_codec = codec(RequestHeader, request_header_version(api_key, api_version))
    if api_version in schema_of(API_BY_KEY[api_key].request).versions:
        _header_codecs[api_key, api_version] = header_codec
    return header_codec


def encode_response_header(correlation_id: int, flexible: bool) -> bytes:
    """Write a response's header: version 1 (with no tagged fields) if flexible, else version 0."""
    return (_FLEXIBLE_RESPONSE_HEADER if flexible else _PLAIN_RESPONSE_HEADER).pack(correlation_id)
