"""The keys of a batch, without the rest of its records."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from walrusmq.protocol.errors import CorruptMessage, InvalidRecord, KafkaError
from walrusmq.protocol.records.batch import Record, decode_batch, encode_batch
from walrusmq.protocol.records.compression import Codec
from walrusmq.protocol.records.header import HEADER_BYTES
from walrusmq.protocol.records.keys import batch_keys, record_keys

KEYS = st.none() | st.binary(max_size=300)


@given(st.lists(st.tuples(st.integers(0, 2**40), KEYS, KEYS), max_size=30), st.sampled_from([Codec.NONE, Codec.LZ4]))
def test_they_are_those_of_the_records(entries: list[tuple[int, bytes | None, bytes | None]], codec: Codec) -> None:
    records = [
        Record(7 + 2 * place, timestamp, key, value, (("h", b"x"),))
        for place, (timestamp, key, value) in enumerate(entries)
    ]
    batch = encode_batch(records, codec=codec, base_offset=5)
    assert list(batch_keys(batch)) == [(record.offset, record.key) for record in records]


@given(st.data())
def test_of_any_bytes_are_keys_or_an_error(data: st.DataObject) -> None:
    batch = bytearray(encode_batch([Record(place, 5, b"key", b"value") for place in range(4)])[HEADER_BYTES:])
    at = data.draw(st.integers(0, len(batch) - 1))
    batch[at:] = data.draw(st.binary(max_size=20))
    try:
        found = list(record_keys(bytes(batch), 4))
    except InvalidRecord:
        return
    assert len(found) == 4


def test_a_batch_that_does_not_match_its_checksum_has_none() -> None:
    batch = bytearray(encode_batch([Record(0, 5, b"key", b"value")]))
    batch[-3] ^= 1
    with pytest.raises(CorruptMessage):
        list(batch_keys(bytes(batch)))
    with pytest.raises(KafkaError):
        decode_batch(batch)
