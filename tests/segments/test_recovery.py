"""Starting on what a crash or a stop left, with any file of a partition's folder damaged."""

from __future__ import annotations

import logging
import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.crash_disk import CrashDisk
from support.segment_stores import (
    Image,
    a_partition,
    a_store,
    append,
    append_durably,
    in_loop,
    read_all,
    read_batches,
    roll,
    values,
)

from walrusmq.protocol.errors import OutOfOrderSequenceNumber
from walrusmq.protocol.records.batch import Producer
from walrusmq.segments import index_files, thresholds
from walrusmq.segments.log_config import Durability, LogConfig
from walrusmq.segments.partition import Partition

NEVER = LogConfig(durability=Durability.NEVER)
CHECKPOINT_BYTES = 9000


@pytest.fixture(autouse=True)
def small_checkpoints(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(thresholds, "CHECKPOINT_INTERVAL_BYTES", CHECKPOINT_BYTES)
    monkeypatch.setattr(index_files, "SMALL_REST_BYTES", 0)


class Crashed:
    """A folder with a sealed segment, an open one with durable batches and some behind that nobody waited for."""

    def __init__(self, folder: Path, durable: int, behind: int) -> None:
        self.folder = folder
        self.image = Image()
        self.disk = CrashDisk(folder)
        self.durable_entries = 0
        self.durable_bytes = 0
        self.written: list[bytes] = []
        self._durable, self._behind = durable, behind

    async def crash(self) -> None:
        store = a_store(self.folder, self.disk)
        partition = a_partition(store, self.image)
        for number in range(3):
            await self._append(partition, number)
        await roll(partition, self.image)
        for number in range(3, 3 + self._durable):
            await self._append(partition, number)
        self.durable_entries = partition.high_watermark
        self.durable_bytes = partition.log.synced_position
        partition.config = NEVER
        for number in range(3 + self._durable, 3 + self._durable + self._behind):
            await self._append(partition, number)
        await store.background.run(lambda: None)
        self.disk.power_off()
        await store.stop()
        self.disk.restart_process()

    async def _append(self, partition: Partition, number: int) -> None:
        these = [b"%d/%d " % (number, place) * (1 + 400 * (number % 3)) for place in range(1 + number % 2)]
        await append_durably(partition, *these, producer=Producer(7, 0, len(self.written)))
        self.written += these

    def files(self) -> list[Path]:
        return sorted(path for path in self.folder.rglob("*") if path.is_file())

    async def check(self) -> None:
        """All that was durable is there, what is there is what was written, and the partition is whole again."""
        store = a_store(self.folder, self.disk)
        partition = a_partition(store, self.image)
        found = values(read_all(partition))
        assert found == self.written[: len(found)]
        assert len(found) >= self.durable_entries
        for offset in range(partition.log_end_offset):
            header = read_batches(partition, offset, 1)[0].header
            assert header.base_offset <= offset <= header.last_offset
        last = read_batches(partition, partition.log_end_offset - 1)[-1].header
        again = [value or b"" for value in found[last.base_offset :]]
        repeat = append(partition, *again, producer=Producer(7, 0, last.base_sequence))
        assert repeat.base_offset == last.base_offset, "the last batch is recognised"
        with pytest.raises(OutOfOrderSequenceNumber):
            append(partition, "gap", producer=Producer(7, 0, last.last_sequence + 2))
        following = await append_durably(partition, "next", producer=Producer(7, 0, last.last_sequence + 1))
        assert following.base_offset == len(found)
        assert values(read_all(partition))[-1] == b"next"
        assert partition.max_timestamp() is not None
        await store.stop()
        self.written = [*self.written[: len(found)], b"next"]
        self.durable_entries = len(self.written)


def damage(path: Path, least: int, data: st.DataObject) -> None:
    """Cut, scramble or lengthen a file from some byte on, at `least` or behind it."""
    content = path.read_bytes()
    at = data.draw(st.integers(min(least, len(content)), len(content)), label="damaged from")
    how = data.draw(st.sampled_from(["cut", "scramble", "zeros", "longer", "removed"]), label="how")
    match how:
        case "cut":
            path.write_bytes(content[:at])
        case "scramble":
            noise = data.draw(st.binary(min_size=1, max_size=200))
            tail = bytes(byte ^ noise[place % len(noise)] for place, byte in enumerate(content[at:]))
            path.write_bytes(content[:at] + tail)
        case "zeros":
            path.write_bytes(content[:at] + bytes(len(content) - at))
        case "longer":
            path.write_bytes(content + data.draw(st.binary(min_size=1, max_size=200)))
        case "removed" if least == 0:
            path.unlink()


@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(0, 20), st.integers(0, 8), st.data())
def test_any_damage_behind_what_is_durable_loses_nothing(
    tmp_path_factory: pytest.TempPathFactory, durable: int, behind: int, data: st.DataObject
) -> None:
    @in_loop
    async def check() -> None:
        crashed = Crashed(tmp_path_factory.mktemp("crashed"), durable, behind)
        await crashed.crash()
        open_log = f"{crashed.image.open.id:010}.log"
        sealed_log = f"{crashed.image.sealed[0].id:010}.log"
        for path in crashed.files():
            if path.name != sealed_log and data.draw(st.booleans(), label=path.name):
                damage(path, crashed.durable_bytes if path.name == open_log else 0, data)
        await crashed.check()
        await crashed.check()

    check()


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(1, 20), st.data())
def test_after_a_clean_stop_too_any_damage_beside_the_log_loses_nothing(
    tmp_path_factory: pytest.TempPathFactory, entries: int, data: st.DataObject
) -> None:
    @in_loop
    async def check() -> None:
        folder = tmp_path_factory.mktemp("clean")
        crashed = Crashed(folder, entries, 0)
        await crashed.crash()
        await crashed.check()  # which ends with a clean stop
        for path in crashed.files():
            if path.suffix != ".log" and data.draw(st.booleans(), label=path.name):
                damage(path, 0, data)
        await crashed.check()

    check()


