"""The indexes of sealed segments that were read lately, bounded by their memory."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING

from walrusmq.segments.indexes import SegmentIndexes

if TYPE_CHECKING:
    from walrusmq.segments.sealed_log import SealedLog

MAX_INDEX_CACHE_BYTES = 16 << 20
"""Enough for the indexes of several GB of log that is being read; one of 100 MB takes up to 0.6 MB."""
ENTRY_OVERHEAD_BYTES = 1024
"""The objects around an index, so that many empty ones are bounded too."""


class IndexCache:
    """Least recently used out first; the one that was put in last always stays."""

    def __init__(self, max_bytes: int = MAX_INDEX_CACHE_BYTES) -> None:
        self._max_bytes = max_bytes
        self._indexes: OrderedDict[SealedLog, SegmentIndexes] = OrderedDict()
        self.size_bytes = 0

    def __len__(self) -> int:
        return len(self._indexes)

    def get(self, log: SealedLog) -> SegmentIndexes | None:
        indexes = self._indexes.get(log)
        if indexes is not None:
            self._indexes.move_to_end(log)
        return indexes

    def put(self, log: SealedLog, indexes: SegmentIndexes) -> None:
        self.remove(log)
        self._indexes[log] = indexes
        self.size_bytes += _cost(indexes)
        while self.size_bytes > self._max_bytes and len(self._indexes) > 1:
            _, oldest = self._indexes.popitem(last=False)
            self.size_bytes -= _cost(oldest)

    def remove(self, log: SealedLog) -> None:
        indexes = self._indexes.pop(log, None)
        if indexes is not None:
            self.size_bytes -= _cost(indexes)


def _cost(indexes: SegmentIndexes) -> int:
    return indexes.size_bytes + ENTRY_OVERHEAD_BYTES
