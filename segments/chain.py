"""A partition's sealed segments in order, and which of them holds an offset, a time or an epoch.

Lookups bisect over the chain's facts: their cost doesn't grow with its length to speak of.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from itertools import accumulate

from walrusmq.segments.facts import SealedSegment
from walrusmq.segments.sealed_log import SealedLog


class Chain:
    """Sealed segments by their facts. A segment's log is opened when it is first asked for."""

    __slots__ = ("_first_offsets", "_logs", "_make_log", "_max_timestamps", "sealed")

    def __init__(self, sealed: Sequence[SealedSegment], make_log: Callable[[SealedSegment], SealedLog]) -> None:
        self.sealed = list(sealed)
        """The facts, oldest first."""
        self._make_log = make_log
        self._logs: dict[int, SealedLog] = {}
        self._first_offsets = [facts.first_offset for facts in self.sealed]
        self._max_timestamps: list[int] | None = None

    def __len__(self) -> int:
        return len(self.sealed)

    def at_offset(self, offset: int) -> int:
        """The place in the chain of the segment that `offset` falls into; -1 before all."""
        return bisect_right(self._first_offsets, offset) - 1

    def at_timestamp(self, timestamp: int) -> int:
        """The place of the first segment with a record of that time or later; the chain's length where none has."""
        if self._max_timestamps is None:
            self._max_timestamps = list(accumulate((facts.max_timestamp for facts in self.sealed), max))
        return bisect_left(self._max_timestamps, timestamp)

    def at_epoch(self, epoch: int) -> int:
        """The place of the first segment with a greater leader epoch; the chain's length where none has."""
        return bisect_right(self.sealed, epoch, key=lambda facts: facts.leader_epoch)

    def log(self, place: int) -> SealedLog:
        """The log of the segment at a place."""
        facts = self.sealed[place]
        log = self._logs.get(facts.id)
        if log is None:
            log = self._logs[facts.id] = self._make_log(facts)
        return log

    def add(self, log: SealedLog) -> None:
        """The open segment was sealed."""
        facts = log.facts
        assert not self.sealed or self.sealed[-1].end_offset <= facts.first_offset, "an overlap in the chain"
        self.sealed.append(facts)
        self._first_offsets.append(facts.first_offset)
        self._logs[facts.id] = log
        self._max_timestamps = None

    def drop_below(self, offset: int) -> list[SealedSegment]:
        """Take away the segments that end at or before `offset`; returns their facts."""
        count = bisect_right(self.sealed, offset, key=lambda facts: facts.end_offset)
        dropped = self.sealed[:count]
        del self.sealed[:count]
        del self._first_offsets[:count]
        for facts in dropped:
            self._let_go(facts.id)
        self._max_timestamps = None
        return dropped

    def replace(self, place: int, facts: SealedSegment) -> None:
        """The segment at a place has been compacted: its log is another from now on."""
        self._let_go(self.sealed[place].id)
        self.sealed[place] = facts
        self._max_timestamps = None

    def remove(self, place: int) -> None:
        """Nothing is left of the segment at a place."""
        self._let_go(self.sealed[place].id)
        del self.sealed[place]
        del self._first_offsets[place]
        self._max_timestamps = None

    def _let_go(self, segment_id: int) -> None:
        log = self._logs.pop(segment_id, None)
        if log is not None:
            log.close()

    def close(self) -> None:
        """Let go of all files."""
        for log in self._logs.values():
            log.close()
