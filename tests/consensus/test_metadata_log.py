"""The metadata log of a group of one: what a proposer may rely on, and what every start finds."""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import random
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from support.lossy_disk import LossyDisk, PowerLoss

from walrusmq.consensus.durable_file import Files
from walrusmq.consensus.entry import MAX_COMMAND_BYTES
from walrusmq.consensus.errors import (
    CommandTooLarge,
    LogNotRunning,
    MetadataDamaged,
    ProposalRefused,
    ProposalUncertain,
    TooManyProposals,
)
from walrusmq.consensus.metadata_log import MAX_WAITING_PROPOSALS, MetadataLog
from walrusmq.protocol.errors import InvalidRequest
from walrusmq.segments.files import OsFiles

FOLDER = "/data/metadata"
PATIENCE_S = 20.0


class Journal:
    """A state machine that remembers what it was given. It refuses b"no", and can't follow b"poison"."""

    def __init__(self) -> None:
        self.applied: list[bytes] = []
        self.indexes: list[int] = []
        self.on_apply: Callable[[bytes], None] = lambda payload: None

    def apply(self, index: int, term: int, payload: bytes) -> bytes:
        assert term == 1
        self.indexes.append(index)
        if payload == b"no":
            raise InvalidRequest("refused by the state machine")
        if payload == b"poison":
            raise RuntimeError("a command from the future")
        self.applied.append(payload)
        self.on_apply(payload)
        return b"done " + payload

    def snapshot(self) -> bytes:
        return b"\n".join(self.applied)

    def restore(self, snapshot: bytes) -> None:
        self.applied = snapshot.split(b"\n")


def make_log(journal: Journal, files: Files, folder: str = FOLDER, **settings: Any) -> MetadataLog:
    return MetadataLog(
        folder, files, apply=journal.apply, take_snapshot=journal.snapshot, restore=journal.restore, **settings
    )


async def started(files: Files, folder: str = FOLDER, **settings: Any) -> tuple[MetadataLog, Journal]:
    journal = Journal()
    log = make_log(journal, files, folder, **settings)
    await log.start()
    return log, journal


def run(scenario: Awaitable[None]) -> None:
    async def bounded() -> None:
        await asyncio.wait_for(scenario, PATIENCE_S)

    asyncio.run(bounded())


def fail(disk: LossyDisk, call: str) -> None:
    def before_call(name: str) -> None:
        if name == call:
            raise OSError(errno.EIO, "injected")

    disk.before_call = before_call


def heal(disk: LossyDisk) -> None:
    disk.before_call = lambda name: None


async def outcomes(futures: list[asyncio.Future[Any]]) -> list[Any]:
    return await asyncio.gather(*futures, return_exceptions=True)


def test_a_proposal_gives_what_applying_it_gave() -> None:
    async def scenario() -> None:
        log, journal = await started(LossyDisk())
        assert await log.propose(b"a") == b"done a"
        assert (log.applied_index, log.term, journal.applied) == (1, 1, [b"a"])
        await log.stop()

    run(scenario())


def test_proposals_are_applied_in_their_order_and_synced_together() -> None:
    async def scenario() -> None:
        log, journal = await started(LossyDisk())
        payloads = [b"%d" % number for number in range(1000)]
        assert await outcomes([log.propose(payload) for payload in payloads]) == [b"done " + each for each in payloads]
        assert journal.applied == payloads
        assert journal.indexes == list(range(1, 1001))
        assert log.sync_count == 1
        await log.stop()

    run(scenario())


def test_a_refused_command_fails_its_proposer_alone_now_and_at_every_start() -> None:
    async def scenario() -> None:
        disk = LossyDisk()
        log, journal = await started(disk)
        first, refusal, last = await outcomes([log.propose(each) for each in (b"a", b"no", b"b")])
        assert (first, type(refusal), last) == (b"done a", InvalidRequest, b"done b")
        await log.stop()
        again, replayed = await started(disk)
        assert replayed.applied == journal.applied == [b"a", b"b"]
        assert again.applied_index == 3
        await again.stop()

    run(scenario())


