"""The sparse time index of one segment: from where to look for the first record of a time or later.

An entry (T, o) says that all batches before offset o carry timestamps up to T at most. Each is made beside one of the
offset index's: timestamps may stand still or go back, running maxima don't.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left


class TimeIndex:
    """Ascending (running maximum of the timestamps in ms, offset) pairs. The offset index knows each offset too."""

    __slots__ = ("first_offset", "relative_offsets", "timestamps")

    def __init__(self, first_offset: int) -> None:
        self.first_offset = first_offset
        self.timestamps = array("q")
        self.relative_offsets = array("I")

    def __len__(self) -> int:
        return len(self.timestamps)

    @property
    def size_bytes(self) -> int:
        """Memory of the entries."""
        return len(self.timestamps) * (self.timestamps.itemsize + self.relative_offsets.itemsize)

    def add(self, max_timestamp: int, offset: int) -> None:
        """Note that the batches before `offset` have timestamps up to `max_timestamp`."""
        self.timestamps.append(max_timestamp)
        self.relative_offsets.append(offset - self.first_offset)

    def start_for(self, timestamp: int) -> int:
        """An offset that begins a batch; no record before it is as late as `timestamp`."""
        at = bisect_left(self.timestamps, timestamp) - 1
        return self.first_offset + (self.relative_offsets[at] if at >= 0 else 0)

    def count_before(self, offset: int) -> int:
        """How many entries stand before `offset`."""
        return bisect_left(self.relative_offsets, offset - self.first_offset)

    def truncate(self, end_offset: int) -> None:
        """Forget entries at `end_offset` or later: the log was cut there."""
        kept = self.count_before(end_offset)
        del self.relative_offsets[kept:]
        del self.timestamps[kept:]
