"""Producer ids out of blocks."""

from __future__ import annotations

import asyncio

import pytest

from walrusmq.broker.producer_ids import BLOCK_SIZE, ProducerIds
from walrusmq.protocol.errors import KafkaStorageError


class Blocks:
    """Gives out blocks one after the other, and fails when told to."""

    def __init__(self) -> None:
        self.given = 0
        self.failures = 0

    async def allocate(self, count: int) -> int:
        await asyncio.sleep(0)
        if self.failures:
            self.failures -= 1
            raise KafkaStorageError("the disk refused")
        self.given += 1
        return (self.given - 1) * count


def test_there_is_nothing_to_take_before_the_first_block() -> None:
    assert ProducerIds().take() is None


def test_a_block_is_handed_out_before_the_next_is_asked_for() -> None:
    async def scenario() -> tuple[list[int], int, int]:
        ids, blocks = ProducerIds(), Blocks()
        got = [await ids.next(blocks.allocate) for _ in range(BLOCK_SIZE)]
        given = blocks.given
        return got, given, await ids.next(blocks.allocate)

    got, given, after = asyncio.run(scenario())
    assert got == list(range(BLOCK_SIZE))
    assert given == 1
    assert after == BLOCK_SIZE


def test_many_who_wait_at_once_share_a_block_and_get_different_ids() -> None:
    async def scenario() -> tuple[list[int], int]:
        ids, blocks = ProducerIds(), Blocks()
        got = await asyncio.gather(*(ids.next(blocks.allocate) for _ in range(BLOCK_SIZE + 500)))
        return got, blocks.given

    got, given = asyncio.run(scenario())
    assert sorted(got) == list(range(BLOCK_SIZE + 500))
    assert given == 2


def test_a_refused_block_fails_one_request_and_is_asked_for_again() -> None:
    async def scenario() -> int:
        ids, blocks = ProducerIds(), Blocks()
        blocks.failures = 1
        with pytest.raises(KafkaStorageError):
            await ids.next(blocks.allocate)
        return await ids.next(blocks.allocate)

    assert asyncio.run(scenario()) == 0