def test_nothing_is_answered_or_applied_before_its_sync_has_returned() -> None:
    async def scenario() -> None:
        disk = LossyDisk()
        log, journal = await started(disk)
        syncing, held_back = threading.Event(), threading.Event()

        def before_call(name: str) -> None:
            if name == "fdatasync":
                syncing.set()
                assert held_back.wait(PATIENCE_S)

        disk.before_call = before_call
        answer = log.propose(b"a")
        await asyncio.get_running_loop().run_in_executor(None, syncing.wait, PATIENCE_S)
        for _ in range(10):
            await asyncio.sleep(0)
        assert not answer.done()
        assert journal.applied == []
        held_back.set()
        assert await answer == b"done a"
        await log.stop()

    run(scenario())


def test_what_gathers_while_a_sync_runs_shares_the_next_one() -> None:
    async def scenario() -> None:
        disk = LossyDisk()
        log, _ = await started(disk)
        held_back = threading.Event()
        disk.before_call = lambda name: None if name != "fdatasync" else assert_true(held_back.wait(PATIENCE_S))
        answers = [log.propose(b"first")]
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        answers += [log.propose(b"%d" % number) for number in range(100)]
        held_back.set()
        await outcomes(answers)
        assert log.sync_count == 2
        await log.stop()

    run(scenario())


def assert_true(value: bool) -> None:
    assert value


def test_a_proposal_made_while_a_command_is_applied_comes_after_it() -> None:
    async def scenario() -> None:
        log, journal = await started(LossyDisk())
        inner: list[asyncio.Future[Any]] = []

        def on_apply(payload: bytes) -> None:
            if payload == b"outer":
                inner.append(log.propose(b"inner"))

        journal.on_apply = on_apply
        await outcomes([log.propose(b"outer"), log.propose(b"beside")])
        assert await inner[0] == b"done inner"
        assert journal.applied == [b"outer", b"beside", b"inner"]
        await log.stop()

    run(scenario())


def test_a_proposer_that_gave_up_doesnt_disturb_the_others() -> None:
    async def scenario() -> None:
        log, journal = await started(LossyDisk())
        gone, other = log.propose(b"gone"), log.propose(b"other")
        gone.cancel()
        assert await other == b"done other"
        assert journal.applied == [b"gone", b"other"]
        await log.stop()

    run(scenario())


