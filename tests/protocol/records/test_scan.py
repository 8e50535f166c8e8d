import struct
from collections.abc import Callable, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from walrusmq.protocol.records.batch import Record, encode_batch
from walrusmq.protocol.records.header import BatchHeader
from walrusmq.protocol.records.scan import (
    HEADER_SCAN_BLOCK_BYTES,
    VERIFIED_SCAN_BLOCK_BYTES,
    DamagedLog,
    scan_headers,
    scan_verified,
)

T0 = 1_700_000_000_000
Scan = Callable[[Callable[[int, int], bytes], int, int], Iterator[tuple[int, BatchHeader]]]
both_scans = pytest.mark.parametrize("scan", [scan_headers, scan_verified])


def log_of(*value_bytes: int) -> tuple[bytes, list[int]]:
    """A log of one-record batches with values of these sizes, and where each batch begins, with the end of the last."""
    log, positions = b"", [0]
    for offset, size in enumerate(value_bytes):
        log += encode_batch([Record(offset, T0, None, bytes(size))])
        positions.append(len(log))
    return log, positions


class CountingFile:
    """A file in memory that counts what is read of it, and gives what a pread gives."""

    def __init__(self, content: bytes) -> None:
        self.content = content
        self.bytes_read = 0
        self.largest_read = 0

    def read(self, size: int, position: int) -> bytes:
        self.bytes_read += size
        self.largest_read = max(self.largest_read, size)
        return self.content[position : position + size]


def outcome(scan: Scan, log: bytes, start: int = 0, end: int | None = None) -> tuple[list[int], int | None]:
    """Where the batches begin that the scan gives, and where the damage does."""
    found: list[int] = []
    try:
        for position, header in scan(CountingFile(log).read, start, len(log) if end is None else end):
            assert header.base_offset == len(found) or start
            found.append(position)
    except DamagedLog as damage:
        return found, damage.position
    return found, None


@both_scans
def test_each_batch_of_a_whole_log_is_found(scan: Scan) -> None:
    log, positions = log_of(0, 10, HEADER_SCAN_BLOCK_BYTES, 1, 2 * VERIFIED_SCAN_BLOCK_BYTES + 5, 0, 7)
    assert outcome(scan, log) == (positions[:-1], None)


@both_scans
def test_a_scan_may_begin_and_end_between_batches(scan: Scan) -> None:
    log, positions = log_of(5, 5, 5, 5)
    assert outcome(scan, log, positions[1], positions[3]) == (positions[1:3], None)
    assert outcome(scan, log, positions[2], positions[2]) == ([], None)


@both_scans
def test_an_empty_log_is_whole(scan: Scan) -> None:
    assert outcome(scan, b"") == ([], None)


@both_scans
@given(cut=st.integers(0, 200), data=st.data())
def test_a_log_cut_anywhere_is_good_up_to_its_last_whole_batch(scan: Scan, cut: int, data: st.DataObject) -> None:
    log, positions = log_of(*data.draw(st.lists(st.integers(0, 60), min_size=3, max_size=6)))
    whole = [position for position in positions if position <= cut]
    damage = None if cut in positions or cut > len(log) else whole[-1]
    assert outcome(scan, log[:cut]) == (whole[:-1] if cut <= len(log) else positions[:-1], damage)


@both_scans
def test_a_file_shorter_than_was_said_is_damaged_where_it_ends(scan: Scan) -> None:
    log, positions = log_of(5, 5)
    assert outcome(scan, log, 0, len(log) + 100) == (positions[:2], positions[2])
    assert outcome(scan_verified, log[:-3], 0, len(log)) == (positions[:1], positions[1])


@given(flipped=st.integers(0, 227), bit=st.integers(0, 7))
def test_a_verified_scan_stops_at_a_flipped_bit(flipped: int, bit: int) -> None:
    log, positions = log_of(10, 10, 10)
    damaged = bytearray(log)
    damaged[flipped] ^= 1 << bit
    batch = max(position for position in positions if position <= flipped)
    within = flipped - batch
    found, damage = [], None
    try:
        for position, _ in scan_verified(CountingFile(bytes(damaged)).read, 0, len(damaged)):
            found.append(position)
    except DamagedLog as error:
        damage = error.position
    if within < 8 or 12 <= within < 16:
        assert (found, damage) == (positions[:-1], None), "base offset and epoch are under no checksum"
    else:
        assert damage == batch
        assert found == [position for position in positions if position < batch]


@both_scans
def test_zeros_after_the_last_batch_are_damage(scan: Scan) -> None:
    log, positions = log_of(5, 5)
    assert outcome(scan, log + bytes(5000)) == (positions[:2], positions[2])


def test_a_damaged_log_says_where_and_why() -> None:
    log, positions = log_of(5)
    for tail, reason in [
        (bytes(20), "20 bytes of a batch's header"),
        (bytes(61), "a batch of length 0"),
        (log[:-1], f"{len(log) - 1} of a batch's {len(log)} bytes"),
        (log[:16] + b"\x01" + log[17:], "a batch of magic 1"),
        (log[:-1] + b"\x01", "a batch doesn't match its checksum"),
    ]:
        with pytest.raises(DamagedLog) as damage:
            list(scan_verified(CountingFile(log + tail).read, 0, len(log + tail)))
        assert (damage.value.position, damage.value.reason) == (positions[1], reason)
        assert str(damage.value) == f"{reason} at position {positions[1]}"


def test_a_batch_that_claims_2_gb_is_torn_and_not_read() -> None:
    log, _ = log_of(5)
    file = CountingFile(log[:8] + struct.pack(">i", 2**31 - 1) + log[12:])
    with pytest.raises(DamagedLog, match="of a batch's 2147483659 bytes"):
        list(scan_verified(file.read, 0, len(log)))
    assert file.bytes_read <= VERIFIED_SCAN_BLOCK_BYTES


def test_a_header_scan_reads_little_of_large_batches() -> None:
    log, _ = log_of(*[1_000_000] * 5)
    file = CountingFile(log)
    assert len(list(scan_headers(file.read, 0, len(log)))) == 5
    assert file.bytes_read <= 5 * HEADER_SCAN_BLOCK_BYTES


def test_a_verified_scan_holds_one_block_and_reads_hardly_more_than_the_log() -> None:
    log, _ = log_of(3_000_000, *[5000] * 500, 3_000_000)
    file = CountingFile(log)
    assert len(list(scan_verified(file.read, 0, len(log)))) == 502
    assert file.largest_read <= VERIFIED_SCAN_BLOCK_BYTES
    assert file.bytes_read <= 1.01 * len(log)


def test_an_error_of_the_disk_comes_through() -> None:
    def broken(size: int, position: int) -> bytes:
        raise OSError(5, "Input/output error")

    with pytest.raises(OSError, match="Input/output"):
        list(scan_verified(broken, 0, 100))
