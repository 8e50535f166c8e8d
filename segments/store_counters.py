"""What a store counts: plain integers, each with one writer, that an exporter may read at any time."""

from __future__ import annotations


class StoreCounters:
    """Counts since the start."""

    __slots__ = ("failed_syncs", "failed_writes", "slow_writes", "sync_seconds", "syncs")

    def __init__(self) -> None:
        self.syncs = 0
        """Calls of fdatasync for log files on the commit thread."""
        self.sync_seconds = 0.0
        """Time spent in them, with the folders that were synced beside."""
        self.failed_syncs = 0
        self.failed_writes = 0
        self.slow_writes = 0
        """Writes of batches that took longer than SLOW_WRITE_S, on the event loop or, after one, on the thread."""
