"""DescribeLogDirs: true sizes, and the disk's."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest
from support.embedded import Wire, batch_of, create_topic, produce, running_node

from walrusmq.broker.node import Node
from walrusmq.protocol.errors import ErrorCode
from walrusmq.protocol.messages.describe_log_dirs import (
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
    DescribeLogDirsResult,
)
from walrusmq.segments.files import OsFiles

BATCH = batch_of(b"x" * 100, b"y")


async def described(
    wire: Wire, *topics: tuple[str, list[int]], version: int = 5, whole: bool = False
) -> DescribeLogDirsResult:
    wanted = None if whole else [DescribableLogDirTopic(topic=name, partitions=parts) for name, parts in topics]
    response = await wire.ask(DescribeLogDirsRequest(topics=wanted), version)
    assert response.error_code == 0
    (result,) = response.results
    assert isinstance(result, DescribeLogDirsResult)
    return result


def sizes(result: DescribeLogDirsResult) -> dict[tuple[str, int], int]:
    return {
        (topic.name, each.partition_index): each.partition_size for topic in result.topics for each in topic.partitions
    }


async def fill(node: Node, wire: Wire) -> None:
    """Topic a with three batches in two segments, and topic b with nothing."""
    await create_topic(wire, "a", 2)
    await create_topic(wire, "b", 1)
    for count in range(3):
        if count == 2:
            await node.rollovers.begin(node.partitions_by_name["a"][1], "manual")
        await wire.ask(produce("a", BATCH, partition=1), 9)


@pytest.mark.parametrize("version", range(1, 6))
def test_all_partitions_are_told_with_the_bytes_of_all_their_segments(tmp_path: Path, version: int) -> None:
    async def scenario() -> None:
        async with running_node(tmp_path) as node, await Wire.to(node) as wire:
            await fill(node, wire)
            result = await described(wire, whole=True, version=version)
            assert (result.error_code, result.log_dir) == (0, str(tmp_path))
            assert sizes(result) == {("a", 0): 0, ("a", 1): 3 * len(BATCH), ("b", 0): 0}

    asyncio.run(scenario())
    logs = [path.stat().st_size for path in (tmp_path / "topics").rglob("*.log")]
    assert sum(logs) == 3 * len(BATCH)


def test_the_disk_is_told_as_the_system_sees_it_from_version_4_on(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running_node(tmp_path) as node, await Wire.to(node) as wire:
            result = await described(wire)
            disk = os.statvfs(tmp_path)
            assert result.total_bytes == disk.f_blocks * disk.f_frsize
            assert 0 < result.usable_bytes < result.total_bytes
            old = await described(wire, version=3)
            assert (old.total_bytes, old.usable_bytes) == (-1, -1)

    asyncio.run(scenario())


def test_only_known_partitions_that_are_asked_for_are_told_each_once(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running_node(tmp_path) as node, await Wire.to(node) as wire:
            await fill(node, wire)
            result = await described(wire, ("a", [1, 1, 9, -1]), ("none", [0]), ("a", [1]))
            assert [(topic.name, len(topic.partitions)) for topic in result.topics] == [("a", 1)]
            assert sizes(result) == {("a", 1): 3 * len(BATCH)}
            assert sizes(await described(wire)) == {}

    asyncio.run(scenario())


class BlindFiles(OsFiles):
    """A disk that can't be asked for its size."""

    def total_bytes(self, path: str, /) -> int:
        raise OSError(5, "no such luck")


def test_a_disk_that_cannot_be_asked_is_told_as_failing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        async with running_node(tmp_path, files=BlindFiles()) as node, await Wire.to(node) as wire:
            await create_topic(wire, "a")
            result = await described(wire, whole=True)
            assert (result.error_code, result.topics) == (ErrorCode.KAFKA_STORAGE_ERROR, [])
            assert (result.total_bytes, result.usable_bytes) == (-1, -1)

    asyncio.run(scenario())
    assert "no such luck" in caplog.text
