"""What is done with a batch before its append, and what is refused then."""

from __future__ import annotations

import struct
from collections.abc import Sequence

import pytest
from support.segment_stores import NOW_MS, batch

from walrusmq.protocol.errors import CorruptMessage, InvalidRecord, InvalidTimestamp, MessageTooLarge
from walrusmq.protocol.records.batch import NO_TIMESTAMP, Record, decode_batch, encode_batch
from walrusmq.protocol.records.compression import Codec
from walrusmq.protocol.records.header import check_batch
from walrusmq.segments.log_config import LogConfig, TimestampType
from walrusmq.segments.preparation import (
    RecordsOutOfTime,
    RecordsWithoutKey,
    needs_preparation,
    out_of_time,
    prepared,
)

KEYED = LogConfig(needs_keys=True)


def of_keys(*keys: bytes | None, codec: Codec = Codec.NONE, timestamps: Sequence[int] | None = None) -> memoryview:
    """A batch with a record for each key."""
    times = timestamps or [NOW_MS] * len(keys)
    records = [
        Record(offset, timestamp, key, b"v" * 50)
        for offset, (key, timestamp) in enumerate(zip(keys, times, strict=True))
    ]
    return memoryview(bytearray(encode_batch(records, codec=codec)))


@pytest.mark.parametrize(
    ("config", "codec", "is_needed"),
    [
        (LogConfig(), Codec.GZIP, False),
        (LogConfig(codec=Codec.GZIP), Codec.GZIP, False),
        (LogConfig(codec=Codec.GZIP), Codec.LZ4, True),
        (LogConfig(codec=Codec.GZIP), Codec.NONE, True),
        (LogConfig(codec=Codec.NONE), Codec.NONE, False),
        (LogConfig(codec=Codec.NONE), Codec.LZ4, True),
        (LogConfig(needs_keys=True), Codec.NONE, True),
        (LogConfig(needs_keys=True, codec=Codec.LZ4), Codec.LZ4, True),
    ],
)
def test_a_batch_is_prepared_for_keys_and_for_another_codec(config: LogConfig, codec: Codec, is_needed: bool) -> None:
    assert needs_preparation(of_keys(b"k", codec=codec), config) is is_needed


def test_what_is_too_short_for_a_batch_is_left_to_the_append_to_refuse() -> None:
    assert not needs_preparation(memoryview(b"short"), LogConfig(codec=Codec.GZIP))


def test_a_batch_comes_out_in_the_codec_of_its_topic() -> None:
    sent = of_keys(b"k", None, codec=Codec.LZ4)
    out = prepared(sent, LogConfig(codec=Codec.ZSTD), NOW_MS)
    assert check_batch(out).codec == Codec.ZSTD
    assert decode_batch(out).records == decode_batch(sent).records


def test_a_batch_in_that_codec_comes_out_as_it_came() -> None:
    sent = of_keys(b"k", codec=Codec.ZSTD)
    assert bytes(prepared(sent, LogConfig(codec=Codec.ZSTD, needs_keys=True), NOW_MS)) == bytes(sent)


def test_records_without_a_key_are_named() -> None:
    with pytest.raises(RecordsWithoutKey) as caught:
        prepared(of_keys(None, b"k", None, b"", codec=Codec.GZIP), KEYED, NOW_MS)
    assert isinstance(caught.value, InvalidRecord)
    assert list(caught.value.faults) == [0, 2]


def test_an_empty_key_is_a_key() -> None:
    assert prepared(of_keys(b""), KEYED, NOW_MS)


def test_timestamps_out_of_range_come_before_keys_and_both_are_named() -> None:
    config = LogConfig(needs_keys=True, timestamp_before_max_ms=1000, timestamp_after_max_ms=1000)
    times = [NOW_MS - 1001, NOW_MS, NOW_MS + 1001, NOW_MS]
    with pytest.raises(RecordsOutOfTime) as caught:
        prepared(of_keys(b"k", None, None, b"k", timestamps=times), config, NOW_MS)
    assert isinstance(caught.value, InvalidTimestamp)
    assert sorted(caught.value.faults) == [0, 1, 2]
    assert "key" in caught.value.faults[2]
    assert str(NOW_MS - 1001) in caught.value.faults[0]


@pytest.mark.parametrize(
    "config",
    [
        LogConfig(codec=Codec.GZIP, timestamp_type=TimestampType.LOG_APPEND_TIME, timestamp_before_max_ms=1),
        LogConfig(codec=Codec.GZIP, timestamp_before_max_ms=1),
    ],
)
def test_timestamps_are_no_matter_where_the_broker_sets_them_or_there_are_none(config: LogConfig) -> None:
    timestamp = 0 if config.timestamp_type is TimestampType.LOG_APPEND_TIME else NO_TIMESTAMP
    assert prepared(of_keys(b"k", timestamps=[timestamp]), config, NOW_MS)


def test_the_error_for_timestamps_names_the_records() -> None:
    config = LogConfig(timestamp_before_max_ms=1000)
    error = out_of_time(memoryview(batch("a", "b", "c", timestamps=[NOW_MS, 5, NOW_MS - 1000])), config, NOW_MS)
    assert list(error.faults) == [1]


def test_a_batch_is_held_to_the_size_limit_as_it_came_and_as_it_comes_out() -> None:
    large = of_keys(*[b"k"] * 10)
    config = LogConfig(codec=Codec.GZIP, max_message_bytes=len(large) - 1)
    with pytest.raises(MessageTooLarge):
        prepared(large, config, NOW_MS)
    small = of_keys(*[b"k"] * 10, codec=Codec.GZIP)
    assert len(small) < 300
    with pytest.raises(MessageTooLarge):
        prepared(small, LogConfig(codec=Codec.NONE, max_message_bytes=300), NOW_MS)


def test_a_batch_is_checked_before_it_is_unpacked() -> None:
    broken = of_keys(b"k", codec=Codec.GZIP)
    struct.pack_into(">I", broken, 17, 0)
    with pytest.raises(CorruptMessage):
        prepared(broken, KEYED, NOW_MS)
