import pytest
from hypothesis import given
from hypothesis import strategies as st

from walrusmq.protocol.errors import InvalidRecord
from walrusmq.protocol.records.varints import read_varint, varint


@given(st.integers(-(2**63), 2**63 - 1), st.binary(max_size=3), st.binary(max_size=3))
def test_every_int64_comes_back_with_the_place_where_it_ends(value: int, before: bytes, after: bytes) -> None:
    encoded = varint(value)
    assert read_varint(before + encoded + after, len(before)) == (value, len(before + encoded))


@pytest.mark.parametrize(
    ("value", "encoded"),
    [
        (0, "00"),
        (-1, "01"),
        (1, "02"),
        (63, "7e"),
        (-64, "7f"),
        (64, "8001"),
        (300, "d804"),
        (2**31 - 1, "feffffff0f"),
        (-(2**31), "ffffffff0f"),
        (2**63 - 1, "feffffffffffffffff01"),
        (-(2**63), "ffffffffffffffffff01"),
    ],
)
def test_known_values_have_their_bytes(value: int, encoded: str) -> None:
    assert varint(value).hex() == encoded
    assert read_varint(bytes.fromhex(encoded), 0) == (value, len(encoded) // 2)


def test_a_longer_encoding_than_needed_is_read() -> None:
    assert read_varint(b"\x82\x80\x00", 0) == (1, 3)


@pytest.mark.parametrize("encoded", ["80" * 10 + "00", "ff" * 9 + "02", "ff" * 20])
def test_more_than_64_bits_are_refused(encoded: str) -> None:
    with pytest.raises(InvalidRecord):
        read_varint(bytes.fromhex(encoded), 0)


@pytest.mark.parametrize("size", range(10))
def test_a_number_that_is_cut_off_is_an_index_error(size: int) -> None:
    with pytest.raises(IndexError):
        read_varint(b"\xff" * size, 0)
