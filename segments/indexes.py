"""The two sparse indexes of one segment together, filled by one rule: live, at recovery and at a rebuild alike."""

from __future__ import annotations

from collections.abc import Iterable

from walrusmq.protocol.records.header import BatchHeader
from walrusmq.segments.facts import NO_TIMESTAMP
from walrusmq.segments.offset_index import OffsetIndex
from walrusmq.segments.time_index import TimeIndex


class SegmentIndexes:
    """Offset index, time index, and the largest timestamp so far in ms (-1: none)."""

    __slots__ = ("max_timestamp", "offsets", "times")

    def __init__(self, first_offset: int) -> None:
        self.offsets = OffsetIndex(first_offset)
        self.times = TimeIndex(first_offset)
        self.max_timestamp = NO_TIMESTAMP

    @property
    def size_bytes(self) -> int:
        """Memory of the entries."""
        return self.offsets.size_bytes + self.times.size_bytes

    def note(self, offset: int, position: int, max_timestamp: int) -> None:
        """Take in the next batch of the log: every one, in order."""
        offsets = self.offsets
        if position >= offsets.next_position:
            offsets.add(offset, position)
            self.times.add(self.max_timestamp, offset)
        if max_timestamp > self.max_timestamp:
            self.max_timestamp = max_timestamp

    def note_all(self, batches: Iterable[tuple[int, BatchHeader]]) -> None:
        """Take in the (position, header) pairs of a scan."""
        for position, header in batches:
            self.note(header.base_offset, position, header.max_timestamp)
