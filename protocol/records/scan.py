"""Walking over the batches of a log file by their headers, for recovery and for rebuilding an index.

Both scans yield `(position, header)` for each whole batch from `position` on and end normally where the last one ends
exactly at `end`. At the first that is torn or wrong they raise DamagedLog, which says where and why: all before its
position was yielded, and is good. `read(size, position)` is a pread: it may give fewer bytes only where the file ends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from walrusmq.protocol.records.crc import crc32c
from walrusmq.protocol.records.header import HEADER_BYTES, BatchHeader, parse_header
from walrusmq.protocol.records.legacy import CRC_COVERS_FROM, CURRENT_MAGIC, MIN_BATCH_LENGTH

HEADER_SCAN_BLOCK_BYTES = 64 * 1024
"""Holds hundreds of small batches; of a large one little more than the header is read."""
VERIFIED_SCAN_BLOCK_BYTES = 1024 * 1024
"""What a verifying scan holds in memory, however large a batch is."""

Read = Callable[[int, int], bytes]


class DamagedLog(Exception):
    """A log isn't whole batches up to its end. `position` is where the first bad one begins, `reason` what is wrong."""

    def __init__(self, position: int, reason: str) -> None:
        super().__init__(f"{reason} at position {position}")
        self.position = position
        self.reason = reason


class _Window:
    """A block of the file in memory, moved on when bytes outside it are asked for."""

    def __init__(self, read: Read, end: int, block_bytes: int) -> None:
        self._read = read
        self._end = end
        self._block_bytes = block_bytes
        self._block = memoryview(b"")
        self._start = 0

    def whole(self, position: int, size: int) -> memoryview:
        """`size` bytes from `position` on, or as many as there are before the end; at most a block of them."""
        if not self._start <= position <= self._start + len(self._block) - size:
            self._move_to(position)
        return self._block[position - self._start :][:size]

    def piece(self, position: int, size: int) -> memoryview:
        """Up to `size` bytes from `position` on, those that need no reading if there are any; none behind the end."""
        if not self._start <= position < self._start + len(self._block):
            self._move_to(position)
        return self._block[position - self._start :][:size]

    def _move_to(self, position: int) -> None:
        self._block = memoryview(self._read(min(self._block_bytes, self._end - position), position))
        self._start = position


def scan_headers(read: Read, position: int, end: int) -> Iterator[tuple[int, BatchHeader]]:
    """Batches by length and magic alone, for a log that is known to be whole; reads little of large batches."""
    window = _Window(read, end, HEADER_SCAN_BLOCK_BYTES)
    while position < end:
        header = _header_at(window, position, end)
        yield position, header
        position += header.size_bytes


def scan_verified(read: Read, position: int, end: int) -> Iterator[tuple[int, BatchHeader]]:
    """Batches whose checksum over the content holds, for a log whose end may be torn; reads all of it, once."""
    window = _Window(read, end, VERIFIED_SCAN_BLOCK_BYTES)
    while position < end:
        header = _header_at(window, position, end)
        batch_end = position + header.size_bytes
        if _checksum(window, position + CRC_COVERS_FROM, batch_end) != header.crc:
            raise DamagedLog(position, "a batch doesn't match its checksum")
        yield position, header
        position = batch_end


def _header_at(window: _Window, position: int, end: int) -> BatchHeader:
    view = window.whole(position, HEADER_BYTES)
    if len(view) < HEADER_BYTES:
        raise DamagedLog(position, f"{len(view)} bytes of a batch's header")
    header = parse_header(view)
    if header.batch_length < MIN_BATCH_LENGTH:
        raise DamagedLog(position, f"a batch of length {header.batch_length}")
    if header.magic != CURRENT_MAGIC:
        raise DamagedLog(position, f"a batch of magic {header.magic}")
    if header.size_bytes > end - position:
        raise DamagedLog(position, f"{end - position} of a batch's {header.size_bytes} bytes")
    return header


def _checksum(window: _Window, position: int, end: int) -> int:
    """CRC-32C of the bytes up to `end`; of fewer, and so a wrong one, where the file is shorter than was said."""
    checksum = 0
    while position < end:
        piece = window.piece(position, end - position)
        if not piece:
            break
        checksum = crc32c(piece, checksum)
        position += len(piece)
    return checksum
