"""The sparse time index against a plain list of batches whose timestamps jump."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from walrusmq.segments.indexes import SegmentIndexes
from walrusmq.segments.offset_index import INDEX_INTERVAL_BYTES
from walrusmq.segments.time_index import TimeIndex

times = st.integers(-1, 50)


@given(st.lists(times, max_size=60), times)
def test_nothing_as_late_lies_before_where_the_index_says_to_start(timestamps: list[int], wanted: int) -> None:
    indexes = SegmentIndexes(100)
    for number, timestamp in enumerate(timestamps):
        indexes.note(100 + number, number * INDEX_INTERVAL_BYTES, timestamp)
    start = indexes.times.start_for(wanted)
    assert all(timestamp < wanted for timestamp in timestamps[: start - 100])
    assert indexes.offsets.floor(start)[0] == start, "the offset index knows that batch"
    late = [number for number, timestamp in enumerate(timestamps) if timestamp >= wanted]
    if late:
        assert late[0] - (start - 100) <= 1, "the first late batch is at most one interval behind it"
    assert indexes.max_timestamp == max(timestamps, default=-1)


def test_a_time_that_stands_still_is_not_searched_from_its_beginning() -> None:
    index = TimeIndex(0)
    for timestamp, offset in [(5, 10), (5, 20), (5, 30), (6, 40)]:
        index.add(timestamp, offset)
    assert index.start_for(5) == 0
    assert index.start_for(6) == 30
    assert index.start_for(7) == 40


def test_a_cut_index_has_nothing_at_or_behind_the_cut() -> None:
    index = TimeIndex(0)
    for timestamp, offset in [(1, 10), (2, 20), (3, 30)]:
        index.add(timestamp, offset)
    index.truncate(20)
    assert list(index.relative_offsets) == [10]
    assert index.start_for(99) == 10
    assert index.count_before(10) == 0
    assert index.size_bytes == 12
