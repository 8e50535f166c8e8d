"""Appends off the event loop while the disk is slow."""

from __future__ import annotations

import asyncio
import errno
import logging
from pathlib import Path

import pytest
from support.crash_disk import CrashDisk
from support.segment_stores import (
    NOW_MS,
    Image,
    a_partition,
    a_store,
    acknowledged,
    append,
    append_durably,
    batch,
    in_loop,
    read_all,
    roll,
    values,
)

from walrusmq.protocol.errors import KafkaError, KafkaStorageError, NotLeaderOrFollower, UnknownTopicOrPartition
from walrusmq.protocol.records.batch import Producer
from walrusmq.segments import aside as aside_module
from walrusmq.segments.log_config import LogConfig, TimestampType
from walrusmq.segments.partition import Appended, Partition, SegmentStopped

PATIENCE_S = 30


def send(partition: Partition, *texts: str, producer: Producer | None = None) -> asyncio.Future[Appended | KafkaError]:
    """Append one batch aside; the future has what came of it."""
    future: asyncio.Future[Appended | KafkaError] = asyncio.get_running_loop().create_future()
    data = batch(*texts, producer=producer)
    partition.store.aside.add(partition, memoryview(data), lambda outcome, _: future.set_result(outcome))
    data[:] = bytes(len(data))
    return future


def be_slow(partition: Partition) -> None:
    partition.store.aside.note_slow_write(partition, 1.0)


async def outcome(future: asyncio.Future[Appended | KafkaError]) -> Appended | KafkaError:
    return await asyncio.wait_for(future, PATIENCE_S)


async def appended(future: asyncio.Future[Appended | KafkaError]) -> Appended:
    result = await outcome(future)
    assert isinstance(result, Appended)
    return result


async def turns() -> None:
    """Let the loop begin what is to begin."""
    for _ in range(5):
        await asyncio.sleep(0)


@in_loop
async def test_a_slow_write_sends_those_of_all_partitions_aside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    store = a_store(tmp_path)
    slow, other = a_partition(store), a_partition(store, index=1)
    assert not store.aside.takes(slow)
    with monkeypatch.context() as patched, caplog.at_level(logging.WARNING, logger="walrusmq.segments"):
        patched.setattr("walrusmq.segments.partition.SLOW_WRITE_S", -1.0)
        append(slow, "a")
        append(slow, "b")
    assert store.aside.takes(slow)
    assert store.aside.takes(other)
    assert len(caplog.messages) == 1
    assert store.counters.slow_writes == 2
    await store.stop()


@in_loop
async def test_the_loop_goes_on_while_a_write_is_stuck_and_what_follows_keeps_its_order(tmp_path: Path) -> None:
    disk = CrashDisk(tmp_path)
    store = a_store(tmp_path, disk)
    partition = a_partition(store)
    await append_durably(partition, "a")
    be_slow(partition)
    with disk.held("pwrite"):
        sent = [send(partition, text) for text in "bcd"]
        await asyncio.sleep(0.05)
        assert not any(future.done() for future in sent)
        assert partition.log_end_offset == 1, "nothing counts as appended before it is written"
    assert [(await appended(future)).base_offset for future in sent] == [1, 2, 3]
    assert await acknowledged(partition, 4) is None
    assert values(read_all(partition)) == [b"a", b"b", b"c", b"d"]
    assert store.aside.waiting_bytes == store.aside.waiting_batches == 0
    await store.stop()


@in_loop
async def test_the_first_batch_of_a_log_can_go_aside(tmp_path: Path) -> None:
    store = a_store(tmp_path)
    partition = a_partition(store)
    be_slow(partition)
    assert (await appended(send(partition, "a", "b"))).end_offset == 2
    assert await acknowledged(partition, 2) is None
    assert values(read_all(partition)) == [b"a", b"b"]
    await store.stop()


@in_loop
async def test_a_failed_write_is_refused_and_leaves_nothing_behind(tmp_path: Path) -> None:
    disk = CrashDisk(tmp_path)
    store = a_store(tmp_path, disk)
    partition = a_partition(store)
    await append_durably(partition, "a")
    be_slow(partition)
    disk.fail("pwrite", errno.EIO)
    lost, kept = send(partition, "lost"), send(partition, "kept")
    assert isinstance(await outcome(lost), KafkaStorageError)
    assert (await appended(kept)).base_offset == 1
    assert await acknowledged(partition, 2) is None
    assert values(read_all(partition)) == [b"a", b"kept"]
    assert store.counters.failed_writes == 1
    await store.stop()


