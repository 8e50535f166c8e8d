"""The producers' file of a segment, and making it again from the segments before."""

from __future__ import annotations

import logging
import os
from pathlib import Path

import pytest
from support.segment_stores import NOW_MS, Image, a_partition, a_store, append, in_loop, roll

from walrusmq.protocol.records.batch import Producer
from walrusmq.segments.files import OsFiles
from walrusmq.segments.log_config import Durability, LogConfig
from walrusmq.segments.partition import Partition
from walrusmq.segments.partition_folder import PRODUCERS, PartitionFolder
from walrusmq.segments.producers import ProducerBatch, Producers
from walrusmq.segments.segment_producers import load_producers, read_producers, write_producers

NEVER = LogConfig(durability=Durability.NEVER)
SNAPSHOT = [(7, 0, NOW_MS, (ProducerBatch(0, 2, 40, 43, 9), ProducerBatch(3, 3, 43, 44, 9)))]


def test_what_was_written_comes_back_for_the_same_first_offset(tmp_path: Path) -> None:
    folder = PartitionFolder(OsFiles(), str(tmp_path), "t", bytes(16), 0)
    Path(folder.path).mkdir()
    assert read_producers(OsFiles(), folder, 2, 44) is None
    write_producers(OsFiles(), folder, 2, 44, SNAPSHOT)
    assert read_producers(OsFiles(), folder, 2, 44) == SNAPSHOT
    assert read_producers(OsFiles(), folder, 2, 45) is None, "left by a seal that wasn't recorded"
    os.truncate(folder.file(2, PRODUCERS), 30)
    assert read_producers(OsFiles(), folder, 2, 44) is None


async def a_chain_of_three(folder: Path) -> tuple[Partition, Image, list[object]]:
    """Three sealed segments with two producers' batches, and the state at each next segment's first offset."""
    image = Image()
    partition = a_partition(a_store(folder), image, NEVER)
    states: list[object] = []
    for number in range(3):
        append(partition, "a", producer=Producer(7, 0, number))
        append(partition, "b", "c", producer=Producer(8, number, 0))
        await roll(partition, image)
        states.append(partition.producers.snapshot(NOW_MS))
    return partition, image, states


@pytest.mark.parametrize("lost", [[4], [4, 3], [4, 3, 2]])
@in_loop
async def test_a_lost_file_is_made_again_from_the_segments_before(tmp_path: Path, lost: list[int]) -> None:
    partition, image, states = await a_chain_of_three(tmp_path)
    folder, files = partition.log.folder, partition.store.files
    for segment_id in lost:
        files.unlink(folder.file(segment_id, PRODUCERS))
    producers = Producers()
    assert load_producers(files, partition.log, image.sealed, producers, NOW_MS)
    assert producers.snapshot(NOW_MS) == states[-1]
    assert read_producers(files, folder, 4, image.open.first_offset) == states[-1], "and written again"
    await partition.store.stop()


@pytest.mark.parametrize("damage", ["removed", "zeros"])
@in_loop
async def test_what_cannot_be_read_is_forgotten_with_an_error_line(
    tmp_path: Path, damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    partition, image, _ = await a_chain_of_three(tmp_path)
    folder, files = partition.log.folder, partition.store.files
    files.unlink(folder.file(4, PRODUCERS))
    path = folder.file(3, "log")
    if damage == "removed":
        files.unlink(path)
    else:
        os.truncate(path, 0)
        os.truncate(path, image.sealed[2].size_bytes)
    producers = Producers()
    with caplog.at_level(logging.ERROR, logger="walrusmq.segments"):
        assert load_producers(files, partition.log, image.sealed, producers, NOW_MS)
    assert "0000000003.log" in caplog.text
    assert len(producers) == 2
    await partition.store.stop()
