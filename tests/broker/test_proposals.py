"""Several proposals at once."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from walrusmq.broker.proposals import propose_each
from walrusmq.protocol.errors import ErrorCode, KafkaError, KafkaStorageError, TopicAlreadyExists


def test_each_command_has_its_own_outcome() -> None:
    async def propose(command: str) -> str:
        if command == "bad":
            raise TopicAlreadyExists("there")
        return command.upper()

    good, bad, last = asyncio.run(propose_each(propose, ["good", "bad", "last"], 1000))
    assert (good, last) == ("GOOD", "LAST")
    assert isinstance(bad, TopicAlreadyExists)


def test_all_are_under_way_before_the_first_is_done() -> None:
    seen: list[int] = []
    all_came = asyncio.Event()

    async def propose(command: int) -> int:
        seen.append(command)
        if len(seen) == 3:
            all_came.set()
        await all_came.wait()
        return command

    assert asyncio.run(propose_each(propose, [1, 2, 3], 10_000)) == [1, 2, 3]
    assert seen == [1, 2, 3]


def test_an_outcome_that_is_not_known_in_time_says_so() -> None:
    async def scenario() -> Any:
        hold = asyncio.Event()
        ended = asyncio.Event()

        async def propose(command: Any) -> Any:
            await hold.wait()
            ended.set()
            raise KafkaStorageError("late")

        outcomes = await propose_each(propose, ["x"], 1)
        hold.set()
        await ended.wait()
        return outcomes

    [outcome] = asyncio.run(scenario())
    assert isinstance(outcome, KafkaError)
    assert outcome.code is ErrorCode.REQUEST_TIMED_OUT


def test_a_defect_is_not_an_outcome() -> None:
    async def propose(command: Any) -> Any:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        asyncio.run(propose_each(propose, ["x"], 1000))


def test_nothing_is_proposed_for_no_commands() -> None:
    assert asyncio.run(propose_each(asyncio.sleep, [], 1000)) == []
