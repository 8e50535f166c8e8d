import struct
from collections.abc import Callable

import crc32c as reference
import pytest
from hypothesis import given
from hypothesis import strategies as st

from walrusmq.protocol.errors import CorruptMessage, ErrorCode, InvalidRecord, KafkaError
from walrusmq.protocol.records.batch import Producer, Record, decode_batch, encode_batch
from walrusmq.protocol.records.compression import Codec
from walrusmq.protocol.records.header import (
    CONTROL,
    LOG_APPEND_TIME,
    TRANSACTIONAL,
    check_batch,
    parse_header,
    place_batch,
    set_create_time,
    set_log_append_time,
)

Forge = Callable[..., bytes]
T0 = 1_700_000_000_000
TWO = b"\x0e\x00\x00\x00\x01\x02x\x00\x0e\x00\x02\x02\x01\x02y\x00"


def refused_with(batch: bytes) -> ErrorCode:
    with pytest.raises(KafkaError) as refusal:
        check_batch(memoryview(batch))
    return refusal.value.code


def test_a_good_batch_gives_its_header(forge: Forge) -> None:
    header = check_batch(memoryview(forge(TWO, record_count=2, last_offset_delta=1, max_timestamp=T0 + 1)))
    assert (header.base_offset, header.record_count, header.last_offset, header.size_bytes) == (0, 2, 1, 77)
    assert (header.base_timestamp, header.max_timestamp) == (T0, T0 + 1)
    assert (header.producer_id, header.producer_epoch, header.base_sequence, header.last_sequence) == (-1, -1, -1, -1)


def test_the_fields_stand_in_the_order_of_the_wire() -> None:
    header = parse_header(b"?" + struct.pack(">qiibIhiqqqhii", *range(1, 14)), 1)
    assert tuple(header) == tuple(range(1, 14))
    assert header.record_count == 13


def test_a_header_needs_61_bytes() -> None:
    with pytest.raises(CorruptMessage, match="60 bytes"):
        parse_header(bytes(61), 1)


@pytest.mark.parametrize("codec", range(1, 5))
def test_compressed_records_are_taken_as_they_are(forge: Forge, codec: int) -> None:
    assert check_batch(memoryview(forge(b"any", attributes=codec))).codec == codec


# Each code is what Apache Kafka 4.4 answers to that batch, in Produce 3, 5, 6, 7, 8, 9, 12 and 13 alike.
INVALID: dict[str, dict[str, object]] = {
    "a base offset": {"base_offset": 500},
    "a negative base offset": {"base_offset": -1},
    "count 0": {"record_count": 0, "last_offset_delta": -1, "body": b""},
    "count 0 and an offset": {"record_count": 0, "body": b""},
    "a negative count": {"record_count": -1},
    "a count that wraps": {"record_count": -(2**31), "last_offset_delta": 2**31 - 1},
    "a count larger than the offsets": {"record_count": 5},
    "a count smaller than the offsets": {"body": TWO, "last_offset_delta": 1},
    "offsets beyond the count": {"body": TWO, "record_count": 2, "last_offset_delta": 5},
    "a control batch": {"attributes": CONTROL},
    "a producer without a sequence": {"producer_id": 4711, "producer_epoch": 0},
    "a producer with sequence -2": {"producer_id": 4711, "producer_epoch": 0, "base_sequence": -2},
    "more records than bytes": {"record_count": 2**31 - 1, "last_offset_delta": 2**31 - 2},
    "five records of eight bytes in all": {"record_count": 5, "last_offset_delta": 4},
    "a record without a byte": {"body": b""},
    "a length of 0": {"body": b"\x00"},
    "a record of six bytes": {"body": b"\x0a\x00\x00\x00\x01\x01"},
    "records that aren't": {"body": b"\xff\xff\xff\xff\x0f" * 3},
    "a record longer than the batch": {"body": b"\x7e\x00\x00\x00\x01\x01\x00"},
    "a long record longer than the batch": {"body": b"\xfe\xff\x0f" + bytes(60)},
    "bytes after the record": {"body": b"\x0e\x00\x00\x00\x01\x02x\x00zzz"},
    "a record shorter than its parts": {"body": b"\x0c\x00\x00\x01\x01\x02x\x00"},
    "a first record that leaves no room": {"body": b"\x12" + bytes(15), "record_count": 2, "last_offset_delta": 1},
    "a length that never ends": {"body": b"\x80" * 9},
}


