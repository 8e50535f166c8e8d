"""The sparse offset index of one segment: which batch begins where, one entry per 4 KiB of log.

Entries are batch boundaries, so they serve both ends of a read: the place to start walking from, and the place to stop.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right

INDEX_INTERVAL_BYTES = 4096
"""Log between two entries, at the least: a lookup then walks over one page or one batch."""
MAX_RELATIVE_OFFSET = 2**32 - 1
"""Offsets are kept relative to the segment's first in 32 bits; a segment is rolled over before it has more."""


class OffsetIndex:
    """Ascending (offset, position) pairs of batches; positions are 64 bit, offsets absolute at the interface.

    The segment's first batch needs no entry: without one, the answer is its first offset at position 0.
    """

    __slots__ = ("first_offset", "next_position", "positions", "relative_offsets")

    def __init__(self, first_offset: int) -> None:
        self.first_offset = first_offset
        self.relative_offsets = array("I")
        self.positions = array("Q")
        self.next_position = INDEX_INTERVAL_BYTES
        """A batch that begins here or later is due an entry."""

    def __len__(self) -> int:
        return len(self.positions)

    @property
    def size_bytes(self) -> int:
        """Memory of the entries."""
        return len(self.positions) * (self.positions.itemsize + self.relative_offsets.itemsize)

    def add(self, offset: int, position: int) -> None:
        """Note a batch. The caller has looked at `next_position`."""
        self.relative_offsets.append(offset - self.first_offset)
        self.positions.append(position)
        self.next_position = position + INDEX_INTERVAL_BYTES

    def floor(self, offset: int) -> tuple[int, int]:
        """(offset, position) of the last known batch that begins at or before `offset`."""
        at = bisect_right(self.relative_offsets, offset - self.first_offset) - 1
        return (self.first_offset, 0) if at < 0 else self._entry(at)

    def floor_position(self, position: int) -> tuple[int, int]:
        """(offset, position) of the last known batch that begins at or before `position`."""
        at = bisect_right(self.positions, position) - 1
        return (self.first_offset, 0) if at < 0 else self._entry(at)

    def count_before(self, position: int) -> int:
        """How many entries are for batches that begin before `position`."""
        return bisect_left(self.positions, position)

    def truncate(self, end_position: int) -> None:
        """Forget batches that begin at `end_position` or later: the log was cut there."""
        kept = self.count_before(end_position)
        del self.positions[kept:]
        del self.relative_offsets[kept:]
        self.next_position = (self.positions[-1] if kept else 0) + INDEX_INTERVAL_BYTES

    def _entry(self, at: int) -> tuple[int, int]:
        return self.first_offset + self.relative_offsets[at], self.positions[at]
