"""The indexes of sealed segments in memory, bounded."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from walrusmq.segments.index_cache import ENTRY_OVERHEAD_BYTES, IndexCache
from walrusmq.segments.indexes import SegmentIndexes


class Log(SimpleNamespace):
    __hash__ = object.__hash__


def indexes(entries: int) -> SegmentIndexes:
    made = SegmentIndexes(0)
    for number in range(entries + 1):
        made.note(number, number * 4096, number)
    assert made.size_bytes == entries * 24
    return made


def test_what_was_used_least_lately_goes_first() -> None:
    cache = IndexCache(3 * ENTRY_OVERHEAD_BYTES)
    logs: list[Any] = [Log() for _ in range(4)]
    for log in logs[:3]:
        cache.put(log, indexes(0))
    cache.get(logs[0])
    cache.put(logs[3], indexes(0))
    assert [log in cache._indexes for log in logs] == [True, False, True, True]
    assert cache.size_bytes == 3 * ENTRY_OVERHEAD_BYTES


def test_one_that_is_too_large_is_kept_alone() -> None:
    cache = IndexCache(2 * ENTRY_OVERHEAD_BYTES)
    small: Any = Log()
    large: Any = Log()
    cache.put(small, indexes(0))
    cache.put(large, indexes(1000))
    assert cache.get(small) is None
    assert cache.get(large) is not None
    cache.put(large, indexes(2))
    cache.remove(large)
    cache.remove(large)
    assert cache.size_bytes == len(cache) == 0
