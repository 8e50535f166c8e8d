"""Checkpoints and the clean marker: what they say comes back, or nothing does."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from support.segment_stores import TOPIC_ID

from walrusmq.segments.checkpoint import (
    MARKER_FILE,
    TrustedPoint,
    leave_marker,
    read_checkpoint,
    take_marker,
    write_checkpoint,
)
from walrusmq.segments.files import OsFiles
from walrusmq.segments.partition_folder import CHECKPOINT, PartitionFolder

files = OsFiles()
points = st.builds(
    TrustedPoint,
    segment_id=st.integers(1, 2**64 - 1),
    first_offset=st.integers(0, 2**63 - 1),
    end_offset=st.integers(0, 2**63 - 1),
    position=st.integers(0, 2**64 - 1),
    max_timestamp=st.integers(-1, 2**63 - 1),
    started_ms=st.integers(-1, 2**63 - 1),
    producers=st.binary(max_size=50),
)
keys = st.tuples(st.binary(min_size=16, max_size=16), st.integers(0, 2**32 - 1))
POINT = TrustedPoint(3, 100, 120, 4096, 7, 5, b"producers")


def a_folder(parent: Path) -> PartitionFolder:
    folder = PartitionFolder(files, str(parent), "t", TOPIC_ID, 0)
    Path(folder.path).mkdir()
    return folder


def test_a_checkpoint_comes_back(tmp_path: Path) -> None:
    folder = a_folder(tmp_path)
    assert read_checkpoint(files, folder, 3, 100) is None
    write_checkpoint(files, folder, POINT)
    assert read_checkpoint(files, folder, 3, 100) == POINT


def test_a_checkpoint_of_another_segment_is_not_taken(tmp_path: Path) -> None:
    folder = a_folder(tmp_path)
    write_checkpoint(files, folder, POINT)
    assert read_checkpoint(files, folder, 3, 101) is None
    assert read_checkpoint(files, folder, 4, 100) is None


def test_a_checkpoint_that_was_damaged_is_not_taken(tmp_path: Path) -> None:
    folder = a_folder(tmp_path)
    write_checkpoint(files, folder, POINT)
    path = Path(folder.file(3, CHECKPOINT))
    whole = path.read_bytes()
    for size in range(len(whole)):
        path.write_bytes(whole[:size])
        assert read_checkpoint(files, folder, 3, 100) is None


@given(st.dictionaries(keys, points, max_size=5))
def test_a_marker_comes_back_once(tmp_path_factory, found: dict[tuple[bytes, int], TrustedPoint]) -> None:  # type: ignore[no-untyped-def]
    folder = tmp_path_factory.mktemp("data")
    leave_marker(files, str(folder), found)
    assert take_marker(files, str(folder)) == found
    assert not (folder / MARKER_FILE).exists()
    assert take_marker(files, str(folder)) == {}


def test_a_marker_that_was_damaged_is_taken_away_and_not_believed(tmp_path: Path) -> None:
    leave_marker(files, str(tmp_path), {(TOPIC_ID, 0): POINT})
    path = tmp_path / MARKER_FILE
    whole = path.read_bytes()
    for size in range(len(whole)):
        path.write_bytes(whole[:size])
        assert take_marker(files, str(tmp_path)) == {}
        assert not path.exists()
