"""DeleteRecords: partitions that begin later, and what can't."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from support.crash_disk import CrashDisk
from support.embedded import Wire, batch_of, create_topic, fetch, produce, running_node
from support.handler_fakes import FakeNode, FakePartition, answer

from walrusmq.broker.commands import CreateTopic, NamedValue, NewPartition
from walrusmq.broker.handlers.delete_records import delete_records
from walrusmq.broker.node import Node
from walrusmq.protocol.errors import ErrorCode
from walrusmq.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)

RECORDS = 10


def wish(name: str, *offsets: tuple[int, int]) -> DeleteRecordsTopic:
    wanted = [DeleteRecordsPartition(partition_index=index, offset=offset) for index, offset in offsets]
    return DeleteRecordsTopic(name=name, partitions=wanted)


async def delete(
    wire: Wire, *topics: DeleteRecordsTopic, timeout_ms: int = 10_000, version: int = 2
) -> list[tuple[str, int, int, int]]:
    response = await wire.ask(DeleteRecordsRequest(topics=list(topics), timeout_ms=timeout_ms), version)
    return [
        (topic.name, each.partition_index, each.low_watermark, each.error_code)
        for topic in response.topics
        for each in topic.partitions
    ]


async def send(wire: Wire, topic: str = "t", records: int = RECORDS) -> None:
    for _ in range(records):
        sent = (await wire.ask(produce(topic, batch_of(b"x")), 9)).responses[0].partition_responses[0]
        assert sent.error_code == 0


async def found(wire: Wire, offset: int) -> tuple[int, int, bool]:
    """The error, the log's start, and whether there are records, for a reader at an offset."""
    read = (await wire.ask(fetch("t", offset), 11)).responses[0].partitions[0]
    return read.error_code, read.log_start_offset, bool(read.records)


def with_records(folder: Path, scenario: Callable[[Node, Wire], Awaitable[None]], **given: Any) -> None:
    async def run() -> None:
        async with running_node(folder, **given) as node, await Wire.to(node) as wire:
            await create_topic(wire, "t", 2)
            await send(wire)
            await scenario(node, wire)

    asyncio.run(run())


@pytest.mark.parametrize("version", range(3))
def test_a_partition_begins_at_the_offset_and_readers_below_are_told(tmp_path: Path, version: int) -> None:
    async def scenario(node: Node, wire: Wire) -> None:
        assert await delete(wire, wish("t", (0, 4)), version=version) == [("t", 0, 4, 0)]
        assert await found(wire, 3) == (ErrorCode.OFFSET_OUT_OF_RANGE, -1, False)
        assert await found(wire, 4) == (0, 4, True)

    with_records(tmp_path, scenario)


def test_minus_one_deletes_all_that_consumers_can_see(tmp_path: Path) -> None:
    async def scenario(node: Node, wire: Wire) -> None:
        assert await delete(wire, wish("t", (0, -1), (1, -1))) == [("t", 0, RECORDS, 0), ("t", 1, 0, 0)]
        await send(wire, records=1)
        assert await found(wire, RECORDS) == (0, RECORDS, True)

    with_records(tmp_path, scenario)


def test_an_offset_below_the_start_changes_nothing(tmp_path: Path) -> None:
    async def scenario(node: Node, wire: Wire) -> None:
        await delete(wire, wish("t", (0, 4)))
        index = node.image.applied_index
        assert await delete(wire, wish("t", (0, 2))) == [("t", 0, 4, 0)]
        assert node.image.applied_index == index

    with_records(tmp_path, scenario)


