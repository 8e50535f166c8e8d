"""Sealed segments whose files aren't what their facts say."""

from __future__ import annotations

import asyncio
import logging
import os
from pathlib import Path

import pytest
from support.segment_stores import (
    Image,
    a_partition,
    a_store,
    append,
    in_loop,
    read_all,
    read_batches,
    roll,
    values,
)

from walrusmq.segments import index_files, sealed_log
from walrusmq.segments.log_config import Durability, LogConfig
from walrusmq.segments.sealed_log import IndexBeingRebuilt

NEVER = LogConfig(durability=Durability.NEVER)
VALUES = [[b"%d.%d" % (segment, number) * 900 for number in range(4)] for segment in range(3)]


@pytest.fixture(autouse=True)
def index_files_for_small_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index_files, "SMALL_REST_BYTES", 0)


async def a_chain(folder: Path) -> tuple[Image, list[Path]]:
    """Three sealed segments of four batches of one entry each, after a clean stop; and their logs."""
    image = Image()
    store = a_store(folder)
    partition = a_partition(store, image)
    paths = []
    for one in VALUES:
        paths.append(Path(partition.log.file.path))
        for value in one:
            append(partition, value)
        await roll(partition, image)
    await store.stop()
    return image, paths


@in_loop
async def test_a_file_longer_than_its_facts_is_cut_to_them(tmp_path: Path) -> None:
    image, paths = await a_chain(tmp_path)
    with paths[1].open("ab") as file:
        file.write(b"never sealed")
    store = a_store(tmp_path)
    assert values(read_all(a_partition(store, image))) == VALUES[0] + VALUES[1] + VALUES[2]
    assert store.files.size_of(str(paths[1])) == image.sealed[1].size_bytes
    await store.stop()


@pytest.mark.parametrize("lost", ["all", "a file", "some bytes", "all but some bytes"])
@in_loop
async def test_reads_go_on_behind_what_is_missing(tmp_path: Path, lost: str, caplog: pytest.LogCaptureFixture) -> None:
    image, paths = await a_chain(tmp_path)
    size = image.sealed[1].size_bytes
    if lost == "a file":
        paths[1].unlink()
    else:
        os.truncate(paths[1], {"all": 0, "some bytes": size - 10, "all but some bytes": 10}[lost])
    kept = VALUES[1][:3] if lost == "some bytes" else []
    store = a_store(tmp_path)
    partition = a_partition(store, image)
    with caplog.at_level(logging.ERROR, logger="walrusmq.segments"):
        assert values(read_all(partition)) == VALUES[0] + kept + VALUES[2]
    assert "0000000002.log is damaged" in caplog.text
    assert read_batches(partition, 7)[0].header.base_offset == 8, "an offset in the gap leads to what comes next"
    await store.stop()


@in_loop
async def test_reads_go_on_behind_the_last_sealed_segment(tmp_path: Path) -> None:
    image, paths = await a_chain(tmp_path)
    paths[2].unlink()
    store = a_store(tmp_path)
    partition = a_partition(store, image, NEVER)
    assert partition.read(9, 1000, True) is None
    append(partition, "open")
    assert [batch.header.base_offset for batch in read_batches(partition, 9)] == [12]
    await store.stop()


@pytest.mark.parametrize("suffix", ["index", "times"])
@pytest.mark.parametrize("damage", ["removed", "cut", "scrambled"])
@in_loop
async def test_an_index_that_was_lost_is_made_again(tmp_path: Path, suffix: str, damage: str) -> None:
    image, paths = await a_chain(tmp_path)
    path = paths[1].with_suffix(f".{suffix}")
    good = path.read_bytes()
    if damage == "removed":
        path.unlink()
    elif damage == "cut":
        os.truncate(path, len(good) - 1)
    else:
        path.write_bytes(bytes(len(good)))
    store = a_store(tmp_path)
    partition = a_partition(store, image)
    assert [record.offset for record in read_all(partition, 100)] == list(range(12))
    assert path.read_bytes() == good, "and written again"
    await store.stop()


@in_loop
async def test_a_large_index_is_made_again_in_the_background(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    image, paths = await a_chain(tmp_path)
    paths[1].with_suffix(".index").unlink()
    monkeypatch.setattr(sealed_log, "INLINE_REBUILD_BYTES", 100)
    store = a_store(tmp_path)
    partition = a_partition(store, image)
    assert partition.read(5, 1000, True) is None
    with pytest.raises(IndexBeingRebuilt):
        partition.chain.log(1).indexes()
    await store.background.run(lambda: None)
    await asyncio.sleep(0)
    assert [record.offset for record in read_all(partition)] == list(range(12))
    await store.stop()


@in_loop
async def test_indexes_of_segments_that_are_not_read_leave_memory(tmp_path: Path) -> None:
    image, _ = await a_chain(tmp_path)
    store = a_store(tmp_path)
    store.index_cache._max_bytes = 2500
    partition = a_partition(store, image)
    for _ in range(2):
        assert len(read_all(partition)) == 12
        assert len(store.index_cache) == 2
    partition.move_log_start(12)
    assert store.index_cache.size_bytes == len(store.index_cache) == 0
    await store.stop()


@in_loop
async def test_after_an_unclean_stop_with_never_sealed_logs_are_verified_before_they_are_served(tmp_path: Path) -> None:
    image, paths = await a_chain(tmp_path)
    (tmp_path / "segments.clean").unlink()
    content = bytearray(paths[1].read_bytes())
    content[-2000:] = bytes(2000)
    paths[1].write_bytes(content)
    store = a_store(tmp_path)
    partition = a_partition(store, image, NEVER)
    assert values(read_all(partition)) == VALUES[0] + VALUES[1][:3] + VALUES[2]
    await store.stop()
