"""Rollovers on a whole node: what was acknowledged is what can be read, whoever writes and reads meanwhile."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.chains import chain_of, check_chain, no_rollover, sealed_of
from support.clocks import MovedClock
from support.embedded import Wire, batch_of, create_topic, fetch, produce, running_node
from support.reading import Found, found_in, only_partition, read_all
from support.waiting import until

from walrusmq.broker.node import Node
from walrusmq.protocol.error_codes import ErrorCode
from walrusmq.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState

PRODUCERS = 32
REQUESTS_EACH = 100
WINDOW = 20
SEGMENT_ENTRIES = 100
NEVER_MS = 1_000_000
DAY_MS = 86_400_000
MIB = 1 << 20


async def put(wire: Wire, *values: bytes, acks: int = -1) -> int:
    """Produce one batch to ``t``; its base offset."""
    part = only_partition(await wire.ask(produce("t", batch_of(*values), acks=acks), 9))
    assert part.error_code == 0, part.error_message
    offset: int = part.base_offset
    return offset


async def write_much(node: Node, number: int) -> dict[int, bytes]:
    """One producer with many requests in flight: what was acknowledged, by offset, in the order of sending."""
    values: Iterator[bytes] = (b"%d-%d" % (number, count) for count in itertools.count())
    batches = [list(itertools.islice(values, 1 + (number + count) % 7)) for count in range(REQUESTS_EACH)]
    acknowledged: dict[int, bytes] = {}
    async with await Wire.to(node) as wire:
        acks = 1 if number % 2 else -1
        for start in range(0, REQUESTS_EACH, WINDOW):
            for batch in batches[start : start + WINDOW]:
                wire.send(produce("t", batch_of(*batch), acks=acks), 9)
            for batch in batches[start : start + WINDOW]:
                part = only_partition(await wire.receive(produce("t", None), 9))
                assert part.error_code == 0, part.error_message
                assert not acknowledged.keys() & {*range(part.base_offset, part.base_offset + len(batch))}
                acknowledged |= dict(enumerate(batch, part.base_offset))
    assert list(acknowledged) == sorted(acknowledged), "a producer's batches keep their order"
    return acknowledged


@pytest.mark.parametrize("monitor_check_ms", [1, NEVER_MS])
@pytest.mark.parametrize("fsync", ["batch", "interval", "never"])
def test_32_producers_over_tiny_segments_lose_and_double_nothing(
    tmp_path: Path, fsync: str, monitor_check_ms: int
) -> None:
    async def scenario() -> None:
        settings = {"fsync": fsync, "monitor_check_ms": monitor_check_ms}
        async with running_node(tmp_path, **settings) as node, await Wire.to(node) as wire:
            await create_topic(wire, "t", walrus_segment_entries=str(SEGMENT_ENTRIES))
            wrote = await asyncio.gather(*(write_much(node, number) for number in range(PRODUCERS)))
            acknowledged = {offset: value for each in wrote for offset, value in each.items()}
            assert len(acknowledged) == sum(len(each) for each in wrote)
            await no_rollover(node)
            found = await read_all(wire, "t")
            assert dict(found) == acknowledged
            count = check_chain(node, "t", found)
            assert count >= len(found) / (2 * SEGMENT_ENTRIES + 7) - 1
            assert sum(node.metrics.rollovers.values()) == count, "each segment was sealed by one rollover"
            chain = chain_of(node, "t")
        async with running_node(tmp_path, fsync=fsync) as node, await Wire.to(node) as wire:
            assert chain_of(node, "t") == chain
            assert await read_all(wire, "t") == found
            check_chain(node, "t", found)

    asyncio.run(scenario())


def test_the_append_that_passes_twice_the_entries_rolls_over_without_the_monitor(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running_node(tmp_path, monitor_check_ms=NEVER_MS) as node, await Wire.to(node) as wire:
            await create_topic(wire, "t", walrus_segment_entries="10")
            for _ in range(19):
                await put(wire, b"x")
            assert not sealed_of(node, "t")
            await put(wire, b"x")
            assert await put(wire, b"first of the next") == 20
            await no_rollover(node)
            assert [(facts.first_offset, facts.end_offset) for facts in sealed_of(node, "t")] == [(0, 20)]
            assert node.metrics.rollovers == {"entries": 1}

    asyncio.run(scenario())


def test_the_monitor_rolls_over_at_once_the_entries(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running_node(tmp_path, monitor_check_ms=5) as node, await Wire.to(node) as wire:
            await create_topic(wire, "t", walrus_segment_entries="10")
            for _ in range(9):
                await put(wire, b"x")
            for _ in range(20):
                await asyncio.sleep(0.001)
            assert not sealed_of(node, "t")
            await put(wire, b"x")
            await until(lambda: sealed_of(node, "t"))
            assert sealed_of(node, "t")[0].end_offset == 10

    asyncio.run(scenario())


def test_segments_roll_over_by_their_bytes(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running_node(tmp_path, monitor_check_ms=NEVER_MS) as node, await Wire.to(node) as wire:
            await create_topic(wire, "t", segment_bytes=str(MIB))
            for number in range(50):
                await put(wire, b"%d" % number + bytes(200_000))
            await no_rollover(node)
            found = await read_all(wire, "t", max_bytes=MIB)
            count = check_chain(node, "t", found)
            assert node.metrics.rollovers == {"bytes": count}
            assert all(2 * MIB <= facts.size_bytes < 2 * MIB + 200_100 for facts in sealed_of(node, "t"))
            assert count == 4

    asyncio.run(scenario())


def test_segments_roll_over_by_their_age_unless_they_are_empty(tmp_path: Path) -> None:
    async def scenario() -> None:
        clock = MovedClock()
        async with running_node(tmp_path, clock=clock, monitor_check_ms=2) as node, await Wire.to(node) as wire:
            await create_topic(wire, "t", segment_ms=str(DAY_MS))
            clock.ms += 10 * DAY_MS
            await put(wire, b"x")
            clock.ms += DAY_MS - 600_000
            await put(wire, b"y")
            assert not sealed_of(node, "t"), "an empty segment doesn't age"
            clock.ms += 600_000
            await until(lambda: sealed_of(node, "t"))
            await no_rollover(node)
            assert sealed_of(node, "t")[0].end_offset == 2
            assert node.metrics.rollovers == {"age": 1}
            clock.ms += 10 * DAY_MS
            await put(wire, b"z")
            check_chain(node, "t", await read_all(wire, "t"))
            assert len(sealed_of(node, "t")) == 1

    asyncio.run(scenario())


def test_a_consumer_at_the_end_gets_every_record_once_while_segments_roll(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running_node(tmp_path, monitor_check_ms=1) as node, await Wire.to(node) as reader:
            await create_topic(reader, "t", walrus_segment_entries="3")
            writers = [asyncio.create_task(write_much(node, number)) for number in range(4)]
            found: Found = []
            while not (all(task.done() for task in writers) and len(found) == node.metrics.entries_appended):
                request = fetch("t", len(found), max_wait_ms=500)
                found += found_in(only_partition(await reader.ask(request, 12)))
            acknowledged = {offset: value for task in writers for offset, value in (await task).items()}
            assert [offset for offset, _ in found] == list(range(len(found)))
            assert dict(found) == acknowledged
            await no_rollover(node)
            assert check_chain(node, "t", found) > 50

    asyncio.run(scenario())


def test_a_fetch_that_waits_across_a_rollover_gets_the_first_of_the_next_segment(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running_node(tmp_path) as node, await Wire.to(node) as wire, await Wire.to(node) as reader:
            await create_topic(wire, "t")
            await put(wire, b"0")
            reader.send(fetch("t", 1, max_wait_ms=100_000), 12)
            await until(lambda: node.waiting_fetches)
            await node.rollovers.begin(node.led.by_name["t"][0], "manual")
            assert len(sealed_of(node, "t")) == 1
            assert node.waiting_fetches
            await put(wire, b"1")
            assert found_in(only_partition(await reader.receive(fetch("t", 1), 12))) == [(1, b"1")]

    asyncio.run(scenario())


def test_a_rollover_proposed_twice_seals_once(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running_node(tmp_path) as node, await Wire.to(node) as wire:
            await create_topic(wire, "t")
            await put(wire, b"0")
            partition = node.led.by_name["t"][0]
            first, second = node.rollovers.begin(partition, "entries"), node.rollovers.begin(partition, "age")
            await asyncio.gather(first, second)
            assert node.metrics.rollovers == {"entries": 1}
            assert await put(wire, b"1") == 1
            assert check_chain(node, "t", await read_all(wire, "t")) == 1

    asyncio.run(scenario())


def test_a_batch_that_waited_for_a_rollover_too_long_is_not_written_after_all(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running_node(tmp_path) as node, await Wire.to(node) as wire:
            await create_topic(wire, "t")
            await put(wire, b"0")
            partition = node.led.by_name["t"][0]
            partition.stop()  # as a rollover does first
            part = only_partition(await wire.ask(produce("t", batch_of(b"late"), timeout_ms=50), 9))
            assert (part.error_code, part.base_offset) == (ErrorCode.REQUEST_TIMED_OUT, -1)
            await node.rollovers.begin(partition, "manual")
            assert await put(wire, b"1") == 1
            assert await read_all(wire, "t") == [(0, b"0"), (1, b"1")]

    asyncio.run(scenario())


def test_a_client_that_leaves_while_its_batch_waits_harms_nothing(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running_node(tmp_path) as node, await Wire.to(node) as wire:
            await create_topic(wire, "t")
            await put(wire, b"0")
            partition = node.led.by_name["t"][0]
            partition.stop()  # as a rollover does first
            async with await Wire.to(node) as leaver:
                leaver.send(produce("t", batch_of(b"1")), 9)
                await until(lambda: node.held_appends.held_bytes)
            await until(lambda: len(node.listener.connections) == 1)
            await node.rollovers.begin(partition, "manual")
            assert await put(wire, b"2") == 2
            assert await read_all(wire, "t") == [(0, b"0"), (1, b"1"), (2, b"2")]

    asyncio.run(scenario())


def test_a_topic_deleted_during_a_rollover_takes_it_along_and_tells_who_waits(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running_node(tmp_path) as node, await Wire.to(node) as wire, await Wire.to(node) as producer:
            await create_topic(wire, "t")
            await put(wire, b"0")
            partition = node.led.by_name["t"][0]
            partition.stop()  # as a rollover does first; the batch is then held for its end
            producer.send(produce("t", batch_of(b"1")), 9)
            await until(lambda: node.held_appends.held_bytes)
            deleted = asyncio.create_task(
                wire.ask(DeleteTopicsRequest(topics=[DeleteTopicState(name="t")], timeout_ms=10_000), 6)
            )
            rollover = node.rollovers.begin(partition, "entries")
            part = only_partition(await producer.receive(produce("t", None), 9))
            assert part.error_code in (0, 3)
            assert (await deleted).responses[0].error_code == 0
            await rollover
            assert node.held_appends.held_bytes == 0
            await create_topic(wire, "t")
            assert await put(wire, b"of the new one") == 0

    asyncio.run(scenario())
