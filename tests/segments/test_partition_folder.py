"""The folder of a partition: its name and its files' names."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.segment_stores import TOPIC_ID

from walrusmq.segments.files import OsFiles
from walrusmq.segments.partition_folder import (
    INDEX,
    LOG,
    PRODUCERS,
    TIMES,
    PartitionFolder,
    folder_name,
    parse_folder_name,
)


@given(st.binary(min_size=16, max_size=16), st.integers(0, 2**31 - 1))
def test_a_folders_name_says_whose_it_is(topic_id: bytes, index: int) -> None:
    assert parse_folder_name(folder_name(topic_id, index)) == (topic_id, index)


@pytest.mark.parametrize(
    "name", ["", "topic", "-1", "abcd-0", f"{bytes(16).hex()}", f"{bytes(16).hex()}-", f"{bytes(16).hex()}-01"]
)
def test_other_names_are_not_ours(name: str) -> None:
    assert parse_folder_name(name) is None


@given(st.text(max_size=40))
def test_no_name_is_an_error(name: str) -> None:
    key = parse_folder_name(name)
    assert key is None or folder_name(*key) == name


def test_segments_files_go_together_and_missing_ones_are_no_matter(tmp_path: Path) -> None:
    folder = PartitionFolder(OsFiles(), str(tmp_path), "t", TOPIC_ID, 0)
    assert not folder.is_made
    assert folder.create() == (folder.path, str(tmp_path)), "both have new names in them"
    assert folder.is_made
    for segment_id in (1, 2):
        for suffix in (LOG, PRODUCERS):
            Path(folder.file(segment_id, suffix)).touch()
        Path(folder.file(segment_id, LOG, generation=2)).touch()
    folder.remove_segments([(1, 2), (7, 0)])
    left = sorted(path.name for path in Path(folder.path).iterdir())
    assert left == ["0000000001.log", "0000000002-2.log", "0000000002.log", "0000000002.producers", "topic"]
    folder.is_durable = True
    assert folder.create() == (folder.path,)


def test_of_a_sealed_segment_only_the_generation_that_counts_is_left(tmp_path: Path) -> None:
    folder = PartitionFolder(OsFiles(), str(tmp_path), "t", TOPIC_ID, 0)
    folder.create()
    for generation in (0, 1, 2, 3):
        for suffix in (LOG, INDEX, TIMES):
            Path(folder.file(1, suffix, generation)).touch()
            Path(folder.file(2, suffix, generation)).touch()
    for segment_id in (1, 2):
        Path(folder.file(segment_id, PRODUCERS)).touch()
    Path(folder.path, "cleaned").touch()
    folder.remove_leftovers({1: 2}, 2)
    left = sorted(path.name for path in Path(folder.path).iterdir())
    assert left == [
        "0000000001-2.index", "0000000001-2.log", "0000000001-2.times", "0000000001.producers",
        "0000000002.index", "0000000002.log", "0000000002.producers", "0000000002.times", "cleaned", "topic",
    ]  # fmt: skip
