"""Disks that are full, refuse or lose: nothing is acknowledged that isn't there, reads go on, writes resume."""

from __future__ import annotations

import errno
import logging
from pathlib import Path

import pytest
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

from walrusmq.protocol.errors import KafkaStorageError, NotEnoughReplicasAfterAppend
from walrusmq.protocol.records.batch import Producer
from walrusmq.segments import index_files
from walrusmq.segments import partition as partition_module
from walrusmq.segments.log_config import Durability, LogConfig
from walrusmq.segments.partition import Partition, SegmentStopped

NEVER = LogConfig(durability=Durability.NEVER)


@pytest.mark.parametrize("room", [0, 1, 60, 61, 70])
@in_loop
async def test_a_full_disk_refuses_and_resumes_by_itself(tmp_path: Path, room: int) -> None:
    disk = CrashDisk(tmp_path)
    store = a_store(tmp_path, disk)
    partition = a_partition(store)
    await append_durably(partition, "a", producer=Producer(7, 0, 0))
    disk.room = room
    for _ in range(3):
        with pytest.raises(KafkaStorageError, match=r"t-0 couldn't be written.*No space left"):
            append(partition, "b" * 100, producer=Producer(7, 0, 1))
    assert store.write_failures() == ["t-0 can't be written: [Errno 28] No space left on device"]
    assert store.counters.failed_writes == 3
    assert partition.log_end_offset == 1
    assert values(read_all(partition)) == [b"a"]
    disk.room = None
    assert (await append_durably(partition, "c", producer=Producer(7, 0, 1))).base_offset == 1
    assert store.write_failures() == []
    assert values(read_all(partition)) == [b"a", b"c"]
    size = partition.log.position
    assert disk.size_of(partition.log.file.path) == size, "nothing is left of what didn't fit"
    await store.stop()


@in_loop
async def test_a_disk_with_room_again_counts_as_writable_before_anybody_writes(tmp_path: Path) -> None:
    disk = CrashDisk(tmp_path)
    store = a_store(tmp_path, disk)
    partition = a_partition(store)
    disk.room = 0
    with pytest.raises(KafkaStorageError):
        append(partition, "a")
    assert len(store.write_failures()) == 1
    disk.room = 1 << 30
    assert store.write_failures() == []
    await store.stop()


@pytest.mark.parametrize("call", ["mkdir", "open", "pwrite"])
@in_loop
async def test_a_first_append_that_fails_on_the_way_can_be_made_again(tmp_path: Path, call: str) -> None:
    disk = CrashDisk(tmp_path)
    store = a_store(tmp_path, disk)
    partition = a_partition(store)
    for _ in range(3):
        disk.fail(call, errno.EIO)
        with pytest.raises(KafkaStorageError):
            append(partition, "a")
    await append_durably(partition, "a")
    disk.power_off()
    await store.stop()
    disk.power_on()
    store = a_store(tmp_path, disk)
    assert values(read_all(a_partition(store))) == [b"a"]
    await store.stop()


@in_loop
async def test_a_batch_that_was_refused_is_not_there_after_a_kill(tmp_path: Path) -> None:
    """A write that fails though all of it has arrived: producers were told that nothing was written."""
    disk = CrashDisk(tmp_path)
    store = a_store(tmp_path, disk)
    partition = a_partition(store)
    await append_durably(partition, "a")
    disk.chance.randint = lambda least, most: most  # type: ignore[method-assign]
    disk.fail("pwrite", errno.EIO)
    with pytest.raises(KafkaStorageError):
        append(partition, "b")
    disk.power_off()
    await store.stop()
    disk.restart_process()
    store = a_store(tmp_path, disk)
    assert values(read_all(a_partition(store))) == [b"a"]
    await store.stop()


@in_loop
async def test_leftovers_that_cannot_be_cut_keep_the_partition_refusing(tmp_path: Path) -> None:
    disk = CrashDisk(tmp_path)
    store = a_store(tmp_path, disk)
    partition = a_partition(store)
    await append_durably(partition, "a")
    disk.fail("pwrite", errno.EIO)
    disk.fail("ftruncate", errno.EIO, times=3)
    writes = disk.calls.count("pwrite")
    for _ in range(3):
        with pytest.raises(KafkaStorageError):
            append(partition, "b")
    assert disk.calls.count("pwrite") == writes + 1
    assert (await append_durably(partition, "b")).base_offset == 1
    await store.stop()


@in_loop
async def test_reading_errors_are_told_and_pass(tmp_path: Path) -> None:
    disk = CrashDisk(tmp_path)
    store = a_store(tmp_path, disk)
    partition = a_partition(store, config=NEVER)
    append(partition, "a", "b")
    append(partition, "c")
    disk.fail("pread", errno.EIO)
    with pytest.raises(KafkaStorageError, match="can't be read at offset 2"):
        partition.read(2, 1000, True)
    disk.fail("pread", errno.EIO)
    with pytest.raises(KafkaStorageError):
        partition.max_timestamp()
    assert values(read_all(partition)) == [b"a", b"b", b"c"]
    await store.stop()


async def break_a_sync(disk: CrashDisk, partition: Partition) -> list[tuple[Partition, str]]:
    """Two batches on disk, then two whose sync fails. Returns whom the partition has told."""
    told: list[tuple[Partition, str]] = []
    partition.on_full = lambda *said: told.append(said)
    await append_durably(partition, "a", timestamps=[5], producer=Producer(7, 0, 0))
    await append_durably(partition, "b", timestamps=[6], producer=Producer(7, 0, 1))
    disk.fail("fdatasync", errno.EIO)
    append(partition, "c", timestamps=[99], producer=Producer(7, 0, 2))
    appended = append(partition, "d", timestamps=[98], producer=Producer(8, 0, 0))
    assert isinstance(await acknowledged(partition, appended.end_offset), NotEnoughReplicasAfterAppend)
    return told


