"""A store of many partitions: starts, stops, restarts, what it costs and what it leaves."""

from __future__ import annotations

import asyncio
import logging
import os
import threading
import time
from pathlib import Path

import pytest
from support.crash_disk import CrashDisk
from support.segment_stores import (
    TOPIC_ID,
    Image,
    StillClock,
    a_partition,
    a_store,
    acknowledged,
    append,
    append_durably,
    in_loop,
    read_all,
    roll,
    values,
)

from walrusmq.protocol.records.batch import Producer
from walrusmq.segments.facts import OpenSegment
from walrusmq.segments.files import OsFiles
from walrusmq.segments.log_config import Durability, LogConfig
from walrusmq.segments.store import SegmentStore

NEVER = LogConfig(durability=Durability.NEVER)


class QuickFiles(OsFiles):
    """Real files without the waits, so that thousands can be written. Knows which are open, and counts reads."""

    def __init__(self) -> None:
        self.open_now: set[int] = set()
        self.most_open = 0
        self.reads = 0

    def open(self, path: str, /, *, create: bool = False) -> int:
        fd = super().open(path, create=create)
        self.open_now.add(fd)
        self.most_open = max(self.most_open, len(self.open_now))
        return fd

    def close(self, fd: int, /) -> None:  # type: ignore[override]
        self.open_now.remove(fd)
        OsFiles.close(fd)

    def pread(self, fd: int, size: int, position: int, /) -> bytes:  # type: ignore[override]
        self.reads += 1
        return OsFiles.pread(fd, size, position)

    def fdatasync(self, fd: int, /) -> None:  # type: ignore[override]
        assert fd in self.open_now

    def sync_folder(self, path: str, /) -> None:
        pass


@pytest.mark.parametrize("ending", ["stop", "kill", "power"])
@in_loop
async def test_twenty_starts_on_one_folder_find_the_same_each_time(tmp_path: Path, ending: str) -> None:
    disk = CrashDisk(tmp_path, seed=3)
    image = Image()
    expected: list[bytes] = []
    for life in range(20):
        store = a_store(tmp_path, disk)
        partition = a_partition(store, image)
        assert values(read_all(partition)) == expected
        assert (partition.log_end_offset, partition.high_watermark) == (len(expected), len(expected))
        if life:
            repeat = append(partition, expected[-1], producer=Producer(7, 0, len(expected) - 1))
            assert repeat.base_offset == len(expected) - 1
        for _ in range(life % 3):
            value = b"%d" % len(expected)
            await append_durably(partition, value, producer=Producer(7, 0, len(expected)))
            expected.append(value)
        if not expected:
            await append_durably(partition, b"0", producer=Producer(7, 0, 0))
            expected.append(b"0")
        if life % 4 == 3:
            await roll(partition, image)
        if ending != "stop":
            disk.power_off()
        await store.stop()
        if ending == "kill":
            disk.restart_process()
        elif ending == "power":
            disk.power_on()


@in_loop
async def test_after_a_clean_stop_a_start_reads_no_log(tmp_path: Path) -> None:
    files = QuickFiles()
    store = a_store(tmp_path, files)
    for index in range(50):
        append(a_partition(store, config=NEVER, index=index), "x" * 5000)
    await store.stop()
    assert not files.open_now
    files.reads = 0
    store = a_store(tmp_path, files)
    partitions = [a_partition(store, config=NEVER, index=index) for index in range(50)]
    assert files.reads == 1, "the marker"
    assert all(p.recovery is not None and p.recovery.was_clean and p.log_end_offset == 1 for p in partitions)
    assert not (tmp_path / "segments.clean").exists()
    for partition in partitions:
        assert len(read_all(partition)) == 1
        assert append(partition, "y").base_offset == 1
    await store.stop()


@in_loop
async def test_a_log_that_changed_after_a_clean_stop_is_scanned(tmp_path: Path) -> None:
    store = a_store(tmp_path)
    partition = a_partition(store)
    await append_durably(partition, "a")
    await append_durably(partition, "b")
    path, size = partition.log.file.path, partition.log.position
    await store.stop()
    os.truncate(path, size - 1)
    store = a_store(tmp_path)
    partition = a_partition(store)
    assert partition.recovery is not None
    assert not partition.recovery.was_clean
    assert values(read_all(partition)) == [b"a"]
    await store.stop()


@in_loop
async def test_a_partition_that_nobody_touched_stays_clean(tmp_path: Path) -> None:
    image = Image()
    store = a_store(tmp_path)
    partition = a_partition(store, image)
    await append_durably(partition, "a", producer=Producer(7, 0, 0))
    await roll(partition, image)
    await store.stop()
    for _ in range(3):
        store = a_store(tmp_path)
        partition = a_partition(store, image)
        assert partition.recovery is not None
        assert partition.recovery.was_clean
        await store.stop()
    store = a_store(tmp_path)
    partition = a_partition(store, image)
    assert append(partition, "a", producer=Producer(7, 0, 0)).base_offset == 0
    await store.stop()


@in_loop
async def test_a_hundred_starts_and_stops_leave_nothing_behind(tmp_path: Path) -> None:
    threads, descriptors = threading.active_count(), len(os.listdir("/dev/fd"))
    image = Image()
    for _ in range(100):
        store = a_store(tmp_path)
        partition = a_partition(store, image)
        await append_durably(partition, "x")
        read_all(partition)
        partition.stop()
        await partition.seal()
        await store.stop()
        assert threading.active_count() == threads
    assert len(os.listdir("/dev/fd")) == descriptors
    assert len(asyncio.all_tasks()) == 1


