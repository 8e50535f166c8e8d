import contextlib
import struct
from collections.abc import Callable

import crc32c as reference
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from walrusmq.protocol.errors import CorruptMessage, InvalidRecord, KafkaError, UnsupportedCompressionType
from walrusmq.protocol.records.batch import (
    NO_PRODUCER,
    Producer,
    Record,
    check_records,
    decode_batch,
    decode_batches,
    encode_batch,
)
from walrusmq.protocol.records.compression import Codec, compress
from walrusmq.protocol.records.header import CONTROL, LOG_APPEND_TIME, TRANSACTIONAL

Forge = Callable[..., bytes]
T0 = 1_700_000_000_000
NAMED_ERRORS = (CorruptMessage, InvalidRecord, UnsupportedCompressionType)

int64 = st.integers(-(2**63), 2**63 - 1)
blobs = st.none() | st.binary(max_size=40)
header_lists = st.lists(st.tuples(st.text(max_size=10), blobs), max_size=3).map(tuple)


@st.composite
def record_lists(draw: st.DrawFn) -> list[Record]:
    """Ascending offsets with gaps, timestamps in any order."""
    offset = draw(st.integers(0, 2**62))
    records = []
    for _ in range(draw(st.integers(1, 6))):
        records.append(Record(offset, draw(int64), draw(blobs), draw(blobs), draw(header_lists)))
        offset += draw(st.integers(1, 1000))
    return records


@given(
    records=record_lists(),
    codec=st.sampled_from(Codec),
    producer=st.builds(Producer, int64, st.integers(-(2**15), 2**15 - 1), st.integers(-1, 2**31 - 1)),
    flags=st.sampled_from([0, TRANSACTIONAL, CONTROL, TRANSACTIONAL | CONTROL]),
    leader_epoch=st.integers(-1, 2**31 - 1),
    delete_horizon_ms=st.none() | int64,
)
def test_what_is_encoded_comes_back(records, codec, producer, flags, leader_epoch, delete_horizon_ms) -> None:
    batch = encode_batch(
        records,
        codec=codec,
        producer=producer,
        flags=flags,
        leader_epoch=leader_epoch,
        delete_horizon_ms=delete_horizon_ms,
    )
    decoded = decode_batch(batch)
    header = decoded.header
    assert decoded.records == records
    assert (header.codec, header.partition_leader_epoch, header.size_bytes) == (codec, leader_epoch, len(batch))
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == producer
    assert (header.base_offset, header.last_offset) == (records[0].offset, records[-1].offset)
    assert header.max_timestamp == max(record.timestamp for record in records)
    assert (header.is_transactional, header.is_control) == (bool(flags & TRANSACTIONAL), bool(flags & CONTROL))
    assert header.delete_horizon_ms == delete_horizon_ms


def test_log_append_time_is_the_batchs_not_the_records() -> None:
    records = [Record(0, T0, None, b"a"), Record(1, T0 + 5, None, b"b")]
    decoded = decode_batch(encode_batch(records, flags=LOG_APPEND_TIME, max_timestamp=T0 + 99))
    assert [record.timestamp for record in decoded.records] == [T0 + 99, T0 + 99]


def test_a_batch_emptied_by_compaction_keeps_its_offsets() -> None:
    decoded = decode_batch(encode_batch([], base_offset=100, last_offset=119, max_timestamp=T0))
    assert decoded.records == []
    assert (decoded.header.base_offset, decoded.header.last_offset, decoded.header.max_timestamp) == (100, 119, T0)


def test_a_batch_without_anything_given_is_empty_at_0() -> None:
    header = decode_batch(encode_batch([])).header
    assert (header.base_offset, header.last_offset, header.record_count, header.max_timestamp) == (0, 0, 0, -1)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == NO_PRODUCER