def test_a_full_disk_refuses_for_certain_says_so_once_and_resumes_by_itself(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        disk = LossyDisk()
        log, journal = await started(disk)
        await log.propose(b"a")
        disk.free_space = 10
        for _ in range(3):
            (refusal,) = await outcomes([log.propose(b"refused")])
            assert type(refusal) is ProposalRefused
            assert "No space left on device" in str(refusal)
            assert log.is_disk_failing
        disk.free_space = None
        assert await log.propose(b"b") == b"done b"
        assert not log.is_disk_failing
        await log.stop()
        _, replayed = await started(disk)
        assert replayed.applied == journal.applied == [b"a", b"b"]

    with caplog.at_level(logging.WARNING):
        run(scenario())
    assert [record.levelname for record in caplog.records] == ["ERROR", "WARNING"]


def test_a_failed_sync_leaves_the_outcome_unknown_and_later_proposals_go_through() -> None:
    async def scenario() -> None:
        disk = LossyDisk()
        log, journal = await started(disk)
        await log.propose(b"a")
        fail(disk, "fdatasync")
        for answer in await outcomes([log.propose(b"unknown 1"), log.propose(b"unknown 2")]):
            assert type(answer) is ProposalUncertain
        (refusal,) = await outcomes([log.propose(b"refused")])
        assert type(refusal) is ProposalRefused
        heal(disk)
        assert await log.propose(b"b") == b"done b"
        assert log.applied_index == 2
        await log.stop()
        disk.crash()
        again, replayed = await started(disk)
        assert replayed.applied == journal.applied == [b"a", b"b"]
        await again.stop()

    run(scenario())


def test_a_command_above_the_limit_is_refused_and_one_at_the_limit_is_taken() -> None:
    async def scenario() -> None:
        disk = LossyDisk()
        log, _ = await started(disk)
        largest = bytes(MAX_COMMAND_BYTES)
        taken, refused = await outcomes([log.propose(largest), log.propose(largest + b"!")])
        assert taken == b"done " + largest
        assert type(refused) is CommandTooLarge
        await log.stop()
        _, replayed = await started(disk)
        assert replayed.applied == [largest]

    run(scenario())


def test_proposals_above_the_limit_are_refused_at_once_and_the_others_go_through() -> None:
    async def scenario() -> None:
        log, journal = await started(LossyDisk())
        answers = await outcomes([log.propose(b"x") for _ in range(MAX_WAITING_PROPOSALS + 5)])
        assert [type(answer) for answer in answers[MAX_WAITING_PROPOSALS:]] == [TooManyProposals] * 5
        assert len(journal.applied) == MAX_WAITING_PROPOSALS
        assert await log.propose(b"later") == b"done later"
        await log.stop()

    run(scenario())


def test_large_proposals_are_limited_by_their_bytes() -> None:
    async def scenario() -> None:
        log, journal = await started(LossyDisk())
        answers = await outcomes([log.propose(bytes(MAX_COMMAND_BYTES)) for _ in range(70)])
        assert [type(answer) for answer in answers[64:]] == [TooManyProposals] * 6
        assert len(journal.applied) == 64
        assert log.sync_count == 16
        await log.stop()

    run(scenario())


def test_a_log_that_isnt_running_refuses() -> None:
    async def scenario() -> None:
        journal = Journal()
        log = make_log(journal, LossyDisk())
        assert [type(answer) for answer in await outcomes([log.propose(b"early")])] == [LogNotRunning]
        await log.start()
        await log.stop()
        assert [type(answer) for answer in await outcomes([log.propose(b"late")])] == [LogNotRunning]
        assert journal.applied == []

    run(scenario())


def test_stopping_finishes_what_was_proposed_before() -> None:
    async def scenario() -> None:
        disk = LossyDisk()
        log, _ = await started(disk)
        answers = [log.propose(b"%d" % number) for number in range(100)]
        await log.stop()
        assert all(answer.result() for answer in answers)
        assert not disk.open_files

    run(scenario())


def test_a_command_that_this_node_cant_follow_ends_its_log_and_is_told() -> None:
    async def scenario() -> None:
        disk = LossyDisk()
        failures: list[BaseException] = []
        log, journal = await started(disk, on_failure=failures.append)
        answers = await outcomes([log.propose(each) for each in (b"a", b"poison", b"b")])
        assert [type(answer) for answer in answers[1:]] == [ProposalUncertain, ProposalUncertain]
        assert [str(failure) for failure in failures] == ["a command from the future"]
        assert (log.applied_index, journal.applied) == (1, [b"a"])
        (refusal,) = await outcomes([log.propose(b"c")])
        assert type(refusal) is LogNotRunning
        assert "a command from the future" in str(refusal)
        await log.stop()
        with pytest.raises(RuntimeError, match="a command from the future"):
            await started(disk)
        assert not disk.open_files

    run(scenario())


def test_a_snapshot_that_cant_be_taken_ends_the_log_and_is_told() -> None:
    async def scenario() -> None:
        failures: list[BaseException] = []
        journal = Journal()
        journal.snapshot = lambda: bytes(1 // 0)  # type: ignore[method-assign]
        log = make_log(journal, LossyDisk(), on_failure=failures.append, snapshot_every_entries=1)
        await log.start()
        assert await log.propose(b"a") == b"done a"
        (refusal,) = await outcomes([log.propose(b"b")])
        assert type(refusal) is LogNotRunning
        assert [type(failure) for failure in failures] == [ZeroDivisionError]
        await log.stop()

    run(scenario())


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
        threads, descriptors = threading.active_count(), open_descriptors()
        for _ in range(100):
            log, journal = await started(OsFiles(), folder)
            await log.propose(b"b")
            await log.stop()
        assert (threading.active_count(), open_descriptors()) == (threads, descriptors)
        assert len(journal.applied) == 101
        assert len(asyncio.all_tasks()) == 1 + (asyncio.current_task() is not None)

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
