"""What a request costs doesn't depend on how many partitions and segments there are (issue: cost stays flat)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from support.chains import no_rollover, sealed_of
from support.counted_work import CountedFiles, Work, counted
from support.embedded import Wire, batch_of, create_topic, fetch, produce, running_node
from support.reading import found_in, only_partition

from walrusmq.broker.commands import NamedValue, ResourceType, SetConfigs
from walrusmq.broker.node import Node

FEW_PARTITIONS, MANY_PARTITIONS = 10, 2000
FEW_SEGMENTS, MANY_SEGMENTS = 1, 500
REQUESTS = 200
SPREAD = 200
"""Partitions that are written to in turn: fewer than files may be open anywhere."""
NEARLY = 1.2
"""The same within 20 %."""
NEVER_MS = "1000000000"


@asynccontextmanager
async def counted_node(
    folder: Path, partitions: int = 1, **configs: str
) -> AsyncIterator[tuple[Node, CountedFiles, Wire]]:
    """A node with a topic ``t``, whose disk counts."""
    files = CountedFiles()
    async with running_node(folder, files=files, monitor_check_ms=NEVER_MS) as node, await Wire.to(node) as wire:
        await create_topic(wire, "t", partitions, **configs)
        yield node, files, wire


async def put(wire: Wire, times: int, partitions: int = 1) -> None:
    """Produce so many records, one request each, to the first partitions in turn."""
    for number in range(times):
        request = produce("t", batch_of(bytes(100)), partition=number % partitions)
        assert only_partition(await wire.ask(request, 9)).error_code == 0


async def cost_of_produce(files: CountedFiles, wire: Wire, partitions: int = 1) -> Work:
    """The work of REQUESTS requests, made to so many partitions in turn, which have all had some before."""
    await put(wire, 2 * partitions, partitions)
    with counted(files) as work:
        await put(wire, REQUESTS, partitions)
    return work


async def cost_of_reading(files: CountedFiles, wire: Wire, offset: int) -> Work:
    """The work of REQUESTS fetches from one offset, which has been read before."""
    request = fetch("t", offset, partition_max_bytes=1)
    await wire.ask(request, 12)
    with counted(files) as work:
        for _ in range(REQUESTS):
            assert found_in(only_partition(await wire.ask(request, 12)))[0][0] == offset
    return work


def assert_same(one: Work, other: Work) -> None:
    assert one.disk == other.disk
    low, high = sorted((one.calls, other.calls))
    assert low * NEARLY >= high, f"{low / REQUESTS} calls and {high / REQUESTS}"


async def seal(node: Node, wire: Wire, segments: int) -> None:
    """Have so many sealed segments of two records each, then no more."""
    await put(wire, 2 * segments)
    await no_rollover(node)
    assert len(sealed_of(node, "t")) == segments
    large = NamedValue(name="walrus.segment.entries", value="1000000")
    await node.propose(SetConfigs(resource_type=ResourceType.TOPIC, name="t", configs=[large]))


@pytest.mark.parametrize("is_spread", [False, True], ids=["to one", "to many in turn"])
def test_producing_costs_the_same_with_ten_and_with_two_thousand_partitions(tmp_path: Path, is_spread: bool) -> None:
    async def cost(partitions: int) -> Work:
        async with counted_node(tmp_path / f"{partitions}", partitions) as (_, files, wire):
            return await cost_of_produce(files, wire, min(partitions, SPREAD) if is_spread else 1)

    assert_same(asyncio.run(cost(FEW_PARTITIONS)), asyncio.run(cost(MANY_PARTITIONS)))


def test_producing_costs_the_same_after_one_and_after_five_hundred_segments(tmp_path: Path) -> None:
    async def cost(segments: int) -> Work:
        folder = tmp_path / f"{segments}"
        async with counted_node(folder, walrus_segment_entries="1") as (node, files, wire):
            await seal(node, wire, segments)
            return await cost_of_produce(files, wire)

    assert_same(asyncio.run(cost(FEW_SEGMENTS)), asyncio.run(cost(MANY_SEGMENTS)))


def test_reading_costs_the_same_from_the_middle_of_a_long_chain_and_from_its_end(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with counted_node(tmp_path, walrus_segment_entries="1") as (node, files, wire):
            await seal(node, wire, MANY_SEGMENTS)
            last = await cost_of_reading(files, wire, 2 * MANY_SEGMENTS - 2)
            assert_same(last, await cost_of_reading(files, wire, MANY_SEGMENTS))
            assert_same(last, await cost_of_reading(files, wire, 0))

    asyncio.run(scenario())


def test_reading_costs_the_same_from_a_short_chain_and_from_a_long_one(tmp_path: Path) -> None:
    async def cost(segments: int) -> Work:
        folder = tmp_path / f"{segments}"
        async with counted_node(folder, walrus_segment_entries="1") as (node, files, wire):
            await seal(node, wire, segments)
            return await cost_of_reading(files, wire, 0)

    assert_same(asyncio.run(cost(FEW_SEGMENTS)), asyncio.run(cost(MANY_SEGMENTS)))


def test_a_request_for_one_partition_makes_one_write_and_shares_its_sync(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with counted_node(tmp_path) as (_, files, wire):
            work = await cost_of_produce(files, wire)
            assert work.disk == {"pwrite": REQUESTS, "fdatasync": REQUESTS}
            with counted(files) as work:
                for _ in range(REQUESTS):
                    wire.send(produce("t", batch_of(b"x")), 9)
                for _ in range(REQUESTS):
                    await wire.receive(produce("t", None), 9)
            assert work.disk["pwrite"] == REQUESTS
            assert work.disk["fdatasync"] < REQUESTS / 4

    asyncio.run(scenario())


def test_an_idle_node_touches_no_file(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with counted_node(tmp_path, 100) as (_, files, wire):
            await put(wire, 100, 100)
            before = files.calls.copy()
            await asyncio.sleep(0.5)
            assert files.calls == before

    asyncio.run(scenario())
