import builtins
import contextlib
import gzip
import os
import struct
import subprocess
import sys
import tracemalloc

import cramjam
import lz4.frame
import pytest
from hypothesis import given
from hypothesis import strategies as st

from walrusmq.protocol.errors import CorruptMessage, KafkaError, UnsupportedCompressionType
from walrusmq.protocol.records.compression import MAX_GZIP_MEMBERS, Codec, CodecMissing, compress, decompress

PACKING = [codec for codec in Codec if codec is not Codec.NONE]
packing_codecs = pytest.mark.parametrize("codec", PACKING)
VARIED = os.urandom(70_000) + b"ab" * 70_000


@pytest.mark.parametrize("codec", Codec)
@given(data=st.binary(max_size=2000))
def test_data_come_back(codec: Codec, data: bytes) -> None:
    assert decompress(codec, compress(codec, data)) == data


@pytest.mark.parametrize("codec", Codec)
@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_data_of_several_blocks_come_back_from_any_buffer(codec: Codec, kind: type) -> None:
    assert decompress(codec, kind(compress(codec, kind(VARIED)))) == VARIED


@packing_codecs
def test_a_limit_is_exact(codec: Codec) -> None:
    packed = compress(codec, VARIED)
    assert decompress(codec, packed, len(VARIED)) == VARIED
    with pytest.raises(CorruptMessage, match=str(len(VARIED) - 1)):
        decompress(codec, packed, len(VARIED) - 1)


@packing_codecs
def test_a_bomb_costs_no_more_than_its_limit(codec: Codec) -> None:
    bomb = compress(codec, bytes(64_000_000))
    tracemalloc.start()
    try:
        with pytest.raises(CorruptMessage):
            decompress(codec, bomb, 1_000_000)
        assert tracemalloc.get_traced_memory()[1] < 8_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.LZ4, Codec.ZSTD])
def test_data_that_are_cut_off_are_corrupt(codec: Codec) -> None:
    packed = compress(codec, b"some words and some more words" * 20)
    for size in range(len(packed)):
        with pytest.raises(CorruptMessage):
            decompress(codec, packed[:size])


def test_snappy_has_no_end_mark_so_that_only_a_cut_inside_a_block_shows() -> None:
    packed = compress(Codec.SNAPPY, b"some words and some more words" * 20)
    for size in [*range(16), *range(20, len(packed))]:
        with pytest.raises(CorruptMessage):
            decompress(Codec.SNAPPY, packed[:size])
    for size in range(16, 20):
        assert decompress(Codec.SNAPPY, packed[:size]) == b""


@packing_codecs
@given(data=st.binary(max_size=300))
def test_any_bytes_unpack_or_are_corrupt(codec: Codec, data: bytes) -> None:
    magic = compress(codec, b"x")[:16]
    for hostile in (data, magic + data, magic[:7] + data):
        with contextlib.suppress(CorruptMessage):
            assert len(decompress(codec, hostile, 100_000)) <= 100_000


@packing_codecs
@given(position=st.integers(0, 400), replacement=st.integers(0, 255))
def test_a_changed_byte_gives_other_data_or_corruption(codec: Codec, position: int, replacement: int) -> None:
    packed = bytearray(compress(codec, VARIED[69_900:71_000]))
    packed[position % len(packed)] = replacement
    with contextlib.suppress(CorruptMessage):
        assert len(decompress(codec, packed, 5000)) <= 5000


@pytest.mark.parametrize("number", [-1, 5, 6, 7, 99])
def test_a_number_that_is_no_codec_is_unsupported(number: int) -> None:
    with pytest.raises(UnsupportedCompressionType):
        decompress(number, b"")


def test_gzip_of_several_members_is_their_sum_and_bytes_behind_are_ignored() -> None:
    packed = gzip.compress(b"one") + gzip.compress(b"two")
    assert decompress(Codec.GZIP, packed) == b"onetwo"
    assert decompress(Codec.GZIP, packed + b"junk") == b"onetwo"


