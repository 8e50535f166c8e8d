"""Appends to a partition: what they write, refuse and report."""

from __future__ import annotations

from pathlib import Path

import pytest
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
    read_batches,
    roll,
    values,
)

from walrusmq.protocol.errors import (
    CorruptMessage,
    FencedLeaderEpoch,
    InvalidTimestamp,
    MessageTooLarge,
    NotLeaderOrFollower,
    OutOfOrderSequenceNumber,
    UnknownLeaderEpoch,
    UnknownTopicOrPartition,
)
from walrusmq.protocol.records.batch import Producer
from walrusmq.protocol.records.header import LOG_APPEND_TIME, parse_header, set_log_append_time
from walrusmq.segments.log_config import Durability, LogConfig, TimestampType
from walrusmq.segments.partition import Partition, SegmentGone, SegmentStopped

NEVER = LogConfig(durability=Durability.NEVER)
HOUR_MS = 3_600_000


@in_loop
async def test_appends_get_dense_offsets(tmp_path: Path) -> None:
    store = a_store(tmp_path)
    partition = a_partition(store)
    spans = [append(partition, *"abc"), append(partition, "d"), append(partition, *"ef")]
    assert [(one.base_offset, one.end_offset) for one in spans] == [(0, 3), (3, 4), (4, 6)]
    assert partition.log_end_offset == 6
    assert await acknowledged(partition, 6) is None
    assert values(read_all(partition)) == [b"a", b"b", b"c", b"d", b"e", b"f"]
    await store.stop()


@in_loop
async def test_offset_and_epoch_are_patched_into_the_batch_that_came_in(tmp_path: Path) -> None:
    store = a_store(tmp_path)
    image = Image()
    partition = a_partition(store, image, NEVER)
    append(partition, "a")
    await roll(partition, image, leader_epoch=1)
    raw = batch("b", "c")
    partition.append(memoryview(raw), NOW_MS)
    header = parse_header(raw)
    assert (header.base_offset, header.partition_leader_epoch) == (1, 1)
    assert read_batches(partition, 1)[0].header == header
    await store.stop()


@in_loop
async def test_a_batch_that_fails_its_check_changes_nothing(tmp_path: Path) -> None:
    store = a_store(tmp_path)
    partition = a_partition(store, config=NEVER)
    append(partition, "a")
    torn = batch("b")
    torn[-1] ^= 1
    with pytest.raises(CorruptMessage):
        partition.append(memoryview(torn), NOW_MS)
    assert append(partition, "c").base_offset == 1
    assert values(read_all(partition)) == [b"a", b"c"]
    await store.stop()


@in_loop
async def test_a_batch_above_the_limit_is_refused(tmp_path: Path) -> None:
    store = a_store(tmp_path)
    raw = batch("x" * 100)
    partition = a_partition(store, config=LogConfig(durability=Durability.NEVER, max_message_bytes=len(raw)))
    partition.append(memoryview(raw), NOW_MS)
    with pytest.raises(MessageTooLarge):
        append(partition, "x" * 101)
    partition.config = NEVER
    append(partition, "x" * 101)
    await store.stop()


@in_loop
async def test_timestamps_too_far_from_the_clock_are_refused(tmp_path: Path) -> None:
    store = a_store(tmp_path)
    partition = a_partition(store, config=NEVER)
    append(partition, "a", timestamps=[NOW_MS + HOUR_MS])
    append(partition, "b", timestamps=[-1])
    append(partition, "c", timestamps=[0])
    with pytest.raises(InvalidTimestamp):
        append(partition, "d", timestamps=[NOW_MS + HOUR_MS + 1])
    partition.config = LogConfig(durability=Durability.NEVER, timestamp_before_max_ms=HOUR_MS)
    append(partition, "e", timestamps=[NOW_MS - HOUR_MS])
    append(partition, "f", timestamps=[-1])
    with pytest.raises(InvalidTimestamp):
        append(partition, "g", timestamps=[NOW_MS - HOUR_MS - 1])
    assert partition.log_end_offset == 5
    await store.stop()


