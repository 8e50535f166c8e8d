"""A disk that is slow to sync: nothing that isn't on it is answered or shown, everything comes in order once it is."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from support.crash_disk import CrashDisk
from support.embedded import Wire, batch_of, create_topic, fetch, produce, running_node
from support.reading import found_in, only_partition, read_all
from support.waiting import until

from walrusmq.broker.node import Node
from walrusmq.protocol.messages.api_versions import ApiVersionsRequest
from walrusmq.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from walrusmq.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from walrusmq.protocol.messages.metadata import MetadataRequest
from walrusmq.protocol.records.batch import Producer

LATEST = -1
ROUND_TRIPS = 20
"""Whatever could leave while others are served so often has left."""
HELLO = ApiVersionsRequest(client_software_name="test", client_software_version="1")


@asynccontextmanager
async def node_on_a_disk(
    folder: Path, fsync: str = "batch", **configs: Any
) -> AsyncIterator[tuple[Node, CrashDisk, Wire]]:
    """A node with a topic ``t`` on a disk that can be held, and a connection to it for whoever looks on."""
    disk = CrashDisk(folder)
    async with running_node(folder, files=disk, fsync=fsync) as node, await Wire.to(node) as observer:
        await create_topic(observer, "t", 2, **configs)
        yield node, disk, observer


async def latest(wire: Wire, topic: str = "t") -> int:
    """The offset at which a consumer that begins now would wait."""
    wanted = ListOffsetsTopic(name=topic, partitions=[ListOffsetsPartition(partition_index=0, timestamp=LATEST)])
    offset: int = only_partition(await wire.ask(ListOffsetsRequest(replica_id=-1, topics=[wanted]), 7)).offset
    return offset


async def sees_nothing(observer: Wire) -> None:
    """Have others served for a while: none of them sees a record of ``t-0``."""
    for _ in range(ROUND_TRIPS):
        data = only_partition(await observer.ask(fetch("t", 0), 12))
        assert (data.error_code, data.high_watermark, data.last_stable_offset, found_in(data)) == (0, 0, 0, [])
        assert await latest(observer) == 0


@pytest.mark.parametrize(("fsync", "configs"), [("batch", {}), ("never", {"flush_messages": "1"})])
@pytest.mark.parametrize("acks", [1, -1])
def test_nothing_is_answered_or_shown_before_it_is_synced_then_all_comes_in_order(
    tmp_path: Path, acks: int, fsync: str, configs: dict[str, str]
) -> None:
    async def scenario() -> None:
        async with node_on_a_disk(tmp_path, fsync, **configs) as (node, disk, observer), await Wire.to(node) as wire:
            with disk.held("fdatasync"):
                for number in range(50):
                    wire.send(produce("t", batch_of(b"%d" % number), acks=acks), 9)
                await until(lambda: node.metrics.entries_appended == 50)
                first = asyncio.create_task(wire.receive(produce("t", None), 9))
                await sees_nothing(observer)
                assert not first.done()
            for number in range(50):
                part = only_partition(await (first if not number else wire.receive(produce("t", None), 9)))
                assert (part.error_code, part.base_offset) == (0, number)
            assert await read_all(observer, "t") == [(number, b"%d" % number) for number in range(50)]

    asyncio.run(scenario())


def test_acks_0_waits_for_nothing_and_is_shown_no_sooner_than_others(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with node_on_a_disk(tmp_path) as (node, disk, observer), await Wire.to(node) as wire:
            with disk.held("fdatasync"):
                for number in range(10):
                    wire.send(produce("t", batch_of(b"%d" % number), acks=0), 9)
                assert (await wire.ask(HELLO, 3)).error_code == 0
                assert node.metrics.entries_appended == 10
                await sees_nothing(observer)
            await until(lambda: node.led.by_name["t"][0].high_watermark == 10)
            assert len(await read_all(observer, "t")) == 10

    asyncio.run(scenario())


def test_a_waiting_fetch_is_woken_by_the_sync_not_by_the_append(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with (
            node_on_a_disk(tmp_path) as (node, disk, observer),
            await Wire.to(node) as wire,
            await Wire.to(node) as consumer,
        ):
            consumer.send(fetch("t", 0, max_wait_ms=100_000), 12)
            await until(lambda: node.waiting_fetches)
            with disk.held("fdatasync"):
                wire.send(produce("t", batch_of(b"x")), 9)
                await until(lambda: node.metrics.entries_appended)
                await sees_nothing(observer)
                assert len(node.waiting_fetches) == 1
            data = only_partition(await consumer.receive(fetch("t", 0), 12))
            assert (data.high_watermark, found_in(data)) == (1, [(0, b"x")])

    asyncio.run(scenario())


def test_a_repeat_is_not_answered_before_its_original_is_synced(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with (
            node_on_a_disk(tmp_path) as (node, disk, observer),
            await Wire.to(node) as first,
            await Wire.to(node) as second,
        ):
            batch = batch_of(b"once", producer=Producer(7, 0, 0))
            with disk.held("fdatasync"):
                first.send(produce("t", batch), 9)
                await until(lambda: node.metrics.entries_appended)
                repeat = asyncio.create_task(second.ask(produce("t", batch), 9))
                await sees_nothing(observer)
                assert not repeat.done()
            for answer in (await first.receive(produce("t", None), 9), await repeat):
                part = only_partition(answer)
                assert (part.error_code, part.base_offset) == (0, 0)
            assert await read_all(observer, "t") == [(0, b"once")]

    asyncio.run(scenario())


def test_a_request_is_answered_once_its_last_partition_is_synced(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with node_on_a_disk(tmp_path) as (node, disk, observer), await Wire.to(node) as wire:
            request = produce("t", batch_of(b"zero"))
            request.topic_data[0].partition_data += (
                produce("t", batch_of(b"one"), partition=1).topic_data[0].partition_data
            )
            with disk.held("fdatasync"):
                answer = asyncio.create_task(wire.ask(request, 9))
                await until(lambda: node.metrics.entries_appended == 2)
                await sees_nothing(observer)
                assert not answer.done()
            parts = (await answer).responses[0].partition_responses
            assert [(part.index, part.error_code, part.base_offset) for part in parts] == [(0, 0, 0), (1, 0, 0)]

    asyncio.run(scenario())


def test_a_request_that_waits_longer_than_it_allows_is_told_that_its_outcome_is_unknown(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with node_on_a_disk(tmp_path) as (node, disk, observer), await Wire.to(node) as wire:
            with disk.held("fdatasync"):
                part = only_partition(await wire.ask(produce("t", batch_of(b"late"), timeout_ms=50), 9))
                assert (part.error_code, part.base_offset) == (7, -1)
                await sees_nothing(observer)
            await until(lambda: node.led.by_name["t"][0].high_watermark == 1)
            assert await read_all(observer, "t") == [(0, b"late")]

    asyncio.run(scenario())


def test_a_topic_is_neither_answered_nor_shown_before_the_metadata_log_has_it(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with node_on_a_disk(tmp_path) as (node, disk, observer), await Wire.to(node) as wire:
            with disk.held("fdatasync"):
                topic = CreatableTopic(name="new", num_partitions=1, replication_factor=1)
                made = asyncio.create_task(wire.ask(CreateTopicsRequest(topics=[topic], timeout_ms=10_000), 7))
                for _ in range(ROUND_TRIPS):
                    answer = await observer.ask(MetadataRequest(topics=None), 12)
                    assert [topic.name for topic in answer.topics] == ["t"]
                assert not made.done()
            assert (await made).topics[0].error_code == 0
            assert only_partition(await wire.ask(produce("new", batch_of(b"x")), 9)).error_code == 0

    asyncio.run(scenario())


def test_many_connections_share_the_syncs_that_follow(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with node_on_a_disk(tmp_path) as (node, disk, _):
            wires = [await Wire.to(node) for _ in range(32)]
            with disk.held("fdatasync"):
                for wire in wires:
                    wire.send(produce("t", batch_of(b"x")), 9)
                await until(lambda: node.metrics.entries_appended == 32)
                before = node.store.counters.syncs
            answers = [only_partition(await wire.receive(produce("t", None), 9)) for wire in wires]
            assert {answer.error_code for answer in answers} == {0}
            assert sorted(answer.base_offset for answer in answers) == list(range(32))
            assert node.store.counters.syncs - before <= 3
            for wire in wires:
                wire.writer.close()

    asyncio.run(scenario())
