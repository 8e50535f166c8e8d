"""The partitions of a node follow the cluster image: made, changed and gone as commands are applied."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from support.embedded import Wire, batch_of, create_topic, produce, running_node
from support.reading import only_partition, read_all
from support.waiting import until

from walrusmq.broker.commands import (
    CreatePartitions,
    CreateTopic,
    DeleteTopic,
    MoveLogStart,
    NamedValue,
    NewPartition,
    ResourceType,
    SetConfigs,
)
from walrusmq.broker.node import Node
from walrusmq.protocol.error_codes import ErrorCode

STRAY = "00112233445566778899aabbccddeeff-0"


def led(node: Node) -> set[tuple[str, int]]:
    return {(partition.topic, partition.index) for partition in node.led}


async def put(wire: Wire, topic: str = "t", partition: int = 0) -> int:
    """Produce one record; the error code."""
    error: int = only_partition(await wire.ask(produce(topic, batch_of(b"x"), partition=partition), 9)).error_code
    return error


def test_a_topic_is_known_by_name_and_id_from_its_command_on_to_its_end(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running_node(tmp_path) as node:
            for name, number in (("a", 1), ("b", 2)):
                partitions = [NewPartition(assigned=[node.node_id]) for _ in range(number)]
                await node.propose(CreateTopic(topic_id=bytes([number]) * 16, name=name, partitions=partitions))
            assert led(node) == {("a", 0), ("b", 0), ("b", 1)}
            assert node.led.by_name["b"] is node.led.by_id[bytes([2]) * 16]
            await node.propose(DeleteTopic(topic_id=bytes([2]) * 16))
            assert led(node) == {("a", 0)}
            assert set(node.led.by_name) == {"a"}
            assert len(node.store) == 1

    asyncio.run(scenario())


def test_a_topic_that_comes_or_goes_is_told_in_a_line_and_one_that_was_there_is_not(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        async with running_node(tmp_path) as node, await Wire.to(node) as wire:
            await create_topic(wire, "stays", 1)
            topic_id = await create_topic(wire, "goes", 2)
            await node.propose(DeleteTopic(topic_id=topic_id))
        async with running_node(tmp_path):
            pass

    caplog.set_level("INFO", "walrusmq.partitions")
    asyncio.run(scenario())
    assert [record.getMessage() for record in caplog.records if record.name == "walrusmq.partitions"] == [
        "created topic stays (partitions: 1)",
        "created topic goes (partitions: 2)",
        "deleted topic goes (partitions: 2)",
    ]


def test_partitions_added_to_a_topic_can_be_used_and_the_others_stay(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running_node(tmp_path) as node, await Wire.to(node) as wire:
            topic_id = await create_topic(wire, "t", 2)
            assert await put(wire, partition=1) == 0
            before = node.led.by_name["t"][1]
            added = [NewPartition(assigned=[node.node_id])]
            await node.propose(CreatePartitions(topic_id=topic_id, first_partition=2, partitions=added))
            assert node.led.by_name["t"][1] is before
            assert await put(wire, partition=2) == 0
            assert await put(wire, partition=3) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    asyncio.run(scenario())


def test_a_topic_made_again_under_its_name_is_another_and_empty(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running_node(tmp_path) as node, await Wire.to(node) as wire:
            former = await create_topic(wire, "t")
            assert await put(wire) == 0
            await node.propose(DeleteTopic(topic_id=former))
            assert await put(wire) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            assert await create_topic(wire, "t") != former
            assert await read_all(wire, "t") == []
            assert await put(wire) == 0

    asyncio.run(scenario())


def test_files_of_a_deleted_topic_go_while_the_node_runs_and_of_one_it_never_knew_at_the_start(tmp_path: Path) -> None:
    async def scenario() -> None:
        topics = tmp_path / "topics"
        async with running_node(tmp_path) as node, await Wire.to(node) as wire:
            topic_id = await create_topic(wire, "t")
            await create_topic(wire, "kept")
            assert await put(wire) == await put(wire, "kept") == 0
            assert len(list(topics.iterdir())) == 2
            await node.propose(DeleteTopic(topic_id=topic_id))
            await until(lambda: len(list(topics.iterdir())) == 1)
        (topics / STRAY).mkdir()
        (topics / STRAY / "0000000001.log").write_bytes(b"of a topic that was deleted")
        async with running_node(tmp_path) as node, await Wire.to(node) as wire:
            await until(lambda: not (topics / STRAY).exists())
            assert len(await read_all(wire, "kept")) == 1

    asyncio.run(scenario())


def test_a_moved_log_start_is_the_partitions_too(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running_node(tmp_path) as node, await Wire.to(node) as wire:
            topic_id = await create_topic(wire, "t")
            for _ in range(3):
                await put(wire)
            await node.propose(MoveLogStart(topic_id=topic_id, partition=0, log_start_offset=2))
            assert node.led.by_name["t"][0].log_start_offset == 2
        async with running_node(tmp_path) as node:
            assert node.led.by_name["t"][0].log_start_offset == 2

    asyncio.run(scenario())


def test_changed_settings_are_those_of_all_its_partitions_and_after_a_restart(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running_node(tmp_path) as node, await Wire.to(node) as wire:
            await create_topic(wire, "t", 3)
            await create_topic(wire, "other")
            small = NamedValue(name="max.message.bytes", value="1000")
            await node.propose(SetConfigs(resource_type=ResourceType.TOPIC, name="t", configs=[small]))
            limits = {str(partition): partition.config.max_message_bytes for partition in node.led}
            assert limits == {"t-0": 1000, "t-1": 1000, "t-2": 1000, "other-0": node.settings.message_max_bytes}
        async with running_node(tmp_path) as node:
            assert {str(partition): partition.config.max_message_bytes for partition in node.led} == limits

    asyncio.run(scenario())


def test_a_thousand_partitions_come_and_go_with_their_topic(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running_node(tmp_path) as node, await Wire.to(node) as wire:
            topic_id = await create_topic(wire, "t", 1000)
            assert await put(wire, partition=999) == 0
            assert len(led(node)) == 1000
            await node.propose(DeleteTopic(topic_id=topic_id))
            assert led(node) == set()

    asyncio.run(scenario())
