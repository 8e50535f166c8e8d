"""The codec of a message in a version: compiled code, made of the declaration when it is first asked for."""

from __future__ import annotations

from functools import cached_property
from typing import Any, Generic, Protocol, TypeVar

from walrusmq.protocol.layout import layout
from walrusmq.protocol.schema import schema_of

T = TypeVar("T")
Read = TypeVar("Read", covariant=True)
Written = TypeVar("Written", contravariant=True)


class Decode(Protocol[Read]):
    """Read a message from ``position`` on; give it, and where it ended, which is for the caller to judge."""

    def __call__(self, buffer: Any, position: int = 0) -> tuple[Read, int]: ...


class EncodeParts(Protocol[Written]):
    """Append the bytes of a message to ``parts``."""

    def __call__(self, message: Written, parts: list[Any]) -> None: ...


class Codec(Generic[T]):
    """Reads and writes one kind of message in one version.

    ``decode`` and ``encode_parts`` are functions, each compiled when it is first looked up.
    """

    def __init__(self, cls: type[T], version: int) -> None:
        self.cls = cls
        self.version = version
        self.layout = layout(cls, version)
        self.label = f"{schema_of(cls).name} v{version}"

    @cached_property
    def decode(self) -> Decode[T]:
        """``decode(buffer, position=0) -> (message, end)``.

        ``buffer`` is bytes or a memoryview of bytes, and ends where the frame does. A value of a ``records`` field is a
        memoryview of it; all else is copied. Raises MalformedMessage, and nothing else, for whatever the bytes are.
        """
        from walrusmq.protocol.decoder_compiler import compile_decoder

        return compile_decoder(self.layout, self.label)

    @cached_property
    def encode_parts(self) -> EncodeParts[T]:
        """``encode_parts(message, parts)``: values of ``records`` fields are appended as they are, all else as bytes.

        A value of a ``records`` field is bytes, a memoryview, a FileRegion or whatever else has a length. Raises
        UnencodableMessage, of the kind that fits, and then appends nothing.
        """
        from walrusmq.protocol.encoder_compiler import compile_encoder

        return compile_encoder(self.layout, self.label)

    def encode(self, message: T) -> bytes:
        """Write a message whose records, if any, are in memory. Raises UnencodableMessage, of the kind that fits."""
        parts: list[Any] = []
        self.encode_parts(message, parts)
        return parts[0] if len(parts) == 1 else b"".join(parts)


_CODECS: dict[tuple[type, int], Codec[Any]] = {}


def codec(cls: type[T], version: int) -> Codec[T]:
    """The codec of a message class in a version, made once. Raises UnsupportedVersion."""
    known = _CODECS.get((cls, version))
    if known is None:
        known = _CODECS[cls, version] = Codec(cls, version)
    return known
