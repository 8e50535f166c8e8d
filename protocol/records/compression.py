"""The five codecs of a record batch. Each library is imported when its codec is first needed.

gzip comes from the standard library, lz4 from a dependency; snappy and zstd need the extra `codecs`. Decompression is
safe on hostile bytes: it ends in at most `max_bytes` of output or in one of the errors named at `decompress`.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from enum import IntEnum
from struct import Struct
from types import ModuleType

from walrusmq.protocol.errors import CorruptMessage, UnsupportedCompressionType

MAX_DECOMPRESSED_BYTES = 100 * 1024 * 1024
"""What one batch may unpack to unless told otherwise: the largest frame a client can send, were it not compressed."""

MAX_GZIP_MEMBERS = 64
"""No client writes more than one; each costs zlib a copy of all that comes after it."""

XERIAL_MAGIC = b"\x82SNAPPY\x00"
XERIAL_HEADER = XERIAL_MAGIC + b"\x00\x00\x00\x01\x00\x00\x00\x01"
XERIAL_BLOCK_BYTES = 32 * 1024
"""What snappy-java puts in a block; its readers take any size."""
GZIP_MAGIC = b"\x1f\x8b"
GZIP_WBITS = 31
"""zlib's way to say: the largest window, inside gzip's header and trailer."""

_INT32 = Struct(">i")

Packed = bytes | bytearray | memoryview


class Codec(IntEnum):
    """The number in the lowest three bits of a batch's attributes."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


class CodecMissing(UnsupportedCompressionType):
    """A codec that Kafka knows, but whose library isn't installed here."""

    def __init__(self, codec: Codec) -> None:
        super().__init__(f'{codec.name.lower()} needs the extra "codecs": pip install "walrusmq[codecs]"')


def compress(codec: Codec, data: Packed) -> bytes:
    """The records of a batch as one. Raises CodecMissing."""
    if codec is Codec.NONE:
        return bytes(data)
    if codec is Codec.GZIP:
        return _compress_gzip(data)
    if codec is Codec.LZ4:
        return _compress_lz4(data)
    if codec is Codec.SNAPPY:
        return _compress_snappy(data)
    return bytes(_cramjam(Codec.ZSTD).zstd.compress(data))


def decompress(codec: int, data: Packed, max_bytes: int = MAX_DECOMPRESSED_BYTES) -> bytes:
    """What `data` unpack to: at most `max_bytes`, whatever they claim.

    Raises CorruptMessage for data that are no such stream, are cut off or unpack to more; CodecMissing; and
    UnsupportedCompressionType for a number that is no codec. As in Kafka, bytes after the end of a gzip or lz4
    stream are ignored.
    """
    try:
        known = Codec(codec)
    except ValueError:
        raise UnsupportedCompressionType(f"no compression has number {codec}") from None
    if known is Codec.NONE:
        return bytes(data)
    if known is Codec.GZIP:
        return _decompress_gzip(data, max_bytes)
    if known is Codec.LZ4:
        return _decompress_lz4(data, max_bytes)
    if known is Codec.SNAPPY:
        return _decompress_snappy(memoryview(data), max_bytes)
    return _decompress_zstd(data, max_bytes)


def _cramjam(codec: Codec) -> ModuleType:
    try:
        import cramjam
    except ImportError:
        raise CodecMissing(codec) from None
    return cramjam


def _too_large(codec: Codec, max_bytes: int) -> CorruptMessage:
    return CorruptMessage(f"{codec.name.lower()} data that unpack to more than {max_bytes} bytes")


def _compress_gzip(data: Packed) -> bytes:
    import zlib

    compressor = zlib.compressobj(wbits=GZIP_WBITS)
    return compressor.compress(data) + compressor.flush()


