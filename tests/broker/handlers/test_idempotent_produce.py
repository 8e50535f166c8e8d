"""Idempotent producers over the wire (KIP-98, C58): each batch once, in order, across rollovers and restarts."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from support.chains import sealed_of
from support.crash_disk import CrashDisk
from support.embedded import Wire, batch_of, create_topic, produce, running_node, settings
from support.reading import only_partition, read_all
from support.waiting import until

from walrusmq.broker.node import Node
from walrusmq.protocol.error_codes import ErrorCode
from walrusmq.protocol.messages.init_producer_id import InitProducerIdRequest
from walrusmq.protocol.records.batch import Producer

REMEMBERED = 5
MAX_SEQUENCE = 2**31 - 1


async def new_producer(wire: Wire) -> int:
    answer = await wire.ask(InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000), 4)
    assert (answer.error_code, answer.producer_epoch) == (0, 0)
    producer_id: int = answer.producer_id
    return producer_id


async def send(
    wire: Wire, producer_id: int, sequence: int, *values: bytes, epoch: int = 0, **how: Any
) -> tuple[int, int]:
    """One batch to ``t``: error code and base offset."""
    batch = batch_of(*(values or (b"%d" % sequence,)), producer=Producer(producer_id, epoch, sequence))
    part = only_partition(await wire.ask(produce("t", batch, **how), 9))
    return part.error_code, part.base_offset


async def roll(node: Node) -> None:
    before = len(sealed_of(node, "t"))
    await node.rollovers.begin(node.led.by_name["t"][0], "manual")
    assert len(sealed_of(node, "t")) == before + 1


def test_a_repeat_is_stored_once_and_answered_with_its_first_offset(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running_node(tmp_path) as node, await Wire.to(node) as wire:
            await create_topic(wire, "t")
            await wire.ask(produce("t", batch_of(b"of another")), 9)
            producer = await new_producer(wire)
            for _ in range(3):
                assert await send(wire, producer, 0, b"a", b"b") == (0, 1)
            assert await send(wire, producer, 2, b"c") == (0, 3)
            assert await send(wire, producer, 0, b"a", b"b") == (0, 1)
            assert [value for _, value in await read_all(wire, "t")] == [b"of another", b"a", b"b", b"c"]

    asyncio.run(scenario())


def test_a_gap_is_refused_and_what_fills_it_is_taken(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running_node(tmp_path) as node, await Wire.to(node) as wire:
            await create_topic(wire, "t")
            producer = await new_producer(wire)
            assert await send(wire, producer, 0) == (0, 0)
            assert await send(wire, producer, 2) == (ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1)
            assert await send(wire, producer, 1) == (0, 1)
            assert await send(wire, producer, 2) == (0, 2)

    asyncio.run(scenario())


def test_a_producer_that_the_partition_doesnt_know_may_begin_anywhere(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running_node(tmp_path) as node, await Wire.to(node) as wire:
            await create_topic(wire, "t")
            producer = await new_producer(wire)
            assert await send(wire, producer, 1234) == (0, 0)
            assert await send(wire, producer, 1235) == (0, 1)
            assert await send(wire, producer, 0) == (ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1)

    asyncio.run(scenario())


def test_epochs_only_grow_and_each_begins_at_0(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running_node(tmp_path) as node, await Wire.to(node) as wire:
            await create_topic(wire, "t")
            producer = await new_producer(wire)
            assert await send(wire, producer, 0) == (0, 0)
            assert await send(wire, producer, 1, epoch=1) == (ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1)
            assert await send(wire, producer, 0, epoch=1) == (0, 1)
            assert await send(wire, producer, 1, epoch=0) == (ErrorCode.INVALID_PRODUCER_EPOCH, -1)

    asyncio.run(scenario())


def test_sequences_wrap_round(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running_node(tmp_path) as node, await Wire.to(node) as wire:
            await create_topic(wire, "t")
            producer = await new_producer(wire)
            assert await send(wire, producer, MAX_SEQUENCE - 1, b"a", b"b", b"c") == (0, 0)
            assert await send(wire, producer, MAX_SEQUENCE - 1, b"a", b"b", b"c") == (0, 0)
            assert await send(wire, producer, 1) == (0, 3)

    asyncio.run(scenario())


def test_the_last_five_batches_are_recognised_in_each_partition_by_itself(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running_node(tmp_path) as node, await Wire.to(node) as wire:
            await create_topic(wire, "t", 2)
            producer = await new_producer(wire)
            for sequence in range(REMEMBERED + 1):
                for partition in (0, 1):
                    assert await send(wire, producer, sequence, partition=partition) == (0, sequence)
            assert await send(wire, producer, 0) == (ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1)
            for sequence in range(1, REMEMBERED + 1):
                for partition in (0, 1):
                    assert await send(wire, producer, sequence, partition=partition) == (0, sequence)

    asyncio.run(scenario())


def test_acks_0_stores_a_repeat_once_too(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running_node(tmp_path) as node, await Wire.to(node) as wire:
            await create_topic(wire, "t")
            batch = batch_of(b"x", producer=Producer(await new_producer(wire), 0, 0))
            for _ in range(3):
                wire.send(produce("t", batch, acks=0), 9)
            assert only_partition(await wire.ask(produce("t", batch), 9)).base_offset == 0
            assert await read_all(wire, "t") == [(0, b"x")]

    asyncio.run(scenario())


@pytest.mark.parametrize("rollovers", [0, 1, 3])
@pytest.mark.parametrize("end", ["stop", "kill", "power"])
def test_repeats_and_gaps_are_known_after_rollovers_and_any_end(tmp_path: Path, rollovers: int, end: str) -> None:
    async def scenario() -> None:
        disk = CrashDisk(tmp_path, rollovers)
        node = Node(settings(tmp_path), files=disk)
        await node.start()
        async with await Wire.to(node) as wire:
            await create_topic(wire, "t")
            producer = await new_producer(wire)
            for sequence in range(REMEMBERED):
                assert await send(wire, producer, sequence) == (0, sequence)
            for _ in range(rollovers):
                await roll(node)
        if end != "stop":
            disk.power_off()
        await node.stop()
        if end == "kill":
            disk.restart_process()
        elif end == "power":
            disk.power_on()
        async with running_node(tmp_path, files=disk) as node, await Wire.to(node) as wire:
            for sequence in range(REMEMBERED):
                assert await send(wire, producer, sequence) == (0, sequence)
            assert await send(wire, producer, REMEMBERED + 1) == (ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1)
            assert await send(wire, producer, REMEMBERED) == (0, REMEMBERED)
            assert len(await read_all(wire, "t")) == REMEMBERED + 1

    asyncio.run(scenario())


def test_a_batch_and_its_repeat_that_both_wait_for_a_rollover_are_stored_once(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running_node(tmp_path) as node, await Wire.to(node) as wire, await Wire.to(node) as again:
            await create_topic(wire, "t")
            producer = await new_producer(wire)
            assert await send(wire, producer, 0) == (0, 0)
            batch = batch_of(b"1", producer=Producer(producer, 0, 1))
            node.led.by_name["t"][0].stop()  # as a rollover does first
            wire.send(produce("t", batch), 9)
            again.send(produce("t", batch), 9)
            await until(lambda: node.held_appends.held_bytes == 2 * len(batch))
            await roll(node)
            for each in (wire, again):
                part = only_partition(await each.receive(produce("t", None), 9))
                assert (part.error_code, part.base_offset) == (0, 1)
            assert await read_all(wire, "t") == [(0, b"0"), (1, b"1")]

    asyncio.run(scenario())


def test_five_in_flight_through_many_rollovers_keep_their_order(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running_node(tmp_path) as node, await Wire.to(node) as wire:
            await create_topic(wire, "t", walrus_segment_entries="1")
            producer = await new_producer(wire)
            for start in range(0, 200, REMEMBERED):
                for sequence in range(start, start + REMEMBERED):
                    batch = batch_of(b"%d" % sequence, producer=Producer(producer, 0, sequence))
                    wire.send(produce("t", batch), 9)
                for sequence in range(start, start + REMEMBERED):
                    part = only_partition(await wire.receive(produce("t", None), 9))
                    assert (part.error_code, part.base_offset) == (0, sequence)
            assert await read_all(wire, "t") == [(sequence, b"%d" % sequence) for sequence in range(200)]
            assert len(sealed_of(node, "t")) >= 99

    asyncio.run(scenario())


def test_no_producer_id_comes_twice_over_restarts(tmp_path: Path) -> None:
    async def scenario() -> None:
        ids: list[int] = []
        for _ in range(4):
            async with running_node(tmp_path) as node, await Wire.to(node) as wire:
                ids += [await new_producer(wire) for _ in range(20)]
        assert len(set(ids)) == len(ids)

    asyncio.run(scenario())