@in_loop
async def test_a_full_disk_is_told_as_on_the_loop(tmp_path: Path) -> None:
    disk = CrashDisk(tmp_path)
    store = a_store(tmp_path, disk)
    partition = a_partition(store)
    await append_durably(partition, "a")
    be_slow(partition)
    disk.room = 10
    assert isinstance(await outcome(send(partition, "b")), KafkaStorageError)
    assert store.write_problems
    disk.heal()
    assert (await appended(send(partition, "b"))).base_offset == 1
    assert not store.write_problems
    await store.stop()


@in_loop
async def test_a_duplicate_is_found_though_its_original_was_just_written_aside(tmp_path: Path) -> None:
    store = a_store(tmp_path)
    partition = a_partition(store)
    be_slow(partition)
    first = send(partition, "a", producer=Producer(7, 0, 0))
    again = send(partition, "a", producer=Producer(7, 0, 0))
    assert (await appended(first))[:2] == (await appended(again))[:2] == (0, 1)
    assert partition.log_end_offset == 1
    await store.stop()


@in_loop
async def test_an_append_on_the_loop_waits_for_the_write_under_way_and_comes_behind_it(tmp_path: Path) -> None:
    disk = CrashDisk(tmp_path)
    store = a_store(tmp_path, disk)
    partition = a_partition(store)
    await append_durably(partition, "a")
    be_slow(partition)
    with disk.held("pwrite"):
        under_way, behind = send(partition, "b"), send(partition, "d")
        await turns()
    assert append(partition, "c").base_offset == 2
    assert (await appended(under_way)).base_offset == 1
    assert (await appended(behind)).base_offset == 3
    assert await acknowledged(partition, 4) is None
    assert values(read_all(partition)) == [b"a", b"b", b"c", b"d"]
    await store.stop()


@in_loop
async def test_a_seal_waits_for_the_write_under_way_and_what_waits_behind_is_for_the_next_segment(
    tmp_path: Path,
) -> None:
    disk = CrashDisk(tmp_path)
    store = a_store(tmp_path, disk)
    image = Image()
    partition = a_partition(store, image)
    await append_durably(partition, "a")
    be_slow(partition)
    with disk.held("pwrite"):
        under_way, behind = send(partition, "b"), send(partition, "c")
        await turns()
        rolling = asyncio.ensure_future(roll(partition, image))
        await turns()
        assert not partition.is_open
        assert not rolling.done()
    assert (await asyncio.wait_for(rolling, PATIENCE_S)).end_offset == 2
    assert (await appended(under_way)).base_offset == 1
    assert isinstance(await outcome(behind), SegmentStopped)
    assert partition.is_open
    assert (await appended(send(partition, "c"))).base_offset == 2
    assert await acknowledged(partition, 3) is None
    assert values(read_all(partition)) == [b"a", b"b", b"c"]
    await store.stop()


@in_loop
async def test_a_batch_written_behind_a_failed_sync_is_no_part_of_the_log(tmp_path: Path) -> None:
    disk = CrashDisk(tmp_path)
    store = a_store(tmp_path, disk)
    image = Image()
    partition = a_partition(store, image)
    await append_durably(partition, "a")
    be_slow(partition)
    with disk.held("pwrite"):
        under_way = send(partition, "b")
        await turns()
        disk.fail("fdatasync")
        store.commit.request(partition.log, partition.when_synced)
        async with asyncio.timeout(PATIENCE_S):
            while not partition.log.is_rewound:  # noqa: ASYNC110
                await asyncio.sleep(0.005)
    assert isinstance(await outcome(under_way), SegmentStopped)
    assert (await roll(partition, image)).end_offset == 1
    assert (await append_durably(partition, "c")).base_offset == 1
    assert values(read_all(partition)) == [b"a", b"c"]
    await store.stop()


