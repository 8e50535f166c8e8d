"""The sparse offset index against a plain list of batches."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from walrusmq.segments.offset_index import INDEX_INTERVAL_BYTES, OffsetIndex

#: Batches as (entries, bytes), of sizes around the interval.
batches = st.lists(st.tuples(st.integers(1, 50), st.integers(61, 3 * INDEX_INTERVAL_BYTES)), max_size=60)
first_offsets = st.sampled_from([0, 1, 1 << 40])


def fill(first_offset: int, sizes: list[tuple[int, int]]) -> tuple[OffsetIndex, list[tuple[int, int]]]:
    index = OffsetIndex(first_offset)
    boundaries = []
    offset, position = first_offset, 0
    for entries, size in sizes:
        boundaries.append((offset, position))
        if position >= index.next_position:
            index.add(offset, position)
        offset, position = offset + entries, position + size
    return index, [*boundaries, (offset, position)]


@given(first_offsets, batches)
def test_a_floor_is_a_batch_at_or_before_and_near(first_offset: int, sizes: list[tuple[int, int]]) -> None:
    index, boundaries = fill(first_offset, sizes)
    for offset, position in boundaries[:-1]:
        found = index.floor(offset)
        assert found in boundaries
        assert found[0] <= offset
        between = [other for other in boundaries[:-1] if found[1] < other[1] <= position]
        assert all(other[1] - found[1] < INDEX_INTERVAL_BYTES for other in between), "an entry is missing"


@given(first_offsets, batches, st.integers(0, 200_000))
def test_a_floor_by_position_is_the_last_entry_up_to_it(
    first_offset: int, sizes: list[tuple[int, int]], position: int
) -> None:
    index, _ = fill(first_offset, sizes)
    known = [(first_offset, 0), *zip([first_offset + o for o in index.relative_offsets], index.positions, strict=True)]
    assert index.floor_position(position) == max(entry for entry in known if entry[1] <= position)


@given(first_offsets, batches, st.data())
def test_a_cut_index_is_that_of_the_shorter_log(
    first_offset: int, sizes: list[tuple[int, int]], data: st.DataObject
) -> None:
    index, boundaries = fill(first_offset, sizes)
    kept = data.draw(st.integers(0, len(sizes)))
    index.truncate(boundaries[kept][1])
    expected, _ = fill(first_offset, sizes[:kept])
    assert list(index.positions) == list(expected.positions)
    assert list(index.relative_offsets) == list(expected.relative_offsets)
    assert index.next_position == expected.next_position


def test_an_empty_index_points_to_the_segments_start() -> None:
    index = OffsetIndex(42)
    assert index.floor(1000) == index.floor_position(1 << 40) == (42, 0)
    assert index.size_bytes == len(index) == 0


def test_positions_beyond_four_gigabytes_are_kept() -> None:
    index = OffsetIndex(0)
    index.add(2**32 - 1, 1 << 40)
    assert index.floor(2**32) == (2**32 - 1, 1 << 40)
