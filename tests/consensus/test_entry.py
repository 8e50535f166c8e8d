"""Entries: what is written is read back, and any bytes give right entries or a fault."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from walrusmq.consensus.entry import ENTRY_HEADER_BYTES, MAX_COMMAND_BYTES, Entry, encode_entries, scan_entries


def chain(payloads: list[bytes], first_index: int = 1, term: int = 1) -> list[Entry]:
    return [Entry(first_index + place, term, payload) for place, payload in enumerate(payloads)]


@given(st.lists(st.binary(max_size=200)), st.integers(1, 2**60), st.integers(1, 2**60))
def test_entries_are_read_as_they_were_written(payloads: list[bytes], first_index: int, term: int) -> None:
    entries = chain(payloads, first_index, term)
    data = encode_entries(entries)
    scan = scan_entries(data, 0, first_index, term)
    assert scan.entries == entries
    assert (scan.end, scan.fault) == (len(data), None)


@given(st.lists(st.binary(max_size=50), min_size=1), st.data())
def test_a_damaged_entry_and_all_behind_it_are_left_out(payloads: list[bytes], data: st.DataObject) -> None:
    entries = chain(payloads)
    encoded = bytearray(encode_entries(entries))
    position = data.draw(st.integers(0, len(encoded) - 1))
    encoded[position] ^= data.draw(st.integers(1, 255))
    scan = scan_entries(bytes(encoded), 0, 1, 1)
    assert scan.fault is not None
    assert scan.entries == entries[: len(scan.entries)]
    assert scan.end <= position


@given(st.binary(max_size=300))
def test_any_bytes_are_scanned_without_an_exception(data: bytes) -> None:
    scan = scan_entries(data, 0, 1, 1)
    assert scan.entries == []
    assert (scan.fault is None) == (data == b"")


@given(st.lists(st.binary(max_size=50), min_size=1), st.data())
def test_a_cut_within_an_entry_leaves_those_before_it(payloads: list[bytes], data: st.DataObject) -> None:
    entries = chain(payloads)
    encoded = encode_entries(entries)
    cut = data.draw(st.integers(0, len(encoded)))
    scan = scan_entries(encoded[:cut], 0, 1, 1)
    assert scan.entries == entries[: len(scan.entries)]
    assert (scan.fault is None) == (scan.end == cut)


def test_an_entry_with_another_index_than_expected_is_a_fault() -> None:
    scan = scan_entries(encode_entries(chain([b"x"], first_index=7)), 0, 6, 1)
    assert scan.entries == []
    assert "index 7" in str(scan.fault)


def test_a_term_that_falls_is_a_fault() -> None:
    data = encode_entries([Entry(1, 5, b"a"), Entry(2, 4, b"b")])
    scan = scan_entries(data, 0, 1, 1)
    assert [entry.index for entry in scan.entries] == [1]
    assert scan.fault is not None


def test_a_size_above_the_limit_is_a_fault_and_allocates_nothing() -> None:
    data = bytearray(encode_entries(chain([b"x"])))
    data[4:8] = (MAX_COMMAND_BYTES + 1).to_bytes(4, "big")
    assert "size" in str(scan_entries(bytes(data), 0, 1, 1).fault)


def test_a_scan_ends_before_the_limit_whatever_follows() -> None:
    data = encode_entries(chain([b"a", b"b"])) + b"rubbish"
    scan = scan_entries(data, 0, 1, 1, limit_index=2)
    assert [entry.payload for entry in scan.entries] == [b"a"]
    assert (scan.end, scan.fault) == (ENTRY_HEADER_BYTES + 1, None)
