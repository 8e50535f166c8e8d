"""Reads over a partition's chain: at every offset, of every size."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.segment_stores import (
    NOW_MS,
    Image,
    a_partition,
    a_store,
    acknowledged,
    append,
    append_durably,
    in_loop,
    read_all,
    read_batches,
    read_bytes,
    roll,
    values,
)

from walrusmq.protocol.errors import OffsetOutOfRange
from walrusmq.protocol.records.batch import decode_batches
from walrusmq.segments.files import OsFiles
from walrusmq.segments.log_config import Durability, LogConfig
from walrusmq.segments.partition import Partition

NEVER = LogConfig(durability=Durability.NEVER)

#: Batches by (entries, bytes of each value), below, at and above what an index entry and a step of a walk span.
shapes = st.lists(
    st.one_of(
        st.tuples(st.integers(1, 9), st.integers(0, 40)),
        st.tuples(st.integers(1, 3), st.integers(1000, 9000)),
        st.just("roll"),
    ),
    min_size=1,
    max_size=30,
)


async def build(partition: Partition, image: Image, shape: list[object]) -> list[tuple[int, int, int]]:
    """Append and roll over; (base offset, end offset, size) of each batch."""
    found = []
    for one in shape:
        if one == "roll":
            await roll(partition, image)
            continue
        entries, length = one  # type: ignore[misc]
        before = partition.log.position
        appended = append(partition, *(bytes([65 + number]) * length for number in range(entries)))
        found.append((appended.base_offset, appended.end_offset, partition.log.position - before))
    return found


@settings(max_examples=40, deadline=None)
@given(shapes, st.data())
def test_a_read_is_whole_batches_from_the_one_with_the_offset(
    tmp_path_factory: pytest.TempPathFactory, shape: list[object], data: st.DataObject
) -> None:
    @in_loop
    async def check() -> None:
        store = a_store(tmp_path_factory.mktemp("reads"))
        image = Image()
        partition = a_partition(store, image, NEVER)
        batches = await build(partition, image, shape)
        seals = [facts.end_offset for facts in image.sealed]
        for base_offset, end_offset, size in batches:
            for offset in {base_offset, end_offset - 1, (base_offset + end_offset) // 2}:
                if not base_offset <= offset < end_offset:
                    continue
                for max_bytes in (0, 1, size - 1, size, size + 1, data.draw(st.integers(0, 60_000)), 1 << 30):
                    found = list(decode_batches(read_bytes(partition, offset, max_bytes)))
                    assert found[0].header.base_offset == base_offset
                    total = sum(one.header.size_bytes for one in found)
                    assert total <= max(max_bytes, size)
                    ends = [one.header.last_offset + 1 for one in found]
                    assert [one.header.base_offset for one in found[1:]] == ends[:-1], "no batch is left out"
                    if max_bytes == 1 << 30:
                        assert ends[-1] in [*seals, partition.high_watermark], "all of the segment"
                    if size > max_bytes:
                        assert partition.read(offset, max_bytes, False) is None
        await store.stop()

    check()


@settings(max_examples=25, deadline=None)
@given(shapes, st.integers(1, 30_000))
def test_a_consumer_gets_every_record_once_and_in_order(
    tmp_path_factory: pytest.TempPathFactory, shape: list[object], max_bytes: int
) -> None:
    @in_loop
    async def check() -> None:
        folder = tmp_path_factory.mktemp("reads")
        image = Image()
        store = a_store(folder)
        partition = a_partition(store, image, NEVER)
        batches = await build(partition, image, shape)
        expected = batches[-1][1] if batches else 0
        assert [record.offset for record in read_all(partition, max_bytes)] == list(range(expected))
        await store.stop()
        store = a_store(folder)
        partition = a_partition(store, image, NEVER)
        assert [record.offset for record in read_all(partition, max_bytes)] == list(range(expected))
        await store.stop()

    check()


@in_loop
async def test_consumers_see_nothing_at_or_above_the_high_watermark(tmp_path: Path) -> None:
    store = a_store(tmp_path)
    partition = a_partition(store)
    await append_durably(partition, "a", "b")
    append(partition, "c")
    assert partition.high_watermark == 2
    assert partition.log_end_offset == 3
    assert values(read_all(partition)) == [b"a", b"b"]
    assert partition.read(2, 1000, True) is None
    assert partition.read(3, 1000, True) is None
    for offset in (-1, 4):
        with pytest.raises(OffsetOutOfRange):
            partition.read(offset, 1000, True)
    await acknowledged(partition, 3)
    assert values(read_all(partition)) == [b"a", b"b", b"c"]
    await store.stop()


@in_loop
async def test_an_empty_partition_has_nothing_at_zero(tmp_path: Path) -> None:
    store = a_store(tmp_path)
    partition = a_partition(store)
    assert partition.read(0, 1000, True) is None
    with pytest.raises(OffsetOutOfRange):
        partition.read(1, 1000, True)
    assert (partition.max_timestamp(), partition.offset_for_timestamp(0)) == (None, None)
    await store.stop()
    assert not list((tmp_path / "topics").iterdir()), "it cost no file"


@in_loop
async def test_below_the_log_start_nothing_is_served(tmp_path: Path) -> None:
    store = a_store(tmp_path)
    image = Image()
    partition = a_partition(store, image, NEVER)
    for number in range(4):
        append(partition, *(f"{number}.{entry}" for entry in range(5)))
        await roll(partition, image)
    assert [facts.id for facts in partition.move_log_start(12)] == [1, 2]
    assert partition.move_log_start(7) == []
    assert partition.log_start_offset == 12
    with pytest.raises(OffsetOutOfRange):
        partition.read(11, 1000, True)
    assert read_batches(partition, 12)[0].header.base_offset == 10, "the whole batch that holds the offset"
    await store.background.run(lambda: None)
    logs = sorted(name for name in os.listdir(partition.log.folder.path) if name.endswith(".log"))
    assert logs == ["0000000003.log", "0000000004.log"]
    assert [facts.id for facts in partition.move_log_start(20)] == [3, 4]
    assert partition.read(20, 1000, True) is None
    append(partition, "after")
    assert values(read_all(partition)) == [b"after"]
    await store.stop()


@in_loop
async def test_a_watcher_is_told_when_the_high_watermark_moves(tmp_path: Path) -> None:
    store = a_store(tmp_path)
    marks = []
    for index, config in enumerate([LogConfig(), NEVER]):
        partition = a_partition(store, config=config, index=index)

        def watcher(partition: Partition = partition) -> None:
            marks.append(partition.high_watermark)

        partition.watch(watcher)
        await append_durably(partition, "a", "b")
        partition.unwatch(watcher)
        await append_durably(partition, "c")
    assert marks == [2, 2]
    await store.stop()


@in_loop
async def test_a_region_can_be_sent_after_its_topic_was_deleted(tmp_path: Path) -> None:
    store = a_store(tmp_path)
    partition = a_partition(store, config=NEVER)
    append(partition, "still there")
    region = partition.read(0, 1000, True)
    assert region is not None
    store.remove(partition.topic_id, 0)
    await store.background.run(lambda: None)
    assert not list((tmp_path / "topics").iterdir())
    assert b"still there" in os.pread(region.handle.fd, region.size, region.position)
    region.handle.unpin()
    assert region.handle.fd == -1
    await store.stop()


class CountingReads(OsFiles):
    """Counts preads."""

    def __init__(self) -> None:
        self.reads = 0

    def pread(self, fd: int, size: int, position: int, /) -> bytes:  # type: ignore[override]
        self.reads += 1
        return OsFiles.pread(fd, size, position)


@in_loop
async def test_a_consumer_that_follows_the_end_walks_over_nothing(tmp_path: Path) -> None:
    files = CountingReads()
    store = a_store(tmp_path, files)
    partition = a_partition(store, config=NEVER)
    offset = 0
    for _ in range(50):
        append(partition, "x")
        region = partition.read(offset, 1 << 20, True)
        assert region is not None
        region.handle.unpin()
        offset = partition.high_watermark
    assert files.reads == 0
    await store.stop()


@in_loop
async def test_the_middle_of_a_long_chain_costs_what_its_end_costs(tmp_path: Path) -> None:
    files = CountingReads()
    store = a_store(tmp_path, files)
    image = Image()
    partition = a_partition(store, image, NEVER)
    for _ in range(60):
        for _ in range(20):
            append(partition, "x" * 300)
        await roll(partition, image)
    costs = set()
    for offset in range(7, partition.high_watermark, 20):
        files.reads = 0
        region = partition.read(offset, 1 << 20, True)
        assert region is not None
        region.handle.unpin()
        costs.add(files.reads)
    assert costs == {1}, "one step from an index entry"
    await store.stop()


@in_loop
async def test_reads_by_time_find_the_first_record_as_late(tmp_path: Path) -> None:
    store = a_store(tmp_path)
    image = Image()
    partition = a_partition(store, image, NEVER)
    times = [[1, 5, 3], [2], "roll", [4, 9], [6, 7], "roll", "roll", [8], [9, 12], [10]]
    flat: list[int] = []
    for one in times:
        if one == "roll":
            await roll(partition, image)
        else:
            append(partition, *("v" for _ in one), timestamps=[NOW_MS + t for t in one])
            flat += one  # type: ignore[arg-type]
    for wanted in range(14):
        late = [(NOW_MS + t, offset) for offset, t in enumerate(flat) if t >= wanted]
        assert partition.offset_for_timestamp(NOW_MS + wanted) == (late[0] if late else None)
    assert partition.max_timestamp() == (NOW_MS + 12, flat.index(12))
    partition.move_log_start(2)
    assert partition.offset_for_timestamp(NOW_MS) == (NOW_MS + 3, 2)
    await store.stop()


@in_loop
async def test_a_time_above_the_high_watermark_is_not_found(tmp_path: Path) -> None:
    store = a_store(tmp_path)
    partition = a_partition(store)
    await append_durably(partition, "a", timestamps=[5])
    append(partition, "b", timestamps=[9])
    assert partition.offset_for_timestamp(9) is None
    assert partition.max_timestamp() == (5, 0)
    assert partition.offset_for_timestamp(5) == (5, 0)
    await store.stop()


@in_loop
async def test_epochs_end_where_the_next_began(tmp_path: Path) -> None:
    store = a_store(tmp_path)
    image = Image()
    partition = a_partition(store, image, NEVER)
    for epoch in (0, 2, 2, 5):
        append(partition, *"abc")
        await roll(partition, image, leader_epoch=epoch)
    append(partition, "z")
    assert [partition.end_offset_for_epoch(epoch) for epoch in range(-1, 7)] == [
        None,
        (0, 6),
        (0, 6),
        (2, 12),
        (2, 12),
        (2, 12),
        (5, 13),
        None,
    ]
    partition.move_log_start(7)
    assert partition.end_offset_for_epoch(1) == (1, 7), "all of it is gone"
    assert partition.end_offset_for_epoch(2) == (2, 12)
    await store.stop()