@in_loop
async def test_a_log_that_was_cut_at_any_byte_is_whole_batches_again(tmp_path: Path) -> None:
    store = a_store(tmp_path)
    partition = a_partition(store)
    ends = [0]
    for number in range(4):
        append(partition, *f"{number}ab"[: 1 + number % 3])
        ends.append(partition.log.position)
    path = Path(partition.log.file.path)
    await store.stop()
    content = path.read_bytes()  # noqa: ASYNC240
    for size in range(len(content) + 1):
        path.write_bytes(content[:size])  # noqa: ASYNC240
        (tmp_path / "segments.clean").unlink(missing_ok=True)
        store = a_store(tmp_path)
        partition = a_partition(store)
        whole = sum(1 for end in ends[1:] if end <= size)
        assert partition.log.position == ends[whole]
        assert partition.recovery is not None
        assert partition.recovery.cut_bytes == size - ends[whole]
        assert store.files.size_of(str(path)) == ends[whole]
        await store.stop()


@in_loop
async def test_one_line_says_what_was_done(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    crashed = Crashed(tmp_path, 5, 0)
    await crashed.crash()
    log = next(path for path in crashed.files() if path.name == "0000000002.log")
    with log.open("ab") as file:
        file.write(b"torn")
    caplog.clear()
    with caplog.at_level(logging.INFO, logger="walrusmq.segments"):
        store = a_store(tmp_path, crashed.disk)
        a_partition(store, crashed.image)
    (line,) = caplog.messages
    assert "0000000002.log (t) recovered after an unclean stop: ends at offset 12" in line
    assert "4 cut at the end (4 bytes of a batch's header)" in line
    await store.stop()


@in_loop
async def test_a_recovery_reads_only_what_lies_behind_the_last_checkpoint(tmp_path: Path) -> None:
    disk = CrashDisk(tmp_path)
    store = a_store(tmp_path, disk)
    partition = a_partition(store)
    for _ in range(100):
        await append_durably(partition, "x" * 1000)
    await store.background.run(lambda: None)
    size = partition.log.position
    disk.power_off()
    await store.stop()
    disk.restart_process()
    store = a_store(tmp_path, disk)
    partition = a_partition(store)
    assert partition.recovery is not None
    assert partition.recovery.scanned_bytes < CHECKPOINT_BYTES + 2000 < size
    assert partition.recovery.rebuilt == []
    assert len(partition.log.indexes.offsets) > size // 6000
    assert len(read_all(partition)) == 100
    await store.stop()


@in_loop
async def test_a_log_that_lost_what_was_synced_is_read_from_its_start_with_an_error_line(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    disk = CrashDisk(tmp_path)
    store = a_store(tmp_path, disk)
    partition = a_partition(store)
    for number in range(20):
        await append_durably(partition, b"%d" % number * 1000, producer=Producer(7, 0, number))
    await store.background.run(lambda: None)
    path, size = partition.log.file.path, partition.log.position // 20 * 2
    disk.power_off()
    await store.stop()
    disk.restart_process()
    os.truncate(path, size)
    store = a_store(tmp_path, disk)
    partition = a_partition(store)
    assert "up to where it was synced: entries are lost" in caplog.text
    found = len(read_all(partition))
    assert 0 < found <= 3
    assert partition.log_end_offset == found
    again = append(partition, "again", producer=Producer(7, 0, found))
    assert again.base_offset == found, "producers know what is there, and nothing else"
    await store.stop()


@pytest.mark.parametrize("durability", [Durability.INTERVAL, Durability.NEVER])
@in_loop
async def test_an_unclean_start_without_a_sync_per_batch_wants_a_new_epoch(
    tmp_path: Path, durability: Durability
) -> None:
    config = LogConfig(durability=durability)
    disk = CrashDisk(tmp_path)
    store = a_store(tmp_path, disk)
    append(a_partition(store, config=config), "a")
    a_partition(store, config=config, index=1)
    disk.power_off()
    await store.stop()
    disk.restart_process()
    store = a_store(tmp_path, disk)
    partition, empty = a_partition(store, config=config), a_partition(store, config=config, index=1)
    assert partition.recovery is not None
    assert partition.recovery.needs_rollover
    assert empty.recovery is None
    await store.stop()
    store = a_store(tmp_path, disk)
    partition = a_partition(store, config=config)
    assert partition.recovery is not None
    assert not partition.recovery.needs_rollover, "that stop was clean"
    await store.stop()


@in_loop
async def test_with_a_sync_per_batch_an_unclean_start_goes_on_in_the_same_epoch(tmp_path: Path) -> None:
    crashed = Crashed(tmp_path, 3, 0)
    await crashed.crash()
    store = a_store(tmp_path, crashed.disk)
    partition = a_partition(store, crashed.image)
    assert partition.recovery is not None
    assert not partition.recovery.was_clean
    assert not partition.recovery.needs_rollover
    await store.stop()


@in_loop
async def test_offsets_that_were_deleted_do_not_come_again(tmp_path: Path) -> None:
    """Under interval the log may end before its recorded start after a crash."""
    config = LogConfig(durability=Durability.INTERVAL)
    disk = CrashDisk(tmp_path)
    store = a_store(tmp_path, disk)
    image = Image()
    partition = a_partition(store, image, config)
    append(partition, *"abcde")
    partition.move_log_start(5)
    image.move_log_start(5)
    path = Path(partition.log.file.path)
    disk.power_off()
    await store.stop()
    disk.restart_process()
    path.write_bytes(b"")  # noqa: ASYNC240
    store = a_store(tmp_path, disk)
    partition = a_partition(store, image, config)
    assert (partition.log_start_offset, partition.high_watermark, partition.log_end_offset) == (5, 5, 5)
    assert append(partition, "f").base_offset == 5
    assert append(partition, "g").base_offset == 6
    assert (await roll(partition, image)).end_offset == 7
    disk.power_off()
    await store.stop()
    disk.restart_process()
    store = a_store(tmp_path, disk)
    partition = a_partition(store, image, config)
    assert [(record.offset, record.value) for record in read_all(partition)] == [(5, b"f"), (6, b"g")]
    await store.stop()


@in_loop
async def test_files_of_segments_that_are_not_in_the_chain_go(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    crashed = Crashed(tmp_path, 2, 0)
    await crashed.crash()
    folder = next(path for path in crashed.files() if path.suffix == ".log").parent
    (folder / "0000000003.log").touch()
    (folder / "0000000003.producers").write_bytes(b"left by a seal that wasn't recorded")
    (folder / "0000000009.index").touch()
    (folder / "0000000002.checkpoint.new").touch()
    (folder / "0000000004.log").write_bytes(b"something that no rollover explains")
    (folder / "not ours").touch()
    store = a_store(tmp_path, crashed.disk)
    a_partition(store, crashed.image)
    left = {path.name for path in folder.iterdir()}
    assert not {"0000000003.log", "0000000003.producers", "0000000009.index", "0000000002.checkpoint.new"} & left
    assert {"0000000004.log.aside", "not ours", "0000000001.log", "0000000002.log", "topic"} <= left
    assert "0000000003.log, which isn't in the chain" in caplog.text
    await store.stop()