@pytest.mark.parametrize("case", INVALID)
def test_what_cannot_be_a_producers_batch_is_an_invalid_record(forge: Forge, case: str) -> None:
    assert refused_with(forge(**INVALID[case])) is ErrorCode.INVALID_RECORD


def test_a_wrong_checksum_is_corruption_whatever_else_is_wrong_behind_it(forge: Forge) -> None:
    assert refused_with(forge(crc=0x12345678)) is ErrorCode.CORRUPT_MESSAGE
    assert refused_with(forge(crc=1, attributes=CONTROL)) is ErrorCode.CORRUPT_MESSAGE
    assert refused_with(forge(crc=1, record_count=0, body=b"")) is ErrorCode.CORRUPT_MESSAGE
    assert refused_with(forge(crc=1, last_offset_delta=5)) is ErrorCode.CORRUPT_MESSAGE
    assert refused_with(forge(crc=1, base_offset=7)) is ErrorCode.INVALID_RECORD


def test_any_flipped_bit_under_the_checksum_is_corruption(forge: Forge) -> None:
    good = forge()
    for position in range(23, len(good)):
        assert refused_with(good[:position] + bytes([good[position] ^ 1]) + good[position + 1 :]) == 2


@pytest.mark.parametrize("fields", [{}, {"producer_id": 5, "base_sequence": 0}, {"crc": 1}, {"attributes": 48}])
def test_a_transactional_batch_gets_what_kafka_answers_without_the_right_to_one(forge: Forge, fields: dict) -> None:
    batch = forge(**{"attributes": TRANSACTIONAL} | fields)
    assert refused_with(batch) is ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED


@pytest.mark.parametrize("codec", [5, 6, 7])
def test_a_codec_that_does_not_exist_is_refused_by_name(forge: Forge, codec: int) -> None:
    assert refused_with(forge(attributes=codec)) is ErrorCode.UNSUPPORTED_COMPRESSION_TYPE


@pytest.mark.parametrize("codec", range(1, 5))
def test_compressed_records_take_at_least_a_byte(forge: Forge, codec: int) -> None:
    assert refused_with(forge(b"", attributes=codec)) is ErrorCode.INVALID_RECORD


@pytest.mark.parametrize(
    "fields",
    [
        {"partition_leader_epoch": 77},
        {"attributes": LOG_APPEND_TIME},
        {"base_sequence": 0},
        {"producer_id": 4711, "base_sequence": 0},
        {"producer_id": -2, "producer_epoch": 0},
        {"max_timestamp": T0 + 5},
        {"base_timestamp": -1, "max_timestamp": -1},
        {"body": b"\x0c\x00\x00\x00\x01\x01\x00"},
        {"body": b"\x8e\x00\x00\x00\x00\x01\x01\x80\x00"},
    ],
)
def test_what_kafka_stores_is_taken(forge: Forge, fields: dict) -> None:
    assert check_batch(memoryview(forge(**fields))).record_count == 1


@given(st.integers(0, 9000), st.integers(1, 3))
def test_records_of_any_size_pass(size: int, count: int) -> None:
    records = [Record(offset, T0, None, bytes(size)) for offset in range(count)]
    assert check_batch(memoryview(encode_batch(records))).record_count == count


