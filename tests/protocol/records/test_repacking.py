"""Batches from one codec to another, and what can be seen in them on the way."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from walrusmq.protocol.errors import InvalidRecord
from walrusmq.protocol.records.batch import Producer, Record, decode_batch, encode_batch
from walrusmq.protocol.records.compression import MAX_DECOMPRESSED_BYTES, Codec
from walrusmq.protocol.records.header import DELETE_HORIZON, LOG_APPEND_TIME, check_batch
from walrusmq.protocol.records.repacking import keyless, repacked, unpacked
from walrusmq.protocol.records.varints import varint

T0 = 1_700_000_000_000
some_bytes = st.none() | st.binary(max_size=200)
some_records = st.lists(
    st.builds(
        lambda timestamp, key, value, headers: Record(0, T0 + timestamp, key, value, tuple(headers)),
        st.integers(-(10**6), 10**6),
        some_bytes,
        some_bytes,
        st.lists(st.tuples(st.text(max_size=9), some_bytes), max_size=3),
    ),
    min_size=1,
    max_size=30,
)
some_codec = st.sampled_from(list(Codec))


def record(offset_delta: int, key: bytes | None, *, timestamp_delta: int = 0) -> bytes:
    """One record as it lies in a batch, without value and headers."""
    body = b"\0" + varint(timestamp_delta) + varint(offset_delta)
    body += varint(-1) if key is None else varint(len(key)) + key
    body += varint(-1) + varint(0)
    return varint(len(body)) + body


@given(drawn=some_records, source=some_codec, target=some_codec)
def test_records_are_the_same_in_every_codec_and_so_is_their_producer(
    drawn: list[Record], source: Codec, target: Codec
) -> None:
    records = [record._replace(offset=offset) for offset, record in enumerate(drawn)]
    batch = memoryview(encode_batch(records, codec=source, producer=Producer(77, 3, 12)))
    packed = repacked(batch, unpacked(batch), target)
    header = check_batch(memoryview(packed))
    assert header.codec == target
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (77, 3, 12)
    assert decode_batch(packed).records == records
    assert header.max_timestamp == max(each.timestamp for each in records)


def test_of_the_attributes_only_those_with_a_meaning_are_kept(forge: Callable[..., bytes]) -> None:
    odd = memoryview(forge(attributes=0x7F00 | LOG_APPEND_TIME | DELETE_HORIZON))
    assert check_batch(memoryview(repacked(odd, unpacked(odd), Codec.GZIP))).attributes == LOG_APPEND_TIME | Codec.GZIP


@given(keys=st.lists(some_bytes, min_size=1, max_size=40), codec=some_codec)
def test_records_without_a_key_are_found_by_their_place(keys: list[bytes | None], codec: Codec) -> None:
    records = [Record(offset, T0 + offset, key, b"v") for offset, key in enumerate(keys)]
    batch = memoryview(encode_batch(records, codec=codec))
    assert keyless(unpacked(batch), len(keys)) == [place for place, key in enumerate(keys) if key is None]


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD])
def test_what_cannot_be_unpacked_is_refused_for_good(codec: Codec, forge: Callable[..., bytes]) -> None:
    with pytest.raises(InvalidRecord):
        unpacked(memoryview(forge(b"not compressed", attributes=codec)))


def test_what_unpacks_to_too_much_is_refused() -> None:
    batch = memoryview(encode_batch([Record(0, T0, None, bytes(100_000))], codec=Codec.GZIP))
    assert unpacked(batch, 200_000)
    with pytest.raises(InvalidRecord, match="more than 50000 bytes"):
        unpacked(batch, 50_000)
    assert MAX_DECOMPRESSED_BYTES < 1 << 30


@pytest.mark.parametrize(
    ("body", "count"),
    [
        (record(0, b"k"), 2),
        (record(0, b"k") + record(1, b"k"), 1),
        (record(0, b"k") + b"zzz", 1),
        (record(0, b"k")[:-1], 1),
        (b"\x7e\x00\x00\x00\x01\x01\x00", 1),
        (b"\xff\xff\xff\xff\x0f" * 3, 1),
        (b"\x01" * 8, 1),
        (b"", 1),
    ],
)
def test_bytes_that_are_not_so_many_records_are_refused(body: bytes, count: int, forge: Callable[..., bytes]) -> None:
    with pytest.raises(InvalidRecord):
        unpacked(memoryview(forge(body, record_count=count, last_offset_delta=count - 1)))


def test_a_key_that_is_longer_than_its_record_is_refused() -> None:
    longer = b"\0\0\0" + varint(50) + b"k"
    body = varint(len(longer)) + longer
    with pytest.raises(InvalidRecord, match="ends before its key"):
        keyless(body + record(1, b"k" * 60), 2)


@given(body=st.binary(max_size=60), count=st.integers(1, 5))
def test_any_bytes_are_looked_through_or_refused_by_name(body: bytes, count: int) -> None:
    with suppress(InvalidRecord):
        assert set(keyless(body, count)) <= set(range(count))
