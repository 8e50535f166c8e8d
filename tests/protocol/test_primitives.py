import struct
from io import BytesIO
from typing import Any

import pytest
from construct import Construct, ConstructError
from hypothesis import given
from hypothesis import strategies as st

from walrusmq.protocol.errors import MalformedMessage, ValueOutOfRange
from walrusmq.protocol.primitives import (
    MAX_STRING_BYTES,
    Array,
    Bool,
    Bytes,
    Int8,
    Int32,
    OrNull,
    Prefixed,
    Records,
    String,
    Uuid,
    Uvarint,
    Varint,
    Varlong,
    read_uvarint,
    remaining_bytes,
    write_uvarint,
)

REFUSALS = (MalformedMessage, ConstructError)


def compact(primitive: Prefixed, *, nullable: bool = False) -> Prefixed:
    return primitive.resolved(compact=True, nullable=nullable)


def nullable(primitive: Prefixed) -> Prefixed:
    return primitive.resolved(compact=False, nullable=True)


@given(st.integers(0, 2**32 - 1))
def test_an_unsigned_varint_comes_back(value: int) -> None:
    assert read_uvarint(write_uvarint(value), 0) == (value, len(write_uvarint(value)))
    assert Uvarint.parse(Uvarint.build(value)) == value


@given(st.integers(-(2**31), 2**31 - 1), st.integers(-(2**63), 2**63 - 1))
def test_signed_varints_come_back(value: int, long_value: int) -> None:
    assert Varint.parse(Varint.build(value)) == value
    assert Varlong.parse(Varlong.build(long_value)) == long_value


@pytest.mark.parametrize("data", ["8080808080", "808080808001", "ffffffff7f", "ffffffff10"])
def test_a_varint_of_more_than_32_bits_is_refused(data: str) -> None:
    for construct in (Uvarint, Varint):
        with pytest.raises(REFUSALS):
            construct.parse(bytes.fromhex(data))
    with pytest.raises((MalformedMessage, IndexError)):
        read_uvarint(bytes.fromhex(data), 0)


def test_a_varlong_of_more_than_64_bits_is_refused() -> None:
    assert Varlong.parse(b"\xff" * 9 + b"\x01") == -(2**63)
    for data in (b"\xff" * 9 + b"\x02", b"\x80" * 10, b"\x80" * 11 + b"\0"):
        with pytest.raises(MalformedMessage):
            Varlong.parse(data)


@pytest.mark.parametrize(
    ("construct", "value"),
    [(Uvarint, -1), (Uvarint, 2**32), (Uvarint, "1"), (Varint, 2**31), (Varlong, 2**63), (Varint, None)],
)
def test_a_varint_that_does_not_fit_is_not_written(construct: Construct, value: Any) -> None:
    with pytest.raises(ValueOutOfRange):
        construct.build(value)


@pytest.mark.parametrize(
    ("construct", "value", "data"),
    [
        (String, "héllo", "000668c3a96c6c6f"),
        (String, "", "0000"),
        (compact(String), "hé", "0468c3a9"),
        (compact(String), "", "01"),
        (nullable(String), None, "ffff"),
        (compact(String, nullable=True), None, "00"),
        (Bytes, b"ab", "000000026162"),
        (compact(Bytes), b"ab", "036162"),
        (nullable(Bytes), None, "ffffffff"),
        (Array(Int8), [1, -1], "0000000201ff"),
        (compact(Array(Int8)), [], "01"),
        (compact(Array(Int8), nullable=True), None, "00"),
        (Uuid, bytes(range(16)), "000102030405060708090a0b0c0d0e0f"),
        (Bool, True, "01"),
        (OrNull(Int32, is_tagged=False), 5, "0100000005"),
        (OrNull(Int32, is_tagged=False), None, "ff"),
        (OrNull(Int32, is_tagged=True), 5, "0100000005"),
        (OrNull(Int32, is_tagged=True), None, "00"),
    ],
)
def test_values_have_the_bytes_that_kafka_gives_them(construct: Construct, value: Any, data: str) -> None:
    assert construct.build(value).hex() == data
    assert construct.parse(bytes.fromhex(data)) == value


@pytest.mark.parametrize(
    ("construct", "data"),
    [
        (String, "ffff"),
        (String, "fffe"),
        (nullable(String), "fffe"),
        (String, "000561"),
        (String, "0002c328"),
        (compact(String), "00"),
        (compact(String), "0561"),
        (compact(String), "818002" + "61" * 0x8000),
        (Bytes, "7fffffff61"),
        (nullable(Bytes), "fffffffe"),
        (compact(Bytes), "ffffffff0f61"),
        (Array(Int32), "7fffffff"),
        (Array(Int32), "80000000"),
        (compact(Array(Int32)), "ffffffff0f"),
        (Uuid, "0001"),
        (OrNull(Int32, is_tagged=False), "fe00000005"),
    ],
)
def test_malformed_bytes_are_refused(construct: Construct, data: str) -> None:
    with pytest.raises(REFUSALS):
        construct.parse(bytes.fromhex(data))


@pytest.mark.parametrize(
    ("construct", "value"),
    [
        (String, None),
        (String, b"bytes"),
        (String, "\ud800"),
        (String, "x" * (MAX_STRING_BYTES + 1)),
        (compact(String), "x" * (MAX_STRING_BYTES + 1)),
        (Bytes, None),
        (Bytes, "text"),
        (Array(Int8), None),
        (Array(Int8), 5),
        (Array(Int8), [200]),
        (Uuid, bytes(15)),
        (Uuid, "x" * 16),
    ],
)
def test_values_that_no_bytes_stand_for_are_not_written(construct: Construct, value: Any) -> None:
    with pytest.raises((ValueOutOfRange, ConstructError)):
        construct.build(value)


def test_an_element_of_a_count_that_takes_no_bytes_still_needs_one_left() -> None:
    with pytest.raises(MalformedMessage):
        Array(Nothing()).parse(struct.pack(">i", 2**31 - 1) + b"abc")
    assert Array(Nothing()).parse(struct.pack(">i", 3) + b"abc") == [None] * 3


def test_records_are_handed_out_as_a_view() -> None:
    parsed = Records.parse(b"\0\0\0\x02ab")
    assert isinstance(parsed, memoryview)
    assert parsed == b"ab"


def test_what_is_left_of_a_stream_is_known_without_reading_it() -> None:
    stream = BytesIO(b"abcdef")
    stream.read(2)
    assert remaining_bytes(stream) == 4


class Nothing(Construct):  # type: ignore[misc]
    """An element of no bytes."""

    def _parse(self, stream: BytesIO, context: Any, path: str) -> None:
        return None
