"""Fetch over the wire: from where, how much, and what is answered where there is nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
from support.embedded import Wire, batch_of, create_topic, fetch, produce, running_node
from support.reading import Found, found_in, only_partition, read_all
from support.waiting import until

from walrusmq.broker.commands import MoveLogStart
from walrusmq.broker.node import Node
from walrusmq.protocol.error_codes import ErrorCode
from walrusmq.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from walrusmq.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic, ReplicaState

BATCH = len(batch_of(bytes(1000)))
SLACK_BYTES = 4096 + BATCH
"""A read may end at a batch that the index knows, and so a little before its limit."""
VERSIONS = range(4, 19)
FIRST_VERSION_WITH_IDS = 13
FIRST_VERSION_WITH_REPLICA_STATE = 15
FIRST_VERSION_WITH_LEADERS = 16
READ_COMMITTED = 1

Scenario = Callable[[Node, Wire], Coroutine[Any, Any, None]]


def on_a_node(folder: Path, scenario: Scenario, **given: Any) -> None:
    """Run a scenario on a node with a topic ``t`` of three partitions."""

    async def run() -> None:
        async with running_node(folder, **given) as node, await Wire.to(node) as wire:
            await create_topic(wire, "t", 3)
            await scenario(node, wire)

    asyncio.run(run())


async def fill(wire: Wire, count: int, *, topic: str = "t", partition: int = 0, size: int = 1000) -> None:
    """Produce so many batches of one record."""
    for _ in range(count):
        part = only_partition(await wire.ask(produce(topic, batch_of(bytes(size)), partition=partition), 9))
        assert part.error_code == 0


def wanting(
    *partitions: tuple[int, int], max_bytes: int = 1 << 20, partition_max_bytes: int = 1 << 20, **more: Any
) -> FetchRequest:
    """A request for some partitions of ``t``, each with its offset."""
    wanted = [
        FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=partition_max_bytes)
        for index, offset in partitions
    ]
    return FetchRequest(max_bytes=max_bytes, min_bytes=1, topics=[FetchTopic(topic="t", partitions=wanted)], **more)


async def sizes(wire: Wire, request: FetchRequest) -> list[int]:
    """The bytes of records in each partition's part of the answer."""
    answer = await wire.ask(request, 11)
    return [len(part.records or b"") for part in answer.responses[0].partitions]


async def fetched(wire: Wire, offset: int, **how: Any) -> Found:
    data = only_partition(await wire.ask(fetch("t", offset, **how), 12))
    assert data.error_code == 0
    return found_in(data)


@pytest.mark.parametrize("version", VERSIONS)
def test_every_version_reads(tmp_path: Path, version: int) -> None:
    async def scenario(node: Node, wire: Wire) -> None:
        await wire.ask(produce("t", batch_of(b"x")), 9)
        request = fetch("t", 0)
        if version >= FIRST_VERSION_WITH_IDS:
            request.topics[0].topic_id = node.image.topics_by_name["t"].id
        data = only_partition(await wire.ask(request, version))
        assert (data.error_code, data.high_watermark, data.last_stable_offset) == (0, 1, 1)
        assert found_in(data) == [(0, b"x")]

    on_a_node(tmp_path, scenario)


def test_a_read_from_the_middle_of_a_batch_gives_the_whole_batch(tmp_path: Path) -> None:
    async def scenario(node: Node, wire: Wire) -> None:
        await wire.ask(produce("t", batch_of(b"0", b"1", b"2")), 9)
        await wire.ask(produce("t", batch_of(b"3", b"4")), 9)
        assert [offset for offset, _ in await fetched(wire, 1)] == [0, 1, 2, 3, 4]
        assert [offset for offset, _ in await fetched(wire, 4)] == [3, 4]

    on_a_node(tmp_path, scenario)


def test_nothing_comes_at_the_end_and_an_error_beyond_it(tmp_path: Path) -> None:
    async def scenario(node: Node, wire: Wire) -> None:
        await fill(wire, 2)
        assert await fetched(wire, 2) == []
        for offset in (3, 1000, -1):
            data = only_partition(await wire.ask(fetch("t", offset), 12))
            assert data.error_code == ErrorCode.OFFSET_OUT_OF_RANGE
            assert (data.high_watermark, len(data.records or b"")) == (-1, 0)

    on_a_node(tmp_path, scenario)