@in_loop
async def test_with_log_append_time_batches_get_the_brokers_clock(tmp_path: Path) -> None:
    store = a_store(tmp_path)
    config = LogConfig(durability=Durability.NEVER, timestamp_type=TimestampType.LOG_APPEND_TIME)
    partition = a_partition(store, config=config)
    appended = append(partition, "a", "b", timestamps=[5, NOW_MS * 2], now_ms=NOW_MS + 7)
    assert appended.log_append_time_ms == NOW_MS + 7
    assert [record.timestamp for record in read_all(partition)] == [NOW_MS + 7, NOW_MS + 7]
    assert partition.max_timestamp() == (NOW_MS + 7, 0)
    assert partition.offset_for_timestamp(NOW_MS) == (NOW_MS + 7, 0)
    await store.stop()


@in_loop
async def test_with_create_time_a_producer_cannot_set_the_brokers_bit(tmp_path: Path) -> None:
    store = a_store(tmp_path)
    partition = a_partition(store, config=NEVER)
    raw = batch("a")
    set_log_append_time(memoryview(raw), NOW_MS + 1)
    assert partition.append(memoryview(raw), NOW_MS).log_append_time_ms == -1
    assert not read_batches(partition, 0)[0].header.attributes & LOG_APPEND_TIME
    await store.stop()


@in_loop
async def test_a_repeat_is_answered_with_its_first_offset(tmp_path: Path) -> None:
    store = a_store(tmp_path)
    partition = a_partition(store)
    await append_durably(partition, "a", producer=Producer(7, 0, 0))
    original = append(partition, "b", "c", producer=Producer(7, 0, 1))
    repeat = append(partition, "b", "c", producer=Producer(7, 0, 1))
    assert (repeat.base_offset, repeat.end_offset) == (original.base_offset, original.end_offset) == (1, 3)
    assert not repeat.acknowledged, "the original isn't on disk yet"
    assert await acknowledged(partition, repeat.end_offset) is None
    assert append(partition, "b", "c", producer=Producer(7, 0, 1)).acknowledged
    assert append(partition, "b", "c", producer=Producer(7, 0, 1)).log_append_time_ms == NOW_MS + 1
    assert partition.log_end_offset == 3
    with pytest.raises(OutOfOrderSequenceNumber):
        append(partition, "e", producer=Producer(7, 0, 4))
    await store.stop()


@in_loop
async def test_producers_are_remembered_across_rollovers_and_restarts(tmp_path: Path) -> None:
    image = Image()
    store = a_store(tmp_path)
    partition = a_partition(store, image)
    for sequence in range(4):
        await append_durably(partition, "x", producer=Producer(7, 0, sequence))
        await roll(partition, image)
    await store.stop()
    store = a_store(tmp_path)
    partition = a_partition(store, image)
    assert append(partition, "x", producer=Producer(7, 0, 1)).base_offset == 1
    with pytest.raises(OutOfOrderSequenceNumber):
        append(partition, "x", producer=Producer(7, 0, 9))
    assert append(partition, "x", producer=Producer(7, 0, 4)).base_offset == 4
    await store.stop()


@in_loop
async def test_a_stopped_segment_takes_no_appends(tmp_path: Path) -> None:
    store = a_store(tmp_path)
    image = Image()
    partition = a_partition(store, image)
    await append_durably(partition, "a")
    partition.stop()
    assert not partition.is_open
    with pytest.raises(SegmentStopped) as refusal:
        append(partition, "b")
    assert isinstance(refusal.value, NotLeaderOrFollower)
    sealed = await partition.seal()
    with pytest.raises(SegmentStopped):
        append(partition, "b")
    image.roll(sealed)
    partition.open_next(image.open, sealed)
    assert (await append_durably(partition, "b")).base_offset == 1
    await store.stop()


