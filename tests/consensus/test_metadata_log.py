"""The metadata log of a group of one: what a proposer may rely on."""

from __future__ import annotations

import asyncio
import logging
import threading
from typing import Any

import pytest
from support.journal import PATIENCE_S, Journal, fail, heal, make_log, outcomes, run, started
from support.lossy_disk import LossyDisk

from walrusmq.consensus.entry import MAX_COMMAND_BYTES
from walrusmq.consensus.errors import (
    CommandTooLarge,
    LogNotRunning,
    ProposalRefused,
    ProposalUncertain,
    TooManyProposals,
)
from walrusmq.consensus.metadata_log import MAX_WAITING_PROPOSALS
from walrusmq.protocol.errors import InvalidRequest


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