@in_loop
async def test_several_stores_live_in_one_process(tmp_path: Path) -> None:
    stores = []
    for number in range(4):
        folder = tmp_path / str(number)
        folder.mkdir()
        stores.append(a_store(folder))
    for number, store in enumerate(stores):
        await append_durably(a_partition(store), str(number))
    for number, store in enumerate(stores):
        partition = store.get(TOPIC_ID, 0)
        assert partition is not None
        assert values(read_all(partition)) == [b"%d" % number]
        await store.stop()


@in_loop
async def test_ten_thousand_partitions_live_with_64_handles(tmp_path: Path) -> None:
    files = QuickFiles()
    store = a_store(tmp_path, files, max_open_files=64)
    partitions = [a_partition(store, index=index) for index in range(10_000)]
    for _ in range(2):
        for partition in partitions:
            append(partition, "x")
        for partition in partitions:
            assert await acknowledged(partition, partition.log_end_offset) is None
    for partition in partitions[::37]:
        assert values(read_all(partition)) == [b"x", b"x"]
    assert files.most_open <= 64 + 2, "the pool's, and one each for the threads"
    await store.stop()
    assert not files.open_now
    store = a_store(tmp_path, files, max_open_files=64)
    partitions = [a_partition(store, index=index) for index in range(10_000)]
    assert all(partition.high_watermark == 2 for partition in partitions)
    await store.stop()


@in_loop
async def test_empty_partitions_cost_no_file_and_little_time(tmp_path: Path) -> None:
    store = a_store(tmp_path)
    started = time.process_time()
    for index in range(1000):
        a_partition(store, index=index)
    assert time.process_time() - started < 1
    assert len(store) == 1000
    await store.stop()
    assert os.listdir(tmp_path / "topics") == []


@in_loop
async def test_a_removed_topic_takes_its_folder_with_it(tmp_path: Path) -> None:
    store = a_store(tmp_path)
    for index in range(3):
        await append_durably(a_partition(store, index=index), "x")
    store.remove(TOPIC_ID, 1)
    store.remove(TOPIC_ID, 1)
    assert store.get(TOPIC_ID, 1) is None
    await store.stop()
    assert sorted(os.listdir(tmp_path / "topics")) == [f"{TOPIC_ID.hex()}-0", f"{TOPIC_ID.hex()}-2"]


@in_loop
async def test_a_topic_can_be_removed_while_a_sync_of_it_is_under_way(tmp_path: Path) -> None:
    disk = CrashDisk(tmp_path)
    store = a_store(tmp_path, disk)
    partition = a_partition(store)
    with disk.held("fdatasync"):
        append(partition, "x")
        await asyncio.sleep(0.01)
        store.remove(TOPIC_ID, 0)
    other = a_partition(store, index=1)
    await append_durably(other, "y")
    await store.stop()
    assert os.listdir(tmp_path / "topics") == [f"{TOPIC_ID.hex()}-1"]


@in_loop
async def test_folders_of_topics_that_are_unknown_go_at_the_start(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store = a_store(tmp_path)
    for index in range(2):
        await append_durably(a_partition(store, index=index), "x")
    await store.stop()
    (tmp_path / "topics" / "somebody's").mkdir()
    store = a_store(tmp_path)
    a_partition(store, index=1)
    with caplog.at_level(logging.INFO, logger="walrusmq.segments"):
        store.remove_strays({(TOPIC_ID, 1)})
    assert f"{TOPIC_ID.hex()}-0: its topic was deleted" in caplog.text
    await store.stop()
    assert sorted(os.listdir(tmp_path / "topics")) == [f"{TOPIC_ID.hex()}-1", "somebody's"]


@in_loop
async def test_the_topics_name_stands_in_its_folder(tmp_path: Path) -> None:
    store = a_store(tmp_path)
    await append_durably(a_partition(store), "x")
    await store.stop()
    assert (tmp_path / "topics" / f"{TOPIC_ID.hex()}-0" / "topic").read_text() == "t"


@in_loop
async def test_a_kill_right_after_a_start_loses_nothing(tmp_path: Path) -> None:
    """The clean marker is gone, and nothing was written since."""
    disk = CrashDisk(tmp_path)
    store = a_store(tmp_path, disk)
    await append_durably(a_partition(store), "a")
    await store.stop()
    for _ in range(2):
        store = a_store(tmp_path, disk)
        a_partition(store)
        disk.power_off()
        await store.stop()
        disk.power_on()
    store = a_store(tmp_path, disk)
    assert values(read_all(a_partition(store))) == [b"a"]
    await store.stop()


@in_loop
async def test_a_stop_waits_for_syncs_and_answers_everybody(tmp_path: Path) -> None:
    store = a_store(tmp_path)
    partition = a_partition(store)
    answers: list[object] = []
    for _ in range(3):
        partition.when_acknowledged(append(partition, "x").end_offset, answers.append)
    await store.stop()
    assert answers == [None, None, None]


@in_loop
async def test_a_marker_that_says_something_else_is_not_believed(tmp_path: Path) -> None:
    store = a_store(tmp_path)
    image = Image()
    partition = a_partition(store, image)
    await append_durably(partition, "a")
    await store.stop()
    image.open = OpenSegment(2, 1, 0, 1, (1,))
    store = SegmentStore(str(tmp_path), OsFiles(), StillClock())
    store.start()
    partition = a_partition(store, image)
    assert partition.recovery is not None
    assert not partition.recovery.was_clean
    assert partition.log_end_offset == 1
    await store.stop()