@given(st.lists(st.binary(max_size=100), min_size=1, max_size=5), st.integers(-(2**63), 2**63 - 1), st.integers(0, 9))
def test_placing_a_batch_changes_its_first_16_bytes_and_nothing_else(values, base_offset, epoch) -> None:
    batch = bytearray(encode_batch([Record(n, T0, None, value) for n, value in enumerate(values)]))
    before = bytes(batch)
    place_batch(memoryview(batch), base_offset, epoch)
    header = parse_header(batch)
    assert (header.base_offset, header.partition_leader_epoch) == (base_offset, epoch)
    assert (batch[8:12], batch[16:]) == (before[8:12], before[16:])


def test_a_placed_batch_decodes_at_its_new_offsets() -> None:
    batch = bytearray(encode_batch([Record(0, T0, b"k", b"v"), Record(1, T0, None, b"w")]))
    place_batch(memoryview(batch), 4711, 3)
    decoded = decode_batch(batch)
    assert [record.offset for record in decoded.records] == [4711, 4712]
    assert decoded.header.partition_leader_epoch == 3


@given(st.integers(-1, 2**63 - 1), st.sampled_from([Codec.NONE, Codec.GZIP, Codec.LZ4]))
def test_log_append_time_is_every_records_time_under_a_right_checksum(now_ms: int, codec: Codec) -> None:
    records = [Record(0, T0, b"k", b"v"), Record(1, T0 + 9, None, None)]
    batch = bytearray(encode_batch(records, codec=codec, producer=Producer(9, 1, 5)))
    set_log_append_time(memoryview(batch), now_ms)
    decoded = decode_batch(batch)
    assert [record.timestamp for record in decoded.records] == [now_ms, now_ms]
    assert decoded.header.has_log_append_time
    assert decoded.header.codec == codec
    assert (decoded.header.base_timestamp, decoded.header.producer_id) == (T0, 9)


def test_a_create_time_batch_loses_the_bit_that_only_brokers_set(forge: Forge) -> None:
    batch = bytearray(forge(attributes=LOG_APPEND_TIME))
    set_create_time(memoryview(batch))
    assert bytes(batch) == forge()
    assert reference.crc32c(batch[21:]) == parse_header(batch).crc


@pytest.mark.parametrize(("first", "delta", "last"), [(0, 0, 0), (5, 3, 8), (2**31 - 2, 3, 1), (-1, 3, -1)])
def test_sequence_numbers_begin_again_at_0(forge: Forge, first: int, delta: int, last: int) -> None:
    assert parse_header(forge(base_sequence=first, last_offset_delta=delta)).last_sequence == last


def test_the_attributes_have_names(forge: Forge) -> None:
    header = parse_header(forge(attributes=4 | 0x78))
    assert (header.codec, header.is_transactional, header.is_control, header.has_log_append_time) == (4,) + (True,) * 3
    assert header.delete_horizon_ms == T0
    assert parse_header(forge()).delete_horizon_ms is None


@given(st.binary(max_size=200))
def test_any_bytes_are_a_batch_or_a_named_error(data: bytes) -> None:
    with pytest.raises(KafkaError):
        check_batch(memoryview(data))


@given(st.data())
def test_a_mutated_batch_is_refused_or_its_header_is_what_it_says(data: st.DataObject) -> None:
    batch = bytearray(encode_batch([Record(n, T0, None, b"value") for n in range(3)]))
    for _ in range(data.draw(st.integers(1, 3))):
        batch[data.draw(st.integers(0, len(batch) - 1))] = data.draw(st.integers(0, 255))
    struct.pack_into(">I", batch, 17, reference.crc32c(batch[21:]))
    try:
        header = check_batch(memoryview(batch))
    except KafkaError:
        return
    assert header == parse_header(batch)
    assert header.last_offset_delta == header.record_count - 1


def test_every_error_of_a_check_is_for_the_producer(forge: Forge) -> None:
    with pytest.raises(InvalidRecord, match="control"):
        check_batch(memoryview(forge(attributes=CONTROL)))