@in_loop
async def test_a_topic_can_be_deleted_while_a_write_of_it_is_stuck(tmp_path: Path) -> None:
    disk = CrashDisk(tmp_path)
    store = a_store(tmp_path, disk)
    partition = a_partition(store)
    await append_durably(partition, "a")
    be_slow(partition)
    with disk.held("pwrite"):
        sent = [send(partition, "b"), send(partition, "c")]
        await turns()
        store.remove(partition.topic_id, 0)
    for future in sent:
        assert isinstance(await outcome(future), UnknownTopicOrPartition)
    await store.stop()


@in_loop
async def test_a_setting_that_changes_while_a_write_is_under_way_is_kept_to(tmp_path: Path) -> None:
    disk = CrashDisk(tmp_path)
    store = a_store(tmp_path, disk)
    image = Image()
    partition = a_partition(store, image)
    await append_durably(partition, "a")
    be_slow(partition)
    with disk.held("pwrite"):
        stamped = send(partition, "b")
        await turns()
        partition.config = LogConfig(timestamp_type=TimestampType.LOG_APPEND_TIME)
    assert (await appended(stamped)).log_append_time_ms == NOW_MS
    with disk.held("pwrite"):
        refused = send(partition, "c" * 100)
        await turns()
        partition.config = LogConfig(max_message_bytes=1)
    assert isinstance(await outcome(refused), KafkaError)
    partition.config = LogConfig()
    assert (await appended(send(partition, "d"))).base_offset == 2
    await store.stop()
    disk.restart_process()
    (tmp_path / "segments.clean").unlink()
    store = a_store(tmp_path, disk)
    assert values(read_all(a_partition(store, image))) == [b"a", b"b", b"d"]
    await store.stop()


@in_loop
async def test_the_loop_writes_again_once_no_write_was_slow_for_a_while(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = a_store(tmp_path)
    partition = a_partition(store)
    be_slow(partition)
    await appended(send(partition, "a"))
    assert store.aside.takes(partition)
    monkeypatch.setattr(aside_module, "CALM_S", 0.0)
    sent = [send(partition, text) for text in "bcd"]
    assert [(await appended(future)).base_offset for future in sent] == [1, 2, 3]
    assert not store.aside.takes(partition)
    assert not store.aside.is_active
    await store.stop()


@in_loop
async def test_a_slow_write_on_the_thread_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = a_store(tmp_path)
    partition = a_partition(store)
    be_slow(partition)
    monkeypatch.setattr(aside_module, "SLOW_WRITE_S", -1.0)
    await appended(send(partition, "a"))
    assert store.counters.slow_writes == 2
    await store.stop()


@pytest.mark.parametrize(
    ("limit", "value"),
    [
        ("MAX_ASIDE_BYTES_PER_PARTITION", 150),
        ("MAX_ASIDE_BYTES", 150),
        ("MAX_ASIDE_BATCHES_PER_PARTITION", 2),
        ("MAX_ASIDE_BATCHES", 2),
    ],
)
@in_loop
async def test_past_a_limit_producers_are_told_to_come_again(
    tmp_path: Path, limit: str, value: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = a_store(tmp_path)
    partition = a_partition(store)
    be_slow(partition)
    monkeypatch.setattr(aside_module, limit, value)
    sent = [send(partition, "a"), send(partition, "b")]
    with pytest.raises(NotLeaderOrFollower):
        send(partition, "c")
    assert [(await appended(future)).base_offset for future in sent] == [0, 1]
    assert (await appended(send(partition, "c"))).base_offset == 2
    await store.stop()


@in_loop
async def test_a_stop_lets_what_waits_be_appended(tmp_path: Path) -> None:
    disk = CrashDisk(tmp_path)
    store = a_store(tmp_path, disk)
    image = Image()
    partition = a_partition(store, image)
    be_slow(partition)
    sent = [send(partition, text) for text in "abc"]
    await store.stop()
    assert [(await appended(future)).base_offset for future in sent] == [0, 1, 2]
    disk.restart_process()
    store = a_store(tmp_path, disk)
    partition = a_partition(store, image)
    assert partition.recovery is not None
    assert partition.recovery.was_clean
    assert values(read_all(partition)) == [b"a", b"b", b"c"]
    await store.stop()
