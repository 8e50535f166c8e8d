"""When an open segment is due for a rollover: by entries (max.segment.entries), segment.bytes or its age (segment.ms).

The monitor loop looks at one times each threshold, every append at twice: a segment is never much larger than that.
"""

from __future__ import annotations

from walrusmq.segments.checkpoint import CHECKPOINT_INTERVAL_BYTES
from walrusmq.segments.log_config import FOREVER, LogConfig
from walrusmq.segments.open_log import OpenLog

MAX_ENTRIES = 2**31 - 1
"""Entries that a segment may reach before its rollover is urgent, whatever is set: offset indexes count in 32 bits, and
one batch may bring as many again."""


class Thresholds:
    """What one append compares its results with.

    `offset` and `ms` stand at twice what is set, `position` at twice that or where the next checkpoint is due.
    """

    __slots__ = (
        "_checkpoint_position",
        "_config",
        "_first_offset",
        "_full_position",
        "ms",
        "offset",
        "position",
    )

    def __init__(self, config: LogConfig, log: OpenLog) -> None:
        self._config = config
        self._first_offset = log.facts.first_offset
        self._full_position = 2 * config.segment_bytes
        self.offset = self._first_offset + min(2 * config.max_segment_entries, MAX_ENTRIES)
        self.ms = FOREVER
        self.started(log)
        self.checkpointed(log.checkpoint_position)

    def started(self, log: OpenLog) -> None:
        """The segment has its first batch: its age counts from now on."""
        if log.started_ms >= 0:
            self.ms = log.started_ms + 2 * self._config.segment_ms

    def checkpointed(self, position: int) -> None:
        """The next checkpoint is due an interval behind `position`."""
        self._checkpoint_position = position + CHECKPOINT_INTERVAL_BYTES
        self.position = min(self._full_position, self._checkpoint_position)

    def is_checkpoint_due(self, log: OpenLog) -> bool:
        return log.position >= self._checkpoint_position

    def passed_twice(self, log: OpenLog, now_ms: int) -> str | None:
        """Which threshold the segment has passed twice, if it has."""
        if log.end_offset >= self.offset:
            return "entries"
        if log.position >= self._full_position:
            return "bytes"
        return "age" if now_ms >= self.ms else None

    def due(self, log: OpenLog, now_ms: int) -> str | None:
        """Which threshold the segment has reached once; None for none, and for an empty segment."""
        config = self._config
        entries = log.end_offset - self._first_offset
        if not entries:
            return None
        if entries >= min(config.max_segment_entries, MAX_ENTRIES):
            return "entries"
        if log.position >= config.segment_bytes:
            return "bytes"
        return "age" if now_ms - log.started_ms >= config.segment_ms else None
