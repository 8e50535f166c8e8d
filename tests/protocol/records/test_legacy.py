import struct
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from walrusmq.protocol.errors import CorruptMessage, ErrorCode, InvalidRecord, KafkaError
from walrusmq.protocol.records.batch import decode_batch
from walrusmq.protocol.records.header import check_batch
from walrusmq.protocol.records.legacy import entry_magics, refusal

Forge = Callable[..., bytes]
Old = Callable[[int], bytes]

INVALID, CORRUPT = ErrorCode.INVALID_RECORD, ErrorCode.CORRUPT_MESSAGE


def codes(data: bytes) -> set[ErrorCode]:
    """What the check of an append and the decoder say; they agree."""
    found = set()
    for function in (check_batch, decode_batch):
        with pytest.raises(KafkaError) as error:
            function(memoryview(data))
        found.add(error.value.code)
    return found


@pytest.mark.parametrize("magic", [0, 1])
def test_an_old_message_set_is_recognised_and_refused_as_kafka_does(old: Old, magic: int) -> None:
    assert codes(old(magic)) == {INVALID}
    assert f"magic {magic}" in str(refusal(memoryview(old(magic))))
    assert codes(old(magic) * 4) == {INVALID}


def test_an_old_message_set_is_refused_for_its_age_not_for_its_checksum(old: Old) -> None:
    assert codes(old(1)[:12] + bytes(4) + old(1)[16:]) == {INVALID}


def test_a_batch_beside_an_old_message_is_refused(old: Old, forge: Forge) -> None:
    assert codes(old(0) + forge()) == {INVALID}
    assert codes(forge() + old(0)) == {INVALID}


@pytest.mark.parametrize("magic", [-1, 3, 108])
def test_a_magic_that_never_was_is_corruption(forge: Forge, magic: int) -> None:
    assert codes(forge(magic=magic)) == {CORRUPT}


@pytest.mark.parametrize("length", [-1, 0, 13])
def test_a_length_below_any_formats_smallest_is_corruption(forge: Forge, length: int) -> None:
    assert codes(forge(batch_length=length)) == {CORRUPT}


@pytest.mark.parametrize("length", [14, 48])
def test_a_batch_shorter_than_its_header_is_corruption(forge: Forge, length: int) -> None:
    assert codes(forge(batch_length=length)[: 12 + length]) == {CORRUPT}


@pytest.mark.parametrize("size", [0, 1, 11, 12, 16, 17, 30, 61, 64])
def test_less_than_a_batch_is_an_invalid_record(forge: Forge, size: int) -> None:
    assert codes(forge()[:size]) == {INVALID}


@pytest.mark.parametrize("length", [58, 2**31 - 1])
def test_a_batch_longer_than_what_there_is_is_an_invalid_record(forge: Forge, length: int) -> None:
    assert codes(forge(batch_length=length)) == {INVALID}


def test_two_batches_are_one_too_many(forge: Forge) -> None:
    assert codes(forge() + forge()) == {INVALID}
    assert codes(forge(crc=1) + forge()) == {INVALID}


def test_what_comes_after_a_batch_counts_before_the_batch_does(forge: Forge) -> None:
    assert codes(forge() + forge(magic=3)) == {CORRUPT}
    assert codes(forge() + bytes(16)) == {CORRUPT}


def test_a_length_too_short_by_some_bytes_is_a_wrong_checksum(forge: Forge) -> None:
    assert codes(forge(batch_length=56)) == {CORRUPT}


def test_loose_bytes_after_a_good_batch_are_refused(forge: Forge) -> None:
    assert codes(forge() + b"\x00") == {INVALID}


@pytest.mark.parametrize("size", [16, 17, 61, 100])
def test_zeros_are_corruption(size: int) -> None:
    assert codes(bytes(size)) == {CORRUPT}


def test_whole_entries_are_walked_over_and_a_cut_one_ends_the_walk(old: Old, forge: Forge) -> None:
    magics = [magic for magic, _ in entry_magics(memoryview(old(0) + old(1) + forge() + forge()[:-1]))]
    assert magics == [0, 1, 2]


@given(st.binary(max_size=100), st.integers(0, 2))
def test_any_bytes_get_one_of_two_errors(data: bytes, magic: int) -> None:
    entry = struct.pack(">qib", 0, max(len(data) - 5, 0), magic) + data
    for buffer in (data, entry):
        assert isinstance(refusal(memoryview(buffer)), CorruptMessage | InvalidRecord)
