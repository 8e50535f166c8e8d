"""The codec of a message in a version: compiled code, made of the declaration when it is first used."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

from walrusmq.protocol.layout import layout
from walrusmq.protocol.schema import schema_of

T = TypeVar("T")


class Codec(Generic[T]):
    """Reads and writes one kind of message in one version.

    Each way is compiled at its first use; from then on the compiled function stands in the place of the method.
    """

    def __init__(self, cls: type[T], version: int) -> None:
        self.cls = cls
        self.version = version
        self.layout = layout(cls, version)
        self.label = f"{schema_of(cls).name} v{version}"

    def decode(self, buffer: Any, position: int = 0) -> tuple[T, int]:
        """Read a message from ``position`` on; give it, and where it ended, which is for the caller to judge.

        ``buffer`` is bytes or a memoryview of bytes that ends where the frame does. A value of a ``records`` field is a
        memoryview of it; all else is copied. Raises MalformedMessage, and nothing else, for whatever the bytes are.
        """
        if "decode" not in self.__dict__:
            from walrusmq.protocol.decoder_compiler import compile_decoder

            self.__dict__["decode"] = compile_decoder(self.layout, self.label)
        decoded: tuple[T, int] = self.__dict__["decode"](buffer, position)
        return decoded

    def encode_parts(self, message: T, parts: list[Any]) -> None:
        """Append the bytes of a message to ``parts``: the values of ``records`` fields as they are, all else as bytes.

        Raises UnencodableMessage, of the kind that fits, and then appends nothing.
        """
        if "encode_parts" not in self.__dict__:
            from walrusmq.protocol.encoder_compiler import compile_encoder

            self.__dict__["encode_parts"] = compile_encoder(self.layout, self.label)
        self.__dict__["encode_parts"](message, parts)

    def encode(self, message: T) -> bytes:
        """Write a message. Raises UnencodableMessage, of the kind that fits."""
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