@in_loop
async def test_a_sealed_segment_has_exact_facts(tmp_path: Path) -> None:
    store = a_store(tmp_path)
    image = Image()
    partition = a_partition(store, image)
    sizes = 0
    for number, timestamps in enumerate([[5, 9, 7], [9, 3], [8]]):
        raw = batch(*("x" * number for _ in timestamps), timestamps=timestamps)
        sizes += len(raw)
        partition.append(memoryview(raw), NOW_MS)
    sealed = await roll(partition, image)
    assert (sealed.id, sealed.leader, sealed.leader_epoch, sealed.members) == (1, 1, 0, (1,))
    assert (sealed.first_offset, sealed.end_offset, sealed.size_bytes) == (0, 6, sizes)
    assert (sealed.max_timestamp, sealed.max_timestamp_offset) == (9, 1)
    empty = await roll(partition, image)
    assert (empty.first_offset, empty.end_offset, empty.size_bytes) == (6, 6, 0)
    assert (empty.max_timestamp, empty.max_timestamp_offset) == (-1, -1)
    await append_durably(partition, "after")
    assert read_all(partition)[-1].offset == 6
    await store.stop()


@in_loop
async def test_sealing_twice_gives_the_same_facts(tmp_path: Path) -> None:
    store = a_store(tmp_path)
    partition = a_partition(store)
    append(partition, "a")
    partition.stop()
    assert await partition.seal() == await partition.seal()
    await store.stop()


@in_loop
async def test_each_threshold_is_due_at_once_and_urgent_at_twice(tmp_path: Path) -> None:
    store = a_store(tmp_path)
    size = len(batch("x"))
    for reason, config, steps in [
        ("entries", LogConfig(max_segment_entries=3, durability=Durability.NEVER), 3),
        ("bytes", LogConfig(segment_bytes=3 * size, durability=Durability.NEVER), 3),
    ]:
        partition = a_partition(store, config=config, index=len(store))
        urgent: list[tuple[Partition, str]] = []
        partition.on_full = lambda *said, urgent=urgent: urgent.append(said)
        for number in range(1, 3 * steps):
            append(partition, "x")
            assert partition.rollover_due(NOW_MS) == (reason if number >= steps else None)
            assert urgent == [(partition, reason)] * (number - 2 * steps + 1), "until somebody stops the segment"
    await store.stop()


@in_loop
async def test_age_counts_from_the_first_entry(tmp_path: Path) -> None:
    store = a_store(tmp_path)
    partition = a_partition(store, config=LogConfig(segment_ms=1000, durability=Durability.NEVER))
    urgent = []
    partition.on_full = lambda partition, reason: urgent.append(reason)
    assert partition.rollover_due(NOW_MS + 10**9) is None
    append(partition, "x", now_ms=NOW_MS)
    assert partition.rollover_due(NOW_MS + 999) is None
    assert partition.rollover_due(NOW_MS + 1000) == "age"
    append(partition, "x", now_ms=NOW_MS + 1999)
    assert not urgent
    append(partition, "x", now_ms=NOW_MS + 2000)
    assert urgent == ["age"]
    await store.stop()


@in_loop
async def test_leader_epochs_are_held_to_the_partitions(tmp_path: Path) -> None:
    store = a_store(tmp_path)
    image = Image()
    partition = a_partition(store, image, NEVER)
    append(partition, "a")
    await roll(partition, image, leader_epoch=1)
    assert partition.leader_epoch == 1
    partition.check_leader_epoch(-1)
    partition.check_leader_epoch(1)
    with pytest.raises(FencedLeaderEpoch):
        partition.check_leader_epoch(0)
    with pytest.raises(UnknownLeaderEpoch):
        partition.check_leader_epoch(2)
    await store.stop()


@in_loop
async def test_a_removed_partition_answers_everybody_who_waits(tmp_path: Path) -> None:
    store = a_store(tmp_path)
    partition = a_partition(store)
    woken = []
    partition.watch(lambda: woken.append(True))
    appended = append(partition, "a")
    answers = []
    partition.when_acknowledged(appended.end_offset, answers.append)
    store.remove(partition.topic_id, partition.index)
    assert [type(answer) for answer in answers] == [UnknownTopicOrPartition]
    assert woken == [True]
    with pytest.raises(UnknownTopicOrPartition):
        append(partition, "b")
    with pytest.raises(SegmentGone):
        await partition.seal()
    await store.stop()
    assert not list((tmp_path / "topics").iterdir())