def test_each_partition_is_answered_by_itself(tmp_path: Path) -> None:
    async def scenario(node: Node, wire: Wire) -> None:
        wishes = wish("t", (0, 5), (9, 1), (1, 99), (-1, 0)), wish("none", (0, 1)), wish("a b", (0, 1))
        assert await delete(wire, *wishes) == [
            ("t", 0, 5, 0),
            ("t", 9, -1, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
            ("t", 1, -1, ErrorCode.OFFSET_OUT_OF_RANGE),
            ("t", -1, -1, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
            ("none", 0, -1, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
            ("a b", 0, -1, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ]
        assert await delete(wire, wish("t", (0, -2))) == [("t", 0, -1, ErrorCode.OFFSET_OUT_OF_RANGE)]
        assert await delete(wire) == []

    with_records(tmp_path, scenario)


def test_of_a_partition_that_is_given_twice_the_last_offset_counts(tmp_path: Path) -> None:
    async def scenario(node: Node, wire: Wire) -> None:
        assert await delete(wire, wish("t", (0, 7), (0, 2)), wish("t", (0, 3))) == [("t", 0, 3, 0)]

    with_records(tmp_path, scenario)


@pytest.mark.parametrize("timeout_ms", [0, -1])
def test_without_followers_to_wait_for_no_timeout_is_too_short(tmp_path: Path, timeout_ms: int) -> None:
    async def scenario(node: Node, wire: Wire) -> None:
        assert await delete(wire, wish("t", (0, 4)), timeout_ms=timeout_ms) == [("t", 0, 4, 0)]

    with_records(tmp_path, scenario)


def test_segments_that_lie_wholly_below_are_gone(tmp_path: Path) -> None:
    async def scenario(node: Node, wire: Wire) -> None:
        partition = node.partitions_by_name["t"][0]
        await node.rollovers.begin(partition, "manual")
        await send(wire, records=2)
        assert len(partition.chain) == 1
        assert await delete(wire, wish("t", (0, RECORDS + 1))) == [("t", 0, RECORDS + 1, 0)]
        assert len(partition.chain) == 0
        assert await found(wire, RECORDS + 1) == (0, RECORDS + 1, True)

    with_records(tmp_path, scenario)


def test_the_start_is_still_there_after_a_restart(tmp_path: Path) -> None:
    async def scenario(node: Node, wire: Wire) -> None:
        await delete(wire, wish("t", (0, 4)))

    async def restarted() -> None:
        async with running_node(tmp_path) as node, await Wire.to(node) as wire:
            assert await found(wire, 3) == (ErrorCode.OFFSET_OUT_OF_RANGE, -1, False)
            assert await found(wire, 4) == (0, 4, True)

    with_records(tmp_path, scenario)
    asyncio.run(restarted())


def test_what_is_deleted_is_on_disk_before_the_start_moves(tmp_path: Path) -> None:
    async def scenario(node: Node, wire: Wire) -> None:
        partition = node.partitions_by_name["t"][0]
        assert partition.log.synced_offset < RECORDS, "or this shows nothing"
        assert await delete(wire, wish("t", (0, -1))) == [("t", 0, RECORDS, 0)]
        assert partition.log.synced_offset == RECORDS

    with_records(tmp_path, scenario, fsync="interval", fsync_interval_ms=3_600_000)


def test_a_failed_sync_moves_no_start_so_that_new_offsets_never_count_as_deleted(tmp_path: Path) -> None:
    disk = CrashDisk(tmp_path)

    async def scenario(node: Node, wire: Wire) -> None:
        disk.fail("fdatasync", path="topics")
        ((_, _, low, code),) = await delete(wire, wish("t", (0, -1)))
        assert (low, code) == (-1, ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND)
        assert node.image.topics_by_name["t"].partitions[0].log_start_offset == 0

    with_records(tmp_path, scenario, files=disk, fsync="interval", fsync_interval_ms=3_600_000)


def fake_with(name: str, policy: str) -> FakeNode:
    node = FakeNode()
    configs = [NamedValue(name="cleanup.policy", value=policy)]
    parts = [NewPartition(assigned=[1])]
    node.apply(CreateTopic(topic_id=b"_" * 16, name=name, partitions=parts, configs=configs))
    node.partitions_by_name = {name: {0: FakePartition(high_watermark=3)}}
    return node


def code(node: FakeNode, name: str, offset: int) -> int:
    request = DeleteRecordsRequest(topics=[wish(name, (0, offset))], timeout_ms=5000)
    error_code: int = answer(delete_records, request, node, 2).topics[0].partitions[0].error_code
    return error_code


def test_records_of_a_topic_that_is_only_compacted_stay_whatever_the_offset() -> None:
    node = fake_with("t", "compact")
    assert [code(node, "t", offset) for offset in (0, 2, 99)] == [ErrorCode.POLICY_VIOLATION] * 3
    for policy in ("compact,delete", ""):
        assert code(fake_with("t", policy), "t", 0) == 0


def test_a_topic_of_which_no_partition_is_named_isnt_answered() -> None:
    request = DeleteRecordsRequest(topics=[wish("t"), wish("none")], timeout_ms=5000)
    assert answer(delete_records, request, fake_with("t", "delete"), 2).topics == []


def test_the_nodes_cleanup_policy_holds_for_topics_without_one(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running_node(tmp_path, log_cleanup_policy="compact") as node, await Wire.to(node) as wire:
            await create_topic(wire, "inherits")
            await create_topic(wire, "own", cleanup_policy="delete")
            wishes = wish("inherits", (0, 0)), wish("own", (0, 0))
            assert await delete(wire, *wishes) == [("inherits", 0, -1, ErrorCode.POLICY_VIOLATION), ("own", 0, 0, 0)]

    asyncio.run(scenario())


def test_records_of_internal_topics_stay() -> None:
    node = fake_with("__consumer_offsets", "compact")
    assert code(node, "__consumer_offsets", 1) == ErrorCode.INVALID_TOPIC_EXCEPTION
    assert not node.proposed
