"""Fetches that wait: for how much, for how long, and what wakes them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from support.embedded import Wire, batch_of, create_topic, fetch, produce, running_node
from support.reading import found_in, only_partition
from support.waiting import until

from walrusmq.broker.node import Node
from walrusmq.protocol.error_codes import ErrorCode
from walrusmq.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from walrusmq.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic

FOREVER_MS = 200_000
BATCH = len(batch_of(bytes(1000)))
MIB = 1 << 20


@asynccontextmanager
async def a_node(folder: Path, **given: Any) -> AsyncIterator[tuple[Node, Wire, Wire]]:
    """A node with a topic ``t`` of three partitions, a connection that writes and one that reads."""
    async with running_node(folder, **given) as node, await Wire.to(node) as writer, await Wire.to(node) as reader:
        await create_topic(writer, "t", 3)
        yield node, writer, reader


async def put(wire: Wire, *, partition: int = 0, size: int = 1000) -> None:
    part = only_partition(await wire.ask(produce("t", batch_of(bytes(size)), partition=partition), 9))
    assert part.error_code == 0


def from_all(offset: int, **how: Any) -> FetchRequest:
    """All three partitions from one offset."""
    wanted = [FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=MIB) for index in range(3)]
    return FetchRequest(topics=[FetchTopic(topic="t", partitions=wanted)], **how)


def test_it_is_answered_as_soon_as_one_of_its_partitions_has_something(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with a_node(tmp_path) as (node, writer, reader):
            request = from_all(0, max_wait_ms=FOREVER_MS, min_bytes=1)
            reader.send(request, 11)
            await until(lambda: node.waiting_fetches)
            await put(writer, partition=2)
            parts = (await reader.receive(request, 11)).responses[0].partitions
            assert [(part.high_watermark, len(found_in(part))) for part in parts] == [(0, 0), (0, 0), (1, 1)]
            assert not node.waiting_fetches

    asyncio.run(scenario())


def test_it_waits_for_min_bytes_over_all_its_partitions(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with a_node(tmp_path) as (node, writer, reader):
            request = from_all(0, max_wait_ms=FOREVER_MS, min_bytes=3 * BATCH)
            reader.send(request, 11)
            await until(lambda: node.waiting_fetches)
            for partition in (0, 1):
                await put(writer, partition=partition)
            assert node.waiting_fetches
            await put(writer, partition=0)
            parts = (await reader.receive(request, 11)).responses[0].partitions
            assert [len(found_in(part)) for part in parts] == [2, 1, 0]

    asyncio.run(scenario())


def test_when_its_time_is_up_it_is_answered_with_what_there_is(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with a_node(tmp_path) as (_, writer, reader):
            await put(writer)
            began = time.monotonic()
            data = only_partition(await reader.ask(fetch("t", 0, max_wait_ms=120, min_bytes=MIB), 12))
            assert time.monotonic() - began >= 0.119
            assert len(found_in(data)) == 1
            data = only_partition(await reader.ask(fetch("t", 1, max_wait_ms=10), 12))
            assert (data.error_code, found_in(data)) == (0, [])

    asyncio.run(scenario())


@pytest.mark.parametrize("how", [{"max_wait_ms": 0, "min_bytes": MIB}, {"max_wait_ms": FOREVER_MS, "min_bytes": 0}])
def test_without_a_time_or_an_amount_to_wait_for_it_is_answered_at_once(tmp_path: Path, how: dict[str, int]) -> None:
    async def scenario() -> None:
        async with a_node(tmp_path) as (_, _, reader):
            assert found_in(only_partition(await reader.ask(fetch("t", 0, **how), 12))) == []

    asyncio.run(scenario())


def test_a_limit_that_is_reached_is_enough_although_batches_dont_fill_it(tmp_path: Path) -> None:
    """fetch.min.bytes may be as large as max.partition.fetch.bytes: Kafka's answer is then cut inside of a batch."""

    async def scenario() -> None:
        async with a_node(tmp_path) as (_, writer, reader):
            for _ in range(3):
                await put(writer, size=600_000)
            for more in ({"partition_max_bytes": MIB}, {"max_bytes": MIB}):
                request = fetch("t", 0, max_wait_ms=FOREVER_MS, min_bytes=MIB, **more)
                assert len(found_in(only_partition(await reader.ask(request, 12)))) == 1
            await put(writer, partition=1, size=600_000)
            request = from_all(0, max_wait_ms=FOREVER_MS, min_bytes=2 * MIB, max_bytes=2 * MIB)
            parts = (await reader.ask(request, 11)).responses[0].partitions
            assert [len(found_in(part)) for part in parts] == [1, 1, 0]

    asyncio.run(scenario())