def test_the_limit_holds_over_all_members_of_a_gzip_stream() -> None:
    with pytest.raises(CorruptMessage, match="more than 2500"):
        decompress(Codec.GZIP, gzip.compress(bytes(1000)) * 3, 2500)


def test_a_gzip_stream_of_endless_tiny_members_is_given_up() -> None:
    assert decompress(Codec.GZIP, gzip.compress(b"x") * MAX_GZIP_MEMBERS) == b"x" * MAX_GZIP_MEMBERS
    with pytest.raises(CorruptMessage, match="members"):
        decompress(Codec.GZIP, gzip.compress(b"") * 50_000)


def test_lz4_is_a_frame_of_independent_64_kib_blocks_without_checksums() -> None:
    packed = compress(Codec.LZ4, VARIED)
    assert packed[:7].hex() == "04224d18604082"
    assert lz4.frame.decompress(packed) == VARIED


@pytest.mark.parametrize("options", [{"content_checksum": True}, {"block_checksum": True}, {"block_linked": True}])
def test_other_clients_lz4_frames_are_read(options: dict) -> None:
    assert decompress(Codec.LZ4, lz4.frame.compress(VARIED, **options) + b"behind") == VARIED


def test_snappy_is_framed_as_snappy_java_does() -> None:
    packed = compress(Codec.SNAPPY, b"x" * 40_000)
    assert packed[:16].hex() == "82534e41505059000000000100000001"
    (size,) = struct.unpack_from(">i", packed, 16)
    assert bytes(cramjam.snappy.decompress_raw(packed[20 : 20 + size])) == b"x" * 32_768


def test_snappy_without_a_frame_is_read_as_librdkafka_writes_it() -> None:
    assert decompress(Codec.SNAPPY, bytes(cramjam.snappy.compress_raw(VARIED))) == VARIED


@pytest.mark.parametrize("size", [-1, 0, 3, 2**31 - 1])
def test_a_snappy_block_of_an_impossible_size_is_corrupt(size: int) -> None:
    with pytest.raises(CorruptMessage, match=f"block of {size} bytes"):
        decompress(Codec.SNAPPY, compress(Codec.SNAPPY, b"")[:16] + struct.pack(">i", size) + b"ab")


def test_a_snappy_block_that_claims_4_gb_is_refused_before_room_is_made() -> None:
    with pytest.raises(CorruptMessage, match="more than"):
        decompress(Codec.SNAPPY, b"\xff\xff\xff\xff\x0f\x00")


def test_zstd_of_several_frames_is_their_sum() -> None:
    packed = compress(Codec.ZSTD, b"one") + b"\x50\x2a\x4d\x18\x02\x00\x00\x00ab" + compress(Codec.ZSTD, b"two")
    assert decompress(Codec.ZSTD, packed) == b"onetwo"


@pytest.mark.parametrize("codec", [Codec.SNAPPY, Codec.ZSTD])
def test_a_missing_library_is_named_with_the_extra_that_has_it(monkeypatch, codec: Codec) -> None:
    real_import = builtins.__import__

    def without_cramjam(name: str, *rest: object) -> object:
        if name == "cramjam":
            raise ImportError(name)
        return real_import(name, *rest)

    packed = compress(codec, b"data")
    monkeypatch.setattr(builtins, "__import__", without_cramjam)
    for call in (lambda: compress(codec, b"data"), lambda: decompress(codec, packed)):
        with pytest.raises(CodecMissing, match=rf"{codec.name.lower()} needs .*walrusmq\[codecs\]") as error:
            call()
        assert isinstance(error.value, KafkaError)
        assert error.value.code.name == "UNSUPPORTED_COMPRESSION_TYPE"


def test_no_library_is_imported_before_its_codec_is_needed() -> None:
    program = (
        "import sys, walrusmq.protocol.records.batch\n"
        "print([name for name in ('zlib', 'lz4', 'lz4.frame', 'cramjam') if name in sys.modules])"
    )
    assert subprocess.check_output([sys.executable, "-c", program], text=True).strip() == "[]"