@in_loop
async def test_a_failed_sync_ends_the_segment_where_the_last_one_succeeded(tmp_path: Path) -> None:
    disk = CrashDisk(tmp_path)
    store = a_store(tmp_path, disk)
    image = Image()
    partition = a_partition(store, image)
    told = await break_a_sync(disk, partition)
    assert told == [(partition, "recovery")]
    assert not partition.is_open
    assert (partition.log_end_offset, partition.high_watermark) == (2, 2)
    with pytest.raises(SegmentStopped):
        append(partition, "e")
    syncs = disk.calls.count("fdatasync")
    sealed = await roll(partition, image, leader_epoch=1)
    assert (sealed.end_offset, sealed.max_timestamp, sealed.max_timestamp_offset) == (2, 6, 1)
    assert disk.calls.count("fdatasync") == syncs + 1, "the producers' file; the log is never synced again"
    assert values(read_all(partition)) == [b"a", b"b"]
    repeat = append(partition, "b", producer=Producer(7, 0, 1))
    assert repeat.base_offset == 1
    for producer in (Producer(7, 0, 2), Producer(8, 0, 0)):
        assert append(partition, "again", producer=producer).base_offset >= 2, "what was lost is no duplicate"
    await acknowledged(partition, 4)
    assert values(read_all(partition)) == [b"a", b"b", b"again", b"again"]
    await store.stop()


@in_loop
async def test_after_a_failed_sync_and_a_crash_what_was_acknowledged_is_there(tmp_path: Path) -> None:
    disk = CrashDisk(tmp_path)
    store = a_store(tmp_path, disk)
    await break_a_sync(disk, a_partition(store))
    disk.power_off()
    await store.stop()
    disk.power_on()
    store = a_store(tmp_path, disk)
    partition = a_partition(store)
    assert values(read_all(partition))[:2] == [b"a", b"b"]
    await store.stop()


@in_loop
async def test_a_clean_stop_after_a_failed_sync_is_not_taken_for_clean(tmp_path: Path) -> None:
    disk = CrashDisk(tmp_path)
    store = a_store(tmp_path, disk)
    await break_a_sync(disk, a_partition(store))
    await store.stop()
    store = a_store(tmp_path, disk)
    partition = a_partition(store)
    assert partition.recovery is not None
    assert not partition.recovery.was_clean
    await store.stop()


@in_loop
async def test_under_interval_a_failed_sync_takes_back_what_was_seen(tmp_path: Path) -> None:
    disk = CrashDisk(tmp_path)
    store = a_store(tmp_path, disk, fsync_interval_ms=1)
    partition = a_partition(store, config=LogConfig(durability=Durability.INTERVAL))
    append(partition, "a")
    assert await acknowledged(partition, 1) is None
    disk.fail("fdatasync", errno.EIO)
    append(partition, "b")
    assert partition.high_watermark == 2
    assert isinstance(await acknowledged(partition, 2), NotEnoughReplicasAfterAppend)
    assert partition.high_watermark == partition.log_end_offset == 1
    assert values(read_all(partition)) == [b"a"]
    await store.stop()


@in_loop
async def test_a_sync_that_fails_during_a_seal_seals_the_last_synced_end(tmp_path: Path) -> None:
    disk = CrashDisk(tmp_path)
    store = a_store(tmp_path, disk)
    image = Image()
    partition = a_partition(store, image)
    await append_durably(partition, "a")
    disk.fail("fdatasync", errno.EIO)
    append(partition, "b")
    assert (await roll(partition, image)).end_offset == 1
    assert values(read_all(partition)) == [b"a"]
    await store.stop()


@pytest.mark.parametrize(
    ("call", "path"), [("pwrite", ".index"), ("pwrite", ".producers"), ("replace", ""), ("open", ".index")]
)
@in_loop
async def test_a_segment_is_sealed_though_what_belongs_to_it_cannot_be_written(
    tmp_path: Path, call: str, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index_files, "SMALL_REST_BYTES", 0)
    disk = CrashDisk(tmp_path)
    store = a_store(tmp_path, disk)
    image = Image()
    partition = a_partition(store, image)
    await append_durably(partition, "a", producer=Producer(7, 0, 0))
    disk.fail(call, errno.ENOSPC, path=path)
    assert (await roll(partition, image)).end_offset == 1
    await append_durably(partition, "b", producer=Producer(7, 0, 1))
    assert [facts.id for facts in partition.move_log_start(1)] == [1]
    image.move_log_start(1)
    disk.power_off()
    await store.stop()
    disk.restart_process()
    store = a_store(tmp_path, disk)
    partition = a_partition(store, image)
    assert append(partition, "b", producer=Producer(7, 0, 1)).base_offset == 1, "the producer is remembered"
    await store.stop()


@in_loop
async def test_a_slow_write_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partition_module, "SLOW_WRITE_S", -1.0)
    store = a_store(tmp_path)
    append(a_partition(store), "a")
    assert store.counters.slow_writes == 1
    await store.stop()


@in_loop
async def test_the_log_says_once_that_a_partition_is_refused(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    disk = CrashDisk(tmp_path)
    store = a_store(tmp_path, disk)
    partition = a_partition(store)
    disk.room = 0
    with caplog.at_level(logging.ERROR, logger="walrusmq.segments"):
        for _ in range(5):
            with pytest.raises(KafkaStorageError):
                append(partition, "a")
    assert len(caplog.messages) == 1
    disk.room = None
    await store.stop()