def _decompress_gzip(data: Packed, max_bytes: int) -> bytes:
    """All members of a gzip stream, one after the other."""
    import zlib

    unpacked = bytearray()
    for _ in range(MAX_GZIP_MEMBERS):
        member = zlib.decompressobj(wbits=GZIP_WBITS)
        try:
            unpacked += member.decompress(data, max_bytes - len(unpacked) + 1)
        except zlib.error as error:
            raise CorruptMessage(f"gzip data that are corrupt: {error}") from None
        if len(unpacked) > max_bytes:
            raise _too_large(Codec.GZIP, max_bytes)
        if not member.eof:
            raise CorruptMessage("gzip data that are cut off")
        data = member.unused_data
        if not data.startswith(GZIP_MAGIC):
            return bytes(unpacked)
    raise CorruptMessage(f"gzip data of more than {MAX_GZIP_MEMBERS} members")


def _compress_lz4(data: Packed) -> bytes:
    """One standard frame as the Java client writes it. Its blocks are independent: Kafka refuses those that aren't."""
    import lz4.frame

    packed: bytes = lz4.frame.compress(
        data, block_size=lz4.frame.BLOCKSIZE_MAX64KB, block_linked=False, content_checksum=False, store_size=False
    )
    return packed


def _decompress_lz4(data: Packed, max_bytes: int) -> bytes:
    import lz4.frame

    decompressor = lz4.frame.LZ4FrameDecompressor()
    try:
        unpacked: bytes = decompressor.decompress(data, max_bytes + 1)
    except RuntimeError as error:
        raise CorruptMessage(f"lz4 data that are corrupt: {error}") from None
    if len(unpacked) > max_bytes:
        raise _too_large(Codec.LZ4, max_bytes)
    if not decompressor.eof:
        raise CorruptMessage("lz4 data that are cut off")
    return unpacked


def _compress_snappy(data: Packed) -> bytes:
    snappy = _cramjam(Codec.SNAPPY).snappy
    view = memoryview(data)
    packed = bytearray(XERIAL_HEADER)
    for start in range(0, len(view), XERIAL_BLOCK_BYTES):
        block = snappy.compress_raw(view[start : start + XERIAL_BLOCK_BYTES])
        packed += _INT32.pack(len(block))
        packed += block
    return bytes(packed)


def _decompress_snappy(data: memoryview, max_bytes: int) -> bytes:
    """snappy-java's blocks, or one raw block without a frame as librdkafka writes it."""
    cramjam = _cramjam(Codec.SNAPPY)
    unpacked = bytearray()
    try:
        for block in _snappy_blocks(data):
            if len(unpacked) + cramjam.snappy.decompress_raw_len(block) > max_bytes:
                raise _too_large(Codec.SNAPPY, max_bytes)
            unpacked += cramjam.snappy.decompress_raw(block)
    except cramjam.DecompressionError as error:
        raise CorruptMessage(f"snappy data that are corrupt: {error}") from None
    return bytes(unpacked)


def _snappy_blocks(data: memoryview) -> Iterator[memoryview]:
    if data[: len(XERIAL_MAGIC)] != XERIAL_MAGIC:
        yield data
        return
    if len(data) < len(XERIAL_HEADER):
        raise CorruptMessage("snappy data that are cut off")
    position = len(XERIAL_HEADER)
    while position + _INT32.size <= len(data):
        (size,) = _INT32.unpack_from(data, position)
        position += _INT32.size
        if not 0 < size <= len(data) - position:
            raise CorruptMessage(f"snappy data with a block of {size} bytes where {len(data) - position} are left")
        yield data[position : position + size]
        position += size


def _decompress_zstd(data: Packed, max_bytes: int) -> bytes:
    """Into memory that the system hands out as it is touched, since a frame needn't say what it unpacks to."""
    cramjam = _cramjam(Codec.ZSTD)
    with mmap.mmap(-1, max_bytes + 1) as room:
        try:
            size = cramjam.zstd.decompress_into(data, room)
        except cramjam.DecompressionError as error:
            raise CorruptMessage(f"zstd data that are corrupt or unpack to over {max_bytes} bytes: {error}") from None
        if size > max_bytes:
            raise _too_large(Codec.ZSTD, max_bytes)
        return room[:size]