def test_deleted_records_are_out_of_range_and_the_rest_stays_readable(tmp_path: Path) -> None:
    async def scenario(node: Node, wire: Wire) -> None:
        await create_topic(wire, "rolls", walrus_segment_entries="1")
        for _ in range(9):
            await wire.ask(produce("rolls", batch_of(b"x")), 9)
        topic_id = node.image.topics_by_name["rolls"].id
        await node.propose(MoveLogStart(topic_id=topic_id, partition=0, log_start_offset=5))
        data = only_partition(await wire.ask(fetch("rolls", 4), 12))
        assert data.error_code == ErrorCode.OFFSET_OUT_OF_RANGE
        data = only_partition(await wire.ask(fetch("rolls", 5), 12))
        assert (data.error_code, data.log_start_offset) == (0, 5)
        assert [offset for offset, _ in await read_all(wire, "rolls", offset=5)] == [5, 6, 7, 8]

    on_a_node(tmp_path, scenario)


def test_unknown_names_ids_and_partitions_are_told_apart(tmp_path: Path) -> None:
    async def scenario(node: Node, wire: Wire) -> None:
        for request, version, error in (
            (fetch("unknown", 0), 12, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
            (fetch("t", 0, partition=9), 12, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
            (fetch("", 0), 13, ErrorCode.UNKNOWN_TOPIC_ID),
        ):
            request.max_wait_ms = 100_000  # an error is answered at once
            request.topics[0].topic_id = bytes(range(16))
            data = only_partition(await wire.ask(request, version))
            assert (data.error_code, data.high_watermark) == (error, -1)

    on_a_node(tmp_path, scenario)


def test_partition_max_bytes_ends_at_a_whole_batch(tmp_path: Path) -> None:
    async def scenario(node: Node, wire: Wire) -> None:
        await fill(wire, 10)
        for limit in (*range(BATCH, 10 * BATCH, BATCH // 3), 1 << 20):
            (size,) = await sizes(wire, wanting((0, 0), partition_max_bytes=limit))
            assert size % BATCH == 0
            assert min(limit, 10 * BATCH) - SLACK_BYTES <= size <= limit

    on_a_node(tmp_path, scenario)


@pytest.mark.parametrize("limits", [{"max_bytes": 1}, {"partition_max_bytes": 1}, {"max_bytes": 0}, {"max_bytes": -1}])
def test_one_batch_comes_however_small_the_limits_are(tmp_path: Path, limits: dict[str, int]) -> None:
    async def scenario(node: Node, wire: Wire) -> None:
        for partition in (0, 1):
            await fill(wire, 3, partition=partition)
        assert await sizes(wire, wanting((0, 0), (1, 0), **limits)) == [BATCH, 0]
        assert await sizes(wire, wanting((2, 0), (1, 2), **limits)) == [0, BATCH], "of the first that has one"

    on_a_node(tmp_path, scenario)


def test_max_bytes_is_shared_by_the_partitions_in_their_order(tmp_path: Path) -> None:
    async def scenario(node: Node, wire: Wire) -> None:
        for partition in (0, 1, 2):
            await fill(wire, 5, partition=partition)
        all_three = ((2, 0), (0, 0), (1, 0))
        assert await sizes(wire, wanting(*all_three, max_bytes=7 * BATCH)) == [5 * BATCH, 2 * BATCH, 0]
        assert await sizes(wire, wanting(*all_three, max_bytes=5 * BATCH)) == [5 * BATCH, 0, 0]
        assert await sizes(wire, wanting(*all_three, max_bytes=100 * BATCH)) == [5 * BATCH] * 3

    on_a_node(tmp_path, scenario)


def test_the_nodes_own_limit_holds_whatever_a_client_asks_for(tmp_path: Path) -> None:
    async def scenario(node: Node, wire: Wire) -> None:
        await fill(wire, 10)
        assert await sizes(wire, wanting((0, 0), max_bytes=2**31 - 1)) == [(4096 // BATCH) * BATCH]

    on_a_node(tmp_path, scenario, fetch_max_bytes=4096)


def test_a_batch_larger_than_every_limit_still_comes_whole(tmp_path: Path) -> None:
    async def scenario(node: Node, wire: Wire) -> None:
        await fill(wire, 1, size=900_000)
        assert await sizes(wire, wanting((0, 0), max_bytes=1000, partition_max_bytes=10)) == [BATCH + 899_000 + 2]

    on_a_node(tmp_path, scenario)


def test_read_committed_sees_the_same_while_there_are_no_transactions(tmp_path: Path) -> None:
    async def scenario(node: Node, wire: Wire) -> None:
        await fill(wire, 2)
        data = only_partition(await wire.ask(fetch("t", 0, isolation_level=READ_COMMITTED), 12))
        assert (data.last_stable_offset, data.aborted_transactions) == (2, [])
        assert len(found_in(data)) == 2

    on_a_node(tmp_path, scenario)


def test_leader_epochs_of_other_times_are_told(tmp_path: Path) -> None:
    async def scenario(node: Node, wire: Wire) -> None:
        await fill(wire, 1)
        await node.rollovers.begin(node.led.by_name["t"][0], "recovery")
        for epoch, error in (
            (0, ErrorCode.FENCED_LEADER_EPOCH),
            (1, ErrorCode.NONE),
            (2, ErrorCode.UNKNOWN_LEADER_EPOCH),
        ):
            request = fetch("t", 0)
            request.topics[0].partitions[0].current_leader_epoch = epoch
            assert only_partition(await wire.ask(request, 12)).error_code == error

    on_a_node(tmp_path, scenario)


@pytest.mark.parametrize("version", VERSIONS)
def test_other_replicas_are_sent_away(tmp_path: Path, version: int) -> None:
    async def scenario(node: Node, wire: Wire) -> None:
        await fill(wire, 1)
        is_named_apart = version >= FIRST_VERSION_WITH_REPLICA_STATE
        replica = {"replica_state": ReplicaState(replica_id=5)} if is_named_apart else {"replica_id": 5}
        request = fetch("t", 0, **replica)
        request.topics[0].topic_id = node.image.topics_by_name["t"].id
        data = only_partition(await wire.ask(request, version))
        assert (data.error_code, len(data.records or b"")) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, 0)
        assert data.current_leader.leader_id == (node.node_id if version >= FIRST_VERSION_WITH_LEADERS else -1)

    on_a_node(tmp_path, scenario)


def test_what_was_pinned_for_answers_is_let_go(tmp_path: Path) -> None:
    """With few handles, a chain of many segments can be read again and again only if they are given back."""

    async def scenario(node: Node, wire: Wire) -> None:
        await create_topic(wire, "rolls", walrus_segment_entries="1")
        for _ in range(100):
            await wire.ask(produce("rolls", batch_of(b"x")), 9)
        await until(lambda: node.led.by_name["rolls"][0].is_open)
        for max_wait_ms in (0, 1):
            for offset in range(100):
                request = fetch("rolls", offset, max_wait_ms=max_wait_ms, min_bytes=1 << 20)
                assert found_in(only_partition(await wire.ask(request, 12)))
        assert len(node.store.handles) <= 16

    on_a_node(tmp_path, scenario, max_open_files=16)


def test_a_topic_deleted_while_it_is_read_ends_readers_with_an_error_and_nothing_worse(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(node: Node, wire: Wire) -> None:
        await fill(wire, 20, size=500_000)

        async def read(reader: Wire) -> int:
            while True:
                request = fetch("t", 0, partition_max_bytes=1 << 24, max_bytes=1 << 24)
                error: int = only_partition(await reader.ask(request, 12)).error_code
                if error:
                    return error

        readers = [await Wire.to(node) for _ in range(4)]
        reading = [asyncio.create_task(read(reader)) for reader in readers]
        await until(lambda: node.metrics.requests[1] > 8)
        await wire.ask(DeleteTopicsRequest(topics=[DeleteTopicState(name="t")], timeout_ms=10_000), 6)
        assert set(await asyncio.gather(*reading)) == {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
        for reader in readers:
            reader.writer.close()
        assert not [record for record in caplog.records if record.exc_info]

    on_a_node(tmp_path, scenario)
