"""When an append counts as safe, under each way to sync."""

from __future__ import annotations

import asyncio
from pathlib import Path

from support.crash_disk import CrashDisk
from support.segment_stores import (
    Image,
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

from walrusmq.segments.log_config import Durability, LogConfig

INTERVAL = LogConfig(durability=Durability.INTERVAL)
NEVER = LogConfig(durability=Durability.NEVER)


async def a_few_turns() -> None:
    """Let the loop and the threads go on, as far as they can."""
    for _ in range(20):
        await asyncio.sleep(0.001)


@in_loop
async def test_while_syncs_are_held_back_nothing_is_acknowledged_or_seen(tmp_path: Path) -> None:
    disk = CrashDisk(tmp_path)
    store = a_store(tmp_path, disk)
    partition = a_partition(store)
    answers: list[object] = []
    woken: list[int] = []
    partition.watch(lambda: woken.append(partition.high_watermark))
    with disk.held("fdatasync"):
        for _ in range(3):
            appended = append(partition, "a", "b")
            assert not appended.acknowledged
            partition.when_acknowledged(appended.end_offset, answers.append)
            await a_few_turns()
        assert answers == []
        assert woken == []
        assert partition.high_watermark == 0
        assert partition.read(0, 1000, True) is None
    assert await acknowledged(partition, 6) is None
    assert answers == [None, None, None]
    assert partition.high_watermark == woken[-1] == 6
    await store.stop()


@in_loop
async def test_names_of_new_files_are_synced_before_the_first_acknowledgement(tmp_path: Path) -> None:
    disk = CrashDisk(tmp_path)
    store = a_store(tmp_path, disk)
    partition = a_partition(store)
    answers: list[object] = []
    with disk.held("sync_folder"):
        partition.when_acknowledged(append(partition, "a").end_offset, answers.append)
        await a_few_turns()
        assert answers == []
    assert await acknowledged(partition, 1) is None
    first = disk.calls.count("sync_folder")
    await append_durably(partition, "b")
    assert disk.calls.count("sync_folder") == first, "only once"
    await store.stop()


@in_loop
async def test_one_sync_serves_all_that_has_gathered(tmp_path: Path) -> None:
    disk = CrashDisk(tmp_path)
    store = a_store(tmp_path, disk)
    partition = a_partition(store)
    await append_durably(partition, "first")
    before = store.fsyncs
    order: list[int] = []
    for number in range(100):
        end_offset = append(partition, "x").end_offset
        partition.when_acknowledged(end_offset, lambda error, number=number: order.append(number))  # type: ignore[misc]
    await acknowledged(partition, partition.log_end_offset)
    assert order == list(range(100)), "in the order of the appends"
    assert store.fsyncs == before + 1
    await store.stop()


@in_loop
async def test_what_comes_during_a_sync_waits_for_the_next(tmp_path: Path) -> None:
    disk = CrashDisk(tmp_path)
    store = a_store(tmp_path, disk)
    partition = a_partition(store)
    marks: list[int] = []
    partition.watch(lambda: marks.append(partition.high_watermark))
    with disk.held("fdatasync"):
        append(partition, "a")
        await a_few_turns()
        append(partition, "b")
        syncs = store.fsyncs
    await acknowledged(partition, 1)
    await acknowledged(partition, 2)
    assert store.fsyncs == syncs + 2
    assert marks == [1, 2]
    await store.stop()


@in_loop
async def test_without_a_sync_per_batch_appends_are_acknowledged_and_seen_at_once(tmp_path: Path) -> None:
    disk = CrashDisk(tmp_path)
    store = a_store(tmp_path, disk)
    for index, config in enumerate([INTERVAL, NEVER]):
        partition = a_partition(store, config=config, index=index)
        assert append(partition, "a").acknowledged
        assert partition.high_watermark == 1
        assert values(read_all(partition)) == [b"a"]
    assert "fdatasync" not in disk.calls
    await store.stop()


@in_loop
async def test_with_interval_files_are_synced_within_it(tmp_path: Path) -> None:
    disk = CrashDisk(tmp_path)
    store = a_store(tmp_path, disk, fsync_interval_ms=5)
    partitions = [a_partition(store, config=INTERVAL, index=index) for index in range(5)]
    for _ in range(2):
        for partition in partitions:
            append(partition, "a")
        for partition in partitions:
            assert await acknowledged(partition, partition.log_end_offset) is None
    assert 5 <= store.fsyncs <= 10
    await store.stop()


@in_loop
async def test_with_never_only_a_stop_syncs(tmp_path: Path) -> None:
    disk = CrashDisk(tmp_path)
    store = a_store(tmp_path, disk, fsync_interval_ms=1)
    partition = a_partition(store, config=NEVER)
    append(partition, "a")
    await a_few_turns()
    assert store.fsyncs == 0
    await store.stop()
    assert store.fsyncs == 1


@in_loop
async def test_flush_messages_of_one_means_a_sync_per_batch(tmp_path: Path) -> None:
    store = a_store(tmp_path)
    partition = a_partition(store, config=LogConfig(durability=Durability.NEVER, flush_messages=1))
    assert not append(partition, "a").acknowledged
    assert partition.high_watermark == 0
    assert await acknowledged(partition, 1) is None
    assert partition.high_watermark == 1
    await store.stop()


@in_loop
async def test_flush_messages_syncs_with_the_append_that_reaches_it(tmp_path: Path) -> None:
    store = a_store(tmp_path)
    partition = a_partition(store, config=LogConfig(durability=Durability.NEVER, flush_messages=3))
    assert [append(partition, "x").acknowledged for _ in range(7)] == [True, True, False, True, True, False, True]
    assert partition.high_watermark == 7
    assert await acknowledged(partition, 6) is None
    assert store.fsyncs == 1, "one sync for both"
    assert append(partition, *"xyz").acknowledged is False
    await store.stop()


@in_loop
async def test_flush_ms_syncs_when_the_oldest_entry_is_so_old(tmp_path: Path) -> None:
    store = a_store(tmp_path)
    partition = a_partition(store, config=LogConfig(durability=Durability.NEVER, flush_ms=5))
    for _ in range(2):
        assert append(partition, "x").acknowledged
        assert await acknowledged(partition, partition.log_end_offset) is None
    assert store.fsyncs == 2
    await store.stop()


@in_loop
async def test_a_segment_is_sealed_only_when_it_is_synced(tmp_path: Path) -> None:
    disk = CrashDisk(tmp_path)
    store = a_store(tmp_path, disk)
    partition = a_partition(store, config=INTERVAL)
    append(partition, "a")
    partition.stop()
    with disk.held("fdatasync"):
        sealing = asyncio.ensure_future(partition.seal())
        await a_few_turns()
        assert not sealing.done()
    assert (await sealing).end_offset == 1
    await store.stop()


@in_loop
async def test_the_way_to_sync_can_be_changed_while_the_partition_is_in_use(tmp_path: Path) -> None:
    store = a_store(tmp_path)
    partition = a_partition(store, config=NEVER)
    append(partition, "a")
    partition.config = LogConfig()
    assert partition.high_watermark == 1, "it never goes back"
    assert not append(partition, "b").acknowledged
    assert partition.high_watermark == 1
    assert await acknowledged(partition, 2) is None
    append(partition, "c")
    partition.config = NEVER
    assert append(partition, "d").acknowledged
    assert partition.high_watermark == 4
    await store.stop()


@in_loop
async def test_other_partitions_are_read_while_one_is_stuck_in_a_sync(tmp_path: Path) -> None:
    disk = CrashDisk(tmp_path)
    store = a_store(tmp_path, disk)
    image = Image()
    stuck, other = a_partition(store), a_partition(store, image, NEVER, index=1)
    append(other, "a")
    append(stuck, "b")
    with disk.held("fdatasync"):
        await a_few_turns()
        assert values(read_all(other)) == [b"a"]
        append(other, "c")
        assert values(read_all(other)) == [b"a", b"c"]
    await store.stop()


@in_loop
async def test_sealed_segments_are_synced_in_the_end_even_with_never(tmp_path: Path) -> None:
    disk = CrashDisk(tmp_path)
    store = a_store(tmp_path, disk)
    image = Image()
    partition = a_partition(store, image, NEVER)
    append(partition, "a")
    await roll(partition, image)
    append(partition, "b")
    await store.stop()
    disk.power_off()
    disk.power_on()
    store = a_store(tmp_path, disk)
    assert values(read_all(a_partition(store, image, NEVER))) == [b"a", b"b"]
    await store.stop()
