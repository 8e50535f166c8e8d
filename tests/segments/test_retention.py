"""Which sealed segments retention is done with."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from walrusmq.segments.facts import SealedSegment
from walrusmq.segments.retention import NO_LIMIT, expired

NOW_MS = 1_000_000


def segments(*shapes: tuple[int, int]) -> list[SealedSegment]:
    """Of ten entries each, by (bytes, largest timestamp)."""
    return [
        SealedSegment(number, 1, 0, 10 * (number - 1), 10 * number, size, timestamp, 0, (1,))
        for number, (size, timestamp) in enumerate(shapes, 1)
    ]


def test_without_limits_all_stays() -> None:
    assert expired(segments((10, 0), (10, 0)), NOW_MS, NO_LIMIT, NO_LIMIT, 100, 0) is None
    assert expired([], NOW_MS, 0, 0, 100, 0) is None


def test_segments_go_by_age_oldest_first() -> None:
    chain = segments((10, NOW_MS - 51), (10, NOW_MS - 51), (10, NOW_MS - 50), (10, NOW_MS - 99))
    assert expired(chain, NOW_MS, 50, NO_LIMIT, 0, 0) == 20
    assert expired(chain, NOW_MS, 49, NO_LIMIT, 0, 0) == 40
    assert expired(chain, NOW_MS, 51, NO_LIMIT, 0, 0) is None


def test_a_segment_without_timestamps_has_no_age() -> None:
    assert expired(segments((10, -1), (10, 0)), NOW_MS, 50, NO_LIMIT, 0, 0) is None


def test_segments_go_by_size_as_long_as_enough_is_left() -> None:
    chain = segments((10, 0), (10, 0), (10, 0))
    assert expired(chain, NOW_MS, NO_LIMIT, 26, 5, 0) is None
    assert expired(chain, NOW_MS, NO_LIMIT, 25, 5, 0) == 10
    assert expired(chain, NOW_MS, NO_LIMIT, 15, 5, 0) == 20
    assert expired(chain, NOW_MS, NO_LIMIT, 0, 5, 0) == 30


def test_age_and_size_work_together() -> None:
    chain = segments((10, NOW_MS - 99), (10, NOW_MS), (10, NOW_MS))
    assert expired(chain, NOW_MS, 50, 20, 0, 0) == 10
    assert expired(chain, NOW_MS, 50, 10, 0, 0) == 20


def test_a_segment_below_the_logs_start_goes_whatever_the_limits() -> None:
    chain = segments((10, 0), (10, 0), (10, 0))
    assert expired(chain, NOW_MS, NO_LIMIT, NO_LIMIT, 0, 9) is None
    assert expired(chain, NOW_MS, NO_LIMIT, NO_LIMIT, 0, 10) == 10
    assert expired(chain, NOW_MS, NO_LIMIT, NO_LIMIT, 0, 29) == 29
    assert expired(chain, NOW_MS, NO_LIMIT, NO_LIMIT, 0, 30) == 30


@given(
    st.lists(st.tuples(st.integers(0, 50), st.integers(-1, 20)), max_size=20),
    st.integers(-1, 15),
    st.integers(-1, 200),
    st.integers(0, 50),
)
def test_no_more_goes_than_must(
    shapes: list[tuple[int, int]], retention_ms: int, retention_bytes: int, open_size: int
) -> None:
    chain = segments(*shapes)
    start = expired(chain, 20, retention_ms, retention_bytes, open_size, 0)
    kept = [facts for facts in chain if start is None or facts.first_offset >= start]
    if retention_bytes >= 0:
        left = open_size + sum(facts.size_bytes for facts in kept)
        assert not kept or left - kept[0].size_bytes < retention_bytes, "the next one couldn't go"
    if retention_ms >= 0 and kept:
        assert not 0 <= kept[0].max_timestamp < 20 - retention_ms
    assert expired(kept, 20, retention_ms, retention_bytes, open_size, 0) is None, "once is enough"