@pytest.mark.parametrize(
    "offsets",
    [
        {"records": [5, 5]},
        {"records": [5, 4]},
        {"records": [5], "base_offset": 6},
        {"records": [5], "last_offset": 4},
        {"records": [0, 2**31]},
        {"records": [], "base_offset": 5, "last_offset": 4},
    ],
)
def test_offsets_that_no_batch_can_have_are_a_callers_mistake(offsets: dict) -> None:
    records = [Record(offset, T0, None, b"x") for offset in offsets.pop("records")]
    with pytest.raises(ValueError, match="batch"):
        encode_batch(records, **offsets)


def test_header_keys_that_are_not_utf_8_go_back_as_they_came(forge: Forge) -> None:
    batch = forge(b"\x14\x00\x00\x00\x01\x01\x02\x04\xffh\x01")
    (record,) = decode_batch(batch).records
    assert record.headers == (("\udcffh", None),)
    assert encode_batch([record]) == batch


INVALID_BODIES = {
    "a record longer than the body": b"\x7e\x00\x00\x00\x01\x01\x00",
    "a record shorter than its parts": b"\x0c\x00\x00\x01\x01\x02x\x00",
    "a record longer than its parts": b"\x10\x00\x00\x00\x01\x02x\x00\x00",
    "bytes after the record": b"\x0e\x00\x00\x00\x01\x02x\x00zzz",
    "a length below every record's": b"\x0a\x00\x00\x00\x01\x01\x00",
    "a negative length": b"\x0d\x00\x00\x00\x01\x02x\x00",
    "an offset beyond the batch's last": b"\x0e\x00\x00\x02\x01\x02x\x00",
    "an offset before the batch's first": b"\x0e\x00\x00\x01\x01\x02x\x00",
    "a key of -2 bytes": b"\x0e\x00\x00\x00\x03\x02x\x00",
    "a value beyond the record": b"\x0e\x00\x00\x00\x01\x7ex\x00",
    "a header's key that is null": b"\x10\x00\x00\x00\x01\x01\x02\x01\x01",
    "a million headers": b"\x14\x00\x00\x00\x01\x01\x80\x89\x7a\x00\x01",
    "-1 headers": b"\x0e\x00\x00\x00\x01\x02x\x01",
    "a number of eleven bytes": b"\x1e\x00" + b"\xff" * 14,
    "garbage": b"\xff\xff\xff\xff\x0f" * 3,
    "nothing": b"",
}


@pytest.mark.parametrize("codec", Codec)
@pytest.mark.parametrize("case", INVALID_BODIES)
def test_records_that_cannot_be_are_invalid_under_every_codec(forge: Forge, case: str, codec: Codec) -> None:
    batch = forge(compress(codec, INVALID_BODIES[case]), attributes=int(codec))
    with pytest.raises(InvalidRecord):
        decode_batch(batch)
    with pytest.raises(InvalidRecord):
        check_records(batch)


@pytest.mark.parametrize(
    "fields",
    [
        {"record_count": 2, "last_offset_delta": 1},
        {"record_count": -1},
        {"record_count": 0},
        {"record_count": 2**31 - 1, "last_offset_delta": 2**31 - 2},
        {"last_offset_delta": -1},
        {"base_offset": 2**63 - 1, "last_offset_delta": 1},
    ],
)
def test_a_header_that_its_records_contradict_is_invalid(forge: Forge, fields: dict) -> None:
    with pytest.raises(InvalidRecord):
        decode_batch(forge(**fields))


def test_records_out_of_order_are_invalid(forge: Forge) -> None:
    swapped = b"\x0e\x00\x00\x02\x01\x02x\x00" + b"\x0e\x00\x00\x00\x01\x02y\x00"
    with pytest.raises(InvalidRecord, match="offset"):
        decode_batch(forge(swapped, record_count=2, last_offset_delta=1))


def test_a_producers_records_have_no_gaps_though_a_compacted_batch_may(forge: Forge) -> None:
    gap = b"\x0e\x00\x00\x00\x01\x02x\x00" + b"\x0e\x00\x00\x04\x01\x02y\x00"
    batch = forge(gap, record_count=2, last_offset_delta=2)
    assert [record.offset for record in decode_batch(batch).records] == [0, 2]
    with pytest.raises(InvalidRecord, match="2 records with offsets 0 to 2"):
        check_records(batch)
    check_records(forge())


