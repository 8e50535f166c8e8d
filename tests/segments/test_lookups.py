"""Looking for times in batches that can't be unpacked, or whose header lies."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.segment_stores import NOW_MS, Image, a_partition, a_store, append, batch, in_loop, roll

from walrusmq.protocol.records.compression import Codec
from walrusmq.protocol.records.crc import crc32c
from walrusmq.protocol.records.header import ATTRIBUTES_AT, CRC_AT, CRC_COVERS_FROM, MAX_TIMESTAMP_AT
from walrusmq.segments.log_config import Durability, LogConfig

NEVER = LogConfig(durability=Durability.NEVER)


def changed(raw: bytearray, at: int, value: bytes) -> memoryview:
    """A batch with other header bytes and the checksum that goes with them."""
    raw[at : at + len(value)] = value
    raw[CRC_AT : CRC_AT + 4] = crc32c(memoryview(raw)[CRC_COVERS_FROM:]).to_bytes(4)
    return memoryview(raw)


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.ZSTD])
@in_loop
async def test_a_batch_that_cannot_be_unpacked_is_found_as_a_whole(tmp_path: Path, codec: Codec) -> None:
    store = a_store(tmp_path)
    image = Image()
    partition = a_partition(store, image, NEVER)
    append(partition, "a", "b", timestamps=[1, 2])
    unreadable = batch("c", "d", timestamps=[5, 9])
    partition.append(changed(unreadable, ATTRIBUTES_AT, int(codec).to_bytes(2)), NOW_MS)
    append(partition, "e", timestamps=[7])
    assert partition.offset_for_timestamp(2) == (2, 1)
    assert partition.offset_for_timestamp(3) == (9, 2)
    assert partition.max_timestamp() == (9, 2)
    sealed = await roll(partition, image)
    assert (sealed.max_timestamp, sealed.max_timestamp_offset) == (9, 2)
    await store.stop()


@in_loop
async def test_a_header_that_claims_a_later_time_than_its_records_leads_nowhere(tmp_path: Path) -> None:
    store = a_store(tmp_path)
    image = Image()
    partition = a_partition(store, image, NEVER)
    append(partition, "a", timestamps=[1])
    partition.append(changed(batch("b", timestamps=[2]), MAX_TIMESTAMP_AT, (50).to_bytes(8)), NOW_MS)
    append(partition, "c", timestamps=[9])
    assert partition.offset_for_timestamp(3) == (9, 2)
    assert partition.offset_for_timestamp(10) is None
    await roll(partition, image)
    assert partition.offset_for_timestamp(3) == (9, 2)
    append(partition, "d", timestamps=[40])
    assert partition.offset_for_timestamp(10) == (40, 3)
    await store.stop()


@in_loop
async def test_the_middle_of_a_batch_can_be_the_logs_start(tmp_path: Path) -> None:
    store = a_store(tmp_path)
    partition = a_partition(store, None, NEVER)
    append(partition, *"abc", timestamps=[5, 3, 4])
    partition.move_log_start(1)
    assert partition.offset_for_timestamp(0) == (3, 1)
    assert partition.offset_for_timestamp(4) == (4, 2)
    assert partition.offset_for_timestamp(5) is None
    await store.stop()
