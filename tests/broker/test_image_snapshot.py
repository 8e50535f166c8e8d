"""Snapshots of the cluster image: equal for equal histories, and never taken for something they aren't."""

from __future__ import annotations

import time
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.image_commands import Applied, compact, create, register, roll

from walrusmq.broker.image import ClusterImage
from walrusmq.broker.image_snapshot import SavedImage, UnreadableSnapshot
from walrusmq.protocol.codec import codec

MANY_PARTITIONS = 20_000
MAX_LOAD_S = 3.0
FEW_PARTITIONS = 2_000
MAX_PARTITION_BYTES = 5_000
"""Half of what 20,000 partitions in 200 MB allow, the decoded snapshot included."""


def rich_image() -> ClusterImage:
    applied = Applied(register(1, rack="a"), register(2), create(1, 2, (1, 2), retention_ms="5"), create(2, 1, (2,)))
    for _ in range(3):
        applied.apply(roll(applied.image, partition=1))
    applied.apply(compact(2, partition=1))
    return applied.image


def test_an_empty_image_is_restored_as_empty() -> None:
    image = ClusterImage.restore(ClusterImage().snapshot())
    assert (image.applied_index, image.nodes, image.topics) == (0, {}, {})
    image.check()


def test_an_image_is_restored_as_it_was() -> None:
    image = rich_image()
    again = ClusterImage.restore(image.snapshot())
    again.check()
    for name in ("applied_index", "feature_level", "next_producer_id", "nodes", "topics", "topics_by_name"):
        assert getattr(again, name) == getattr(image, name)
    assert (again.partition_count, again.sealed_segment_count) == (3, 3)
    assert again.led_counts == image.led_counts
    assert again.snapshot() == image.snapshot()


def test_restored_partitions_share_equal_sets_of_nodes() -> None:
    image = ClusterImage.restore(rich_image().snapshot())
    first, second = next(iter(image.topics.values())).partitions
    assert first.assigned is second.assigned is first.open.members


@given(st.data())
def test_any_bytes_are_an_image_or_unreadable(data: st.DataObject) -> None:
    content = bytearray(rich_image().snapshot())
    start = data.draw(st.integers(0, len(content) - 1))
    if data.draw(st.booleans()):
        del content[start:]
    else:
        content[start:] = data.draw(st.binary(max_size=len(content)))
    try:
        ClusterImage.restore(bytes(content)).snapshot()
    except UnreadableSnapshot:
        return


def test_a_newer_version_is_refused_with_what_to_do() -> None:
    with pytest.raises(UnreadableSnapshot, match=r"version 7.*start the newer version"):
        ClusterImage.restore(b"\0\7" + rich_image().snapshot()[2:])


def test_a_snapshot_without_generations_is_of_segments_that_were_never_compacted() -> None:
    applied = Applied(register(1), create(1))
    applied.apply(roll(applied.image))
    saved, _ = codec(SavedImage, 1).decode(applied.image.snapshot(), 2)
    again = ClusterImage.restore(b"\0\0" + codec(SavedImage, 0).encode(saved))
    assert again.snapshot() == applied.image.snapshot()
    ((_, _, partition),) = again.partitions()
    assert [facts.generation for facts in partition.sealed] == [0]


def test_bytes_behind_the_image_are_refused() -> None:
    with pytest.raises(UnreadableSnapshot, match="1 bytes too many"):
        ClusterImage.restore(rich_image().snapshot() + b"\0")


def large_snapshot(partitions: int) -> bytes:
    applied = Applied(*(register(node) for node in (1, 2, 3)))
    for number in range(partitions // 100):
        applied.apply(create(number, 100, (1, 2, 3)))
    return applied.image.snapshot()


def test_twenty_thousand_partitions_are_loaded_fast() -> None:
    snapshot = large_snapshot(MANY_PARTITIONS)
    started = time.perf_counter()
    image = ClusterImage.restore(snapshot)
    assert time.perf_counter() - started < MAX_LOAD_S
    assert image.partition_count == MANY_PARTITIONS


def test_a_partition_takes_little_memory() -> None:
    snapshot = large_snapshot(FEW_PARTITIONS)
    ClusterImage.restore(snapshot)
    tracemalloc.start()
    image = ClusterImage.restore(snapshot)
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert image.partition_count == FEW_PARTITIONS
    assert peak_bytes / FEW_PARTITIONS < MAX_PARTITION_BYTES


def test_a_chain_of_5500_segments_is_kept_and_restored_whole() -> None:
    applied = Applied(register(1), create(1))
    for _ in range(5500):
        applied.apply(roll(applied.image, entries=1))
    image = ClusterImage.restore(applied.image.snapshot())
    image.check()
    assert image.sealed_segment_count == 5500
    assert image.topics_by_name["topic-1"].partitions[0].open.first_offset == 5500
