"""When a segment is full, and what happens where nobody seals it."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
from support.segment_stores import NOW_MS, Image, a_partition, a_store, append, append_durably, in_loop, roll

from walrusmq.segments import partition as partition_module
from walrusmq.segments import thresholds
from walrusmq.segments.log_config import FOREVER, Durability, LogConfig
from walrusmq.segments.partition import SegmentStopped

UNLIMITED = LogConfig(max_segment_entries=FOREVER, segment_bytes=FOREVER, segment_ms=FOREVER)


@in_loop
async def test_a_segment_stops_by_itself_before_its_index_overflows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (thresholds, partition_module):
        monkeypatch.setattr(module, "MAX_ENTRIES", 10)
    store = a_store(tmp_path)
    image = Image()
    partition = a_partition(store, image, UNLIMITED)
    told = []
    partition.on_full = lambda partition, reason: told.append(reason)
    append(partition, *"abcdefghi")
    assert partition.rollover_due(NOW_MS + 10**12) is None
    append(partition, *"jkl")
    assert partition.rollover_due(NOW_MS) == "entries"
    assert told == ["entries"]
    with pytest.raises(SegmentStopped):
        append(partition, "m")
    assert (await roll(partition, image)).end_offset == 12
    await append_durably(partition, "m")
    await store.stop()


@in_loop
async def test_new_settings_count_for_the_segment_that_is_open(tmp_path: Path) -> None:
    store = a_store(tmp_path)
    partition = a_partition(store, config=UNLIMITED)
    told = []
    partition.on_full = lambda partition, reason: told.append(reason)
    for _ in range(5):
        append(partition, "x")
    partition.config = LogConfig(max_segment_entries=3, durability=Durability.NEVER)
    assert partition.rollover_due(NOW_MS) == "entries"
    append(partition, "x")
    assert told == ["entries"]
    await store.stop()


@in_loop
async def test_a_checkpoint_is_written_each_time_so_much_was_appended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(thresholds, "CHECKPOINT_INTERVAL_BYTES", 3000)
    store = a_store(tmp_path)
    for index, config in enumerate([UNLIMITED, LogConfig(durability=Durability.NEVER)]):
        partition = a_partition(store, config=config, index=index)
        places = set()
        for _ in range(12):
            await append_durably(partition, "x" * 900)
            places.add(partition.log.checkpoint_position)
        steps = sorted(places)
        if config is UNLIMITED:
            assert len(steps) == 4
            assert all(3000 <= after - before < 4000 for before, after in itertools.pairwise(steps))
        else:
            assert steps == [0], "without syncs nothing can be trusted"
    await store.stop()
