"""A process that is killed right after a failed sync: the next one must not take the system's cache for the disk."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.crash_disk import CrashDisk
from support.segment_stores import (
    a_partition,
    a_store,
    acknowledged,
    append,
    append_durably,
    in_loop,
    read_all,
    values,
)


@pytest.mark.parametrize("seed", range(20))
@in_loop
async def test_what_a_start_finds_after_a_failed_sync_survives_a_power_loss(tmp_path: Path, seed: int) -> None:
    disk = CrashDisk(tmp_path, seed)
    store = a_store(tmp_path, disk)
    partition = a_partition(store)
    await append_durably(partition, "a")
    disk.fail("fdatasync")
    lost = append(partition, "b" * 5000)
    assert await acknowledged(partition, lost.end_offset) is not None
    disk.power_off()
    await store.stop()
    disk.restart_process()

    store = a_store(tmp_path, disk)
    partition = a_partition(store)
    found = values(read_all(partition))
    assert found[0] == b"a"
    await append_durably(partition, "c")
    disk.power_off()
    await store.stop()
    disk.power_on()

    store = a_store(tmp_path, disk)
    assert values(read_all(a_partition(store))) == [*found, b"c"]
    await store.stop()