def test_a_wrong_checksum_is_corruption(forge: Forge) -> None:
    with pytest.raises(CorruptMessage, match="checksum"):
        decode_batch(forge(crc=1))


@pytest.mark.parametrize("codec", [5, 6, 7])
def test_a_codec_that_does_not_exist_is_unsupported(forge: Forge, codec: int) -> None:
    with pytest.raises(UnsupportedCompressionType):
        decode_batch(forge(attributes=codec))


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.LZ4, Codec.SNAPPY, Codec.ZSTD])
def test_a_batch_unpacks_to_no_more_than_it_may(codec: Codec) -> None:
    batch = encode_batch([Record(0, T0, None, bytes(1_000_000))], codec=codec)
    assert len(decode_batch(batch, 1_100_000).records) == 1
    with pytest.raises(CorruptMessage, match="100000"):
        decode_batch(batch, 100_000)


@given(st.lists(record_lists(), max_size=3), st.integers(0, 60))
def test_several_batches_are_read_up_to_the_last_whole_one(batches: list[list[Record]], extra: int) -> None:
    encoded = [encode_batch(records) for records in batches]
    cut_off = encode_batch([Record(0, T0, None, b"last")])[:extra]
    assert [batch.records for batch in decode_batches(b"".join(encoded) + cut_off)] == batches


@pytest.mark.parametrize("length", [-1, 0, 14, 48])
def test_batches_end_with_an_error_at_a_length_that_cannot_be(forge: Forge, length: int) -> None:
    batches = decode_batches(forge() + forge(batch_length=length))
    assert next(batches).header.record_count == 1
    with pytest.raises(NAMED_ERRORS):
        next(batches)


@given(st.binary(max_size=200))
def test_any_bytes_are_batches_or_a_named_error(data: bytes) -> None:
    for decode in (decode_batch, check_records, lambda data: list(decode_batches(data))):
        with contextlib.suppress(NAMED_ERRORS):
            decode(data)


@given(body=st.binary(max_size=200), count=st.integers(1, 5), codec=st.sampled_from(Codec))
def test_any_records_behind_a_good_header_are_records_or_a_named_error(body: bytes, count: int, codec: Codec) -> None:
    packed = compress(codec, body)
    content = struct.pack(">hiqqqhii", codec, count - 1, T0, T0, -1, -1, -1, count) + packed
    batch = struct.pack(">qiibI", 0, 9 + len(content), -1, 2, reference.crc32c(content)) + content
    with contextlib.suppress(NAMED_ERRORS):
        assert len(decode_batch(batch).records) == count


@settings(max_examples=300)
@given(records=record_lists(), codec=st.sampled_from(Codec), data=st.data())
def test_mutated_and_cut_batches_give_records_or_a_named_error(records, codec: Codec, data: st.DataObject) -> None:
    batch = bytearray(encode_batch(records, codec=codec))
    for _ in range(data.draw(st.integers(0, 4))):
        batch[data.draw(st.integers(0, len(batch) - 1))] = data.draw(st.integers(0, 255))
    del batch[data.draw(st.integers(0, len(batch))) :]
    if len(batch) >= 61 and data.draw(st.booleans()):
        struct.pack_into(">i", batch, 8, len(batch) - 12)
    if len(batch) >= 61:
        struct.pack_into(">I", batch, 17, reference.crc32c(batch[21:]))
    try:
        decoded = decode_batch(batch, 1_000_000)
    except NAMED_ERRORS:
        return
    assert len(decoded.records) == decoded.header.record_count
    assert all(decoded.header.base_offset <= r.offset <= decoded.header.last_offset for r in decoded.records)


def test_every_error_is_one_that_a_response_can_carry(forge: Forge) -> None:
    with pytest.raises(KafkaError) as error:
        decode_batch(forge(b"\x00" * 7))
    assert error.value.code == InvalidRecord.code
