"""Walking over a log's headers, on logs of any batches and on what is none."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.segment_stores import batch

from walrusmq.protocol.errors import KafkaStorageError
from walrusmq.protocol.records.header import HEADER_BYTES, place_batch
from walrusmq.segments.files import OsFiles
from walrusmq.segments.log_walk import batch_size, find_batch, last_boundary

files = OsFiles()
shapes = st.lists(st.tuples(st.integers(1, 4), st.sampled_from([0, 10, 900, 5000])), min_size=1, max_size=15)


def write_log(path: Path, shape: list[tuple[int, int]]) -> tuple[int, list[tuple[int, int, int]], int]:
    """Its descriptor; (base offset, position, size) of each batch; its end."""
    content = b""
    batches = []
    offset = 0
    for entries, length in shape:
        raw = batch(*(b"x" * length for _ in range(entries)))
        place_batch(memoryview(raw), offset, 0)
        batches.append((offset, len(content), len(raw)))
        content += raw
        offset += entries
    path.write_bytes(content)
    return files.open(str(path)), batches, len(content)


@settings(max_examples=50, deadline=None)
@given(shapes, st.data())
def test_the_batch_with_an_offset_is_found_from_any_batch_before(
    tmp_path_factory: pytest.TempPathFactory, shape: list[tuple[int, int]], data: st.DataObject
) -> None:
    fd, batches, end = write_log(tmp_path_factory.mktemp("walk") / "log", shape)
    for (base_offset, position, size), (entries, _) in zip(batches, shape, strict=True):
        _, start, _ = data.draw(st.sampled_from([one for one in batches if one[1] <= position]))
        for offset in range(base_offset, base_offset + entries):
            assert find_batch(files, fd, start, end, offset) == (position, size)
        assert batch_size(files, fd, position) == size
    files.close(fd)


@settings(max_examples=50, deadline=None)
@given(shapes, st.data())
def test_the_last_boundary_is_that_of_the_last_batch_that_fits(
    tmp_path_factory: pytest.TempPathFactory, shape: list[tuple[int, int]], data: st.DataObject
) -> None:
    fd, batches, end = write_log(tmp_path_factory.mktemp("walk") / "log", shape)
    _, start, _ = data.draw(st.sampled_from(batches))
    limit = data.draw(st.integers(start, end))
    ends = [position + size for _, position, size in batches]
    expected = max([start, *(one for one in ends if start < one <= limit)])
    assert last_boundary(files, fd, start, limit) == expected
    files.close(fd)


def test_an_offset_behind_the_log_is_an_error(tmp_path: Path) -> None:
    fd, _, end = write_log(tmp_path / "log", [(2, 10)])
    with pytest.raises(KafkaStorageError, match="no batch with offset 2"):
        find_batch(files, fd, 0, end, 2)
    with pytest.raises(KafkaStorageError, match="no batch at position"):
        batch_size(files, fd, end)
    files.close(fd)


@given(st.binary(max_size=300))
def test_bytes_that_are_no_batches_end_in_an_error_or_an_answer(
    tmp_path_factory: pytest.TempPathFactory, content: bytes
) -> None:
    path = tmp_path_factory.mktemp("walk") / "log"
    path.write_bytes(content)
    fd = files.open(str(path))
    for attempt in (
        lambda: find_batch(files, fd, 0, len(content), 5),
        lambda: last_boundary(files, fd, 0, len(content)),
        lambda: batch_size(files, fd, 0),
    ):
        try:
            attempt()
        except KafkaStorageError:
            continue
    files.close(fd)
    assert HEADER_BYTES == 61
