"""The index files of a segment: what was written comes back, and whatever happens to them is noticed."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from walrusmq.segments.files import OsFiles
from walrusmq.segments.index_files import IndexFiles
from walrusmq.segments.indexes import SegmentIndexes
from walrusmq.segments.offset_index import INDEX_INTERVAL_BYTES
from walrusmq.segments.partition_folder import INDEX, TIMES, PartitionFolder

FIRST_OFFSET = 1000


class Segment:
    """Index files in a folder of their own, for a log of batches of one interval and ten entries each."""

    def __init__(self, parent: Path) -> None:
        self.folder = PartitionFolder(OsFiles(), str(parent), "t", bytes(16), 0)
        Path(self.folder.path).mkdir()
        self.files = IndexFiles(OsFiles(), self.folder, 1)
        self.indexes = SegmentIndexes(FIRST_OFFSET)
        self.batches = 0

    def grow(self, batches: int) -> None:
        for number in range(self.batches, self.batches + batches):
            self.indexes.note(FIRST_OFFSET + 10 * number, number * INDEX_INTERVAL_BYTES, number % 7)
        self.batches += batches

    @property
    def position(self) -> int:
        return self.batches * INDEX_INTERVAL_BYTES

    def write(self) -> None:
        self.files.write(self.files.take(self.indexes, self.position, FIRST_OFFSET + 10 * self.batches))

    def path(self, suffix: str) -> Path:
        return Path(self.folder.file(1, suffix))

    def load(self, end_position: int | None = None) -> tuple[SegmentIndexes, int]:
        loaded = IndexFiles(OsFiles(), self.folder, 1)
        return loaded.load(FIRST_OFFSET, self.position if end_position is None else end_position)


@pytest.fixture
def segment(tmp_path: Path) -> Segment:
    return Segment(tmp_path)


def columns(indexes: SegmentIndexes) -> list[list[int]]:
    offsets, times = indexes.offsets, indexes.times
    return [list(c) for c in (offsets.relative_offsets, offsets.positions, times.timestamps, times.relative_offsets)]


def test_no_files_cover_nothing(segment: Segment) -> None:
    indexes, covered = segment.load()
    assert covered == 0
    assert columns(indexes) == [[], [], [], []]


def test_blocks_written_one_by_one_come_back_as_one(segment: Segment) -> None:
    for batches in (3, 1, 0, 10):
        segment.grow(batches)
        segment.write()
    indexes, covered = segment.load()
    assert covered == segment.position
    assert columns(indexes) == columns(segment.indexes)
    assert indexes.offsets.next_position == segment.indexes.offsets.next_position


def test_blocks_beyond_the_trusted_end_are_not_taken_and_written_over(segment: Segment) -> None:
    segment.grow(5)
    segment.write()
    trusted = segment.position
    segment.grow(5)
    segment.write()
    again = IndexFiles(OsFiles(), segment.folder, 1)
    indexes, covered = again.load(FIRST_OFFSET, trusted)
    assert covered == trusted
    assert max(indexes.offsets.positions) < trusted
    for number in range(5, 7):
        indexes.note(FIRST_OFFSET + 10 * number, number * INDEX_INTERVAL_BYTES, 1)
    again.write(again.take(indexes, 7 * INDEX_INTERVAL_BYTES, FIRST_OFFSET + 70))
    found, covered = segment.load(7 * INDEX_INTERVAL_BYTES)
    assert covered == 7 * INDEX_INTERVAL_BYTES
    assert columns(found) == columns(indexes)


@settings(max_examples=150)
@given(st.lists(st.integers(0, 6), max_size=5), st.sampled_from([INDEX, TIMES]), st.data())
def test_a_damaged_file_is_good_up_to_the_damage(blocks: list[int], suffix: str, data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as folder:
        segment = Segment(Path(folder))
        for batches in blocks:
            segment.grow(batches)
            segment.write()
        if not blocks:
            return
        content = bytearray(segment.path(suffix).read_bytes())
        at = data.draw(st.integers(0, len(content) - 1))
        if data.draw(st.booleans()):
            content = content[:at]
        else:
            content[at] ^= data.draw(st.integers(1, 255))
        segment.path(suffix).write_bytes(content)
        indexes, covered = segment.load()
        assert covered <= segment.position
        kept = sum(1 for position in segment.indexes.offsets.positions if position < covered)
        assert columns(indexes) == [column[:kept] for column in columns(segment.indexes)]


def test_a_missing_file_takes_the_other_with_it(segment: Segment) -> None:
    segment.grow(8)
    segment.write()
    segment.path(TIMES).unlink()
    indexes, covered = segment.load()
    assert covered == 0
    assert columns(indexes) == [[], [], [], []]