def test_a_sealed_segments_end_is_enough_for_those_who_read_from_it(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with a_node(tmp_path) as (node, writer, reader):
            await put(writer)
            await node.rollovers.begin(node.led.by_name["t"][0], "manual")
            await put(writer)
            request = fetch("t", 0, max_wait_ms=FOREVER_MS, min_bytes=MIB)
            assert [offset for offset, _ in found_in(only_partition(await reader.ask(request, 12)))] == [0]

    asyncio.run(scenario())


def test_a_deleted_topic_wakes_who_waits_for_it(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with a_node(tmp_path) as (node, writer, reader), await Wire.to(node) as by_id:
            named = fetch("t", 0, max_wait_ms=FOREVER_MS)
            identified = fetch("t", 0, max_wait_ms=FOREVER_MS)
            identified.topics[0].topic_id = node.image.topics_by_name["t"].id
            reader.send(named, 12)
            by_id.send(identified, 13)
            await until(lambda: len(node.waiting_fetches) == 2)
            await writer.ask(DeleteTopicsRequest(topics=[DeleteTopicState(name="t")], timeout_ms=10_000), 6)
            data = only_partition(await reader.receive(named, 12))
            assert data.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            data = only_partition(await by_id.receive(identified, 13))
            assert data.error_code == ErrorCode.UNKNOWN_TOPIC_ID
            assert not node.waiting_fetches

    asyncio.run(scenario())


def test_one_that_names_a_partition_twice_is_woken_once(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with a_node(tmp_path) as (node, writer, reader):
            request = fetch("t", 0, max_wait_ms=FOREVER_MS)
            request.topics += fetch("t", 0).topics
            reader.send(request, 12)
            await until(lambda: node.waiting_fetches)
            await put(writer)
            answer = await reader.receive(request, 12)
            assert sum(len(found_in(part)) for topic in answer.responses for part in topic.partitions) == 1
            await put(writer)
            assert not node.waiting_fetches
            assert found_in(only_partition(await reader.ask(fetch("t", 1), 12)))

    asyncio.run(scenario())


def test_many_waiting_at_one_end_all_get_the_same(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with a_node(tmp_path) as (node, writer, _):
            readers = [await Wire.to(node) for _ in range(50)]
            for reader in readers:
                reader.send(fetch("t", 0, max_wait_ms=FOREVER_MS), 12)
            await until(lambda: len(node.waiting_fetches) == 50)
            await put(writer)
            for reader in readers:
                assert len(found_in(only_partition(await reader.receive(fetch("t", 0), 12)))) == 1
                reader.writer.close()
            partition = node.led.by_name["t"][0]
            assert not partition._watchers, "nobody watches any more"

    asyncio.run(scenario())


def test_waiting_longer_than_the_clock_counts_is_bounded(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with a_node(tmp_path) as (node, writer, reader):
            reader.send(fetch("t", 0, max_wait_ms=2**31 - 1), 12)
            await until(lambda: node.waiting_fetches)
            await put(writer)
            assert found_in(only_partition(await reader.receive(fetch("t", 0), 12)))

    asyncio.run(scenario())
