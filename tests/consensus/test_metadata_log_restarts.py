"""The metadata log over starts: snapshots, purges, crashes; every start finds what was answered."""

from __future__ import annotations

import asyncio
import logging
import os
import random
import threading
from pathlib import Path
from typing import Any

import pytest
from support.journal import FOLDER, fail, heal, outcomes, run, started
from support.lossy_disk import LossyDisk, PowerLoss

from walrusmq.consensus.errors import MetadataDamaged
from walrusmq.consensus.metadata_log import MetadataLog
from walrusmq.segments.files import OsFiles


def test_a_damaged_folder_keeps_the_log_from_starting_and_leaves_nothing_open() -> None:
    async def scenario() -> None:
        disk = LossyDisk()
        log, _ = await started(disk)
        await log.propose(b"a")
        await log.stop()
        disk.names[f"{FOLDER}/{1:020d}.log"].cached[-1] ^= 1
        threads = threading.active_count()
        with pytest.raises(MetadataDamaged):
            await started(disk)
        assert not disk.open_files
        assert threading.active_count() == threads

    run(scenario())


@pytest.mark.parametrize("ending", ["stop", "kill", "crash"])
def test_twenty_starts_over_snapshots_and_purges_find_everything_each_time(ending: str) -> None:
    async def scenario() -> None:
        disk = LossyDisk()
        expected: list[bytes] = []
        for start in range(20):
            log, journal = await started(disk, snapshot_every_entries=25, log_file_bytes=500)
            assert journal.applied == expected
            assert log.applied_index == len(expected)
            for number in range(40):
                expected.append(b"%d.%d" % (start, number))
                await log.propose(expected[-1])
            await log.stop()
            if ending != "stop":
                getattr(disk, ending)()
        names = disk.listdir(FOLDER)
        assert sum(name.endswith(".snapshot") for name in names) == 2
        oldest = min(int(name.removesuffix(".log")) for name in names if name.endswith(".log"))
        assert oldest > 400

    run(scenario())


def test_seven_thousand_commands_are_all_there_after_a_restart(tmp_path: Path) -> None:
    async def scenario() -> None:
        folder = str(tmp_path / "metadata")
        log, journal = await started(OsFiles(), folder)
        expected = [b"topic %d" % number for number in range(7000)]
        for place in range(0, 7000, 500):
            await outcomes([log.propose(each) for each in expected[place : place + 500]])
        await log.stop()
        assert any(name.endswith(".snapshot") for name in os.listdir(folder))
        for _ in range(3):
            again, replayed = await started(OsFiles(), folder)
            assert replayed.applied == journal.applied == expected
            assert len(replayed.indexes) == 2000
            await again.stop()

    run(scenario())


def test_the_next_snapshot_waits_until_the_log_outweighs_the_last() -> None:
    async def scenario() -> None:
        disk = LossyDisk()
        log, _ = await started(disk, snapshot_every_entries=10)
        for number in range(300):
            await log.propose(b"%100d" % number)
        await log.stop()
        last = max(name for name in disk.listdir(FOLDER) if name.endswith(".snapshot"))
        assert 100 < int(last.removesuffix(".snapshot")) < 290

    run(scenario())


def test_a_snapshot_that_cant_be_written_costs_a_warning_and_no_proposal(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        disk = LossyDisk()
        log, journal = await started(disk, snapshot_every_entries=10)
        fail(disk, "replace")
        for number in range(30):
            await log.propose(b"%d" % number)
        await log.stop()
        heal(disk)
        again, replayed = await started(disk)
        assert replayed.applied == journal.applied
        await again.stop()

    with caplog.at_level(logging.WARNING):
        run(scenario())
    assert "a snapshot of the metadata at entry 10 couldn't be written" in caplog.text


def test_a_hundred_starts_and_stops_leave_no_thread_and_no_file(tmp_path: Path) -> None:
    async def scenario() -> None:
        folder = str(tmp_path / "metadata")
        log, _ = await started(OsFiles(), folder)
        await log.propose(b"a")
        await log.stop()
        threads, descriptors, tasks = threading.active_count(), open_descriptors(), len(asyncio.all_tasks())
        for _ in range(100):
            log, journal = await started(OsFiles(), folder)
            await log.propose(b"b")
            await log.stop()
        assert (threading.active_count(), open_descriptors(), len(asyncio.all_tasks())) == (threads, descriptors, tasks)
        assert len(journal.applied) == 101

    run(scenario())


def open_descriptors() -> int:
    return len(os.listdir("/dev/fd"))


@pytest.mark.parametrize("seed", range(60))
def test_a_crash_at_any_moment_loses_no_answered_proposal(seed: int) -> None:
    async def scenario() -> None:
        chance = random.Random(seed)
        disk = LossyDisk(seed)
        answered: list[bytes] = []
        for life in range(5):
            log, journal = await started(disk, snapshot_every_entries=20, log_file_bytes=600)
            assert [each for each in journal.applied if each in set(answered)] == answered
            crash_odds = chance.choice([0.0, 0.01, 0.03])

            lose_power_at_random(disk, chance, crash_odds)
            for number in range(40):
                futures = [log.propose(b"%d.%d.%d" % (life, number, place)) for place in range(chance.randint(1, 4))]
                await answered_or_dead(log, futures)
                answered += [future.result()[5:] for future in futures if future.done()]
                if not all(future.done() for future in futures):
                    break
            disk.crash()
            await abandon(log)

    run(scenario())


def lose_power_at_random(disk: LossyDisk, chance: random.Random, odds: float) -> None:
    """From some call on, no call to the disk returns."""
    is_down = threading.Event()

    def before_call(name: str) -> None:
        if is_down.is_set() or chance.random() < odds:
            is_down.set()
            raise PowerLoss

    disk.before_call = before_call


async def answered_or_dead(log: MetadataLog, futures: list[asyncio.Future[Any]]) -> None:
    assert log._driver is not None
    waiting: set[asyncio.Future[Any]] = {*futures}
    while waiting and not log._driver.done():
        await asyncio.wait({log._driver, *waiting}, return_when=asyncio.FIRST_COMPLETED)
        waiting = {future for future in waiting if not future.done()}


async def abandon(log: MetadataLog) -> None:
    """What a crash leaves of a log in this process: nothing that runs."""
    for task in (log._driver, log._snapshot_writer):
        if task is not None:
            task.cancel()
            await asyncio.wait([task])
            if not task.cancelled():
                task.exception()
    assert log._executor is not None
    log._executor.shutdown()
