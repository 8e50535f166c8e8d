"""The codec of a message in a version."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

from walrusmq.protocol.layout import build, layout, parse

T = TypeVar("T")


class Codec(Generic[T]):
    """Reads and writes one kind of message in one version."""

    def __init__(self, cls: type[T], version: int) -> None:
        self.cls = cls
        self.version = version
        self.layout = layout(cls, version)

    def decode(self, buffer: Any, position: int = 0) -> tuple[T, int]:
        """Read a message that starts at ``position``; give it and where it ended. Raises MalformedMessage."""
        message, end = parse(self.layout, bytes(memoryview(buffer)[position:]))
        return message, position + end

    def encode(self, message: T) -> bytes:
        """Write a message. Raises UnencodableMessage."""
        return build(self.layout, message)

    def encode_parts(self, message: T, parts: list[Any]) -> None:
        """Append the bytes of a message in parts, the values of ``records`` fields as they are."""
        parts.append(build(self.layout, message))


_CODECS: dict[tuple[type, int], Codec[Any]] = {}


def codec(cls: type[T], version: int) -> Codec[T]:
    """The codec of a message class in a version, made once. Raises UnsupportedVersion."""
    known = _CODECS.get((cls, version))
    if known is None:
        known = _CODECS[cls, version] = Codec(cls, version)
    return known
