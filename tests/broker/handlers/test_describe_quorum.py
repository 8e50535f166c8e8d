"""DescribeQuorum: a quorum of one."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from support.embedded import Wire, create_topic, running_node

from walrusmq.protocol.errors import ErrorCode
from walrusmq.protocol.messages.describe_quorum import DescribeQuorumRequest, RequestedPartition, RequestedTopic

METADATA = "__cluster_metadata"


def asking(*topics: tuple[str, list[int]]) -> DescribeQuorumRequest:
    return DescribeQuorumRequest(
        topics=[
            RequestedTopic(topic_name=name, partitions=[RequestedPartition(partition_index=each) for each in indexes])
            for name, indexes in topics
        ]
    )


@pytest.mark.parametrize("version", range(3))
def test_the_node_leads_alone_and_is_as_far_as_its_log(tmp_path: Path, version: int) -> None:
    async def scenario() -> None:
        async with running_node(tmp_path) as node, await Wire.to(node) as wire:
            response = await wire.ask(asking((METADATA, [0])), version)
            ((log,),) = [topic.partitions for topic in response.topics]
            assert (response.error_code, log.error_code) == (0, 0)
            assert (log.leader_id, log.leader_epoch) == (node.node_id, node.metadata_term)
            assert log.high_watermark == node.image.applied_index + 1
            (voter,) = log.current_voters
            assert (voter.replica_id, voter.log_end_offset, log.observers) == (node.node_id, log.high_watermark, [])
            assert (voter.last_fetch_timestamp > 0) == (version >= 1)
            assert [each.node_id for each in response.nodes] == ([node.node_id] if version >= 2 else [])

    asyncio.run(scenario())


def test_the_high_watermark_grows_with_each_command(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running_node(tmp_path) as node, await Wire.to(node) as wire:
            before = (await wire.ask(asking((METADATA, [0])), 2)).topics[0].partitions[0].high_watermark
            await create_topic(wire, "t")
            after = (await wire.ask(asking((METADATA, [0])), 2)).topics[0].partitions[0].high_watermark
            assert after == before + 1

    asyncio.run(scenario())


@pytest.mark.parametrize(
    "topics",
    [[("t", [0])], [(METADATA, [1])], [(METADATA, [0, 1])], [(METADATA, [0]), ("t", [0])], [(METADATA, [0, 0])]],
    ids=["other", "partition", "partitions", "topics", "twice"],
)
def test_anything_else_or_anything_besides_is_not_hosted(tmp_path: Path, topics: list[tuple[str, list[int]]]) -> None:
    async def scenario() -> None:
        async with running_node(tmp_path) as node, await Wire.to(node) as wire:
            response = await wire.ask(asking(*topics), 2)
            told = [
                (topic.topic_name, [each.partition_index for each in topic.partitions]) for topic in response.topics
            ]
            assert told == topics
            codes: set[Any] = {each.error_code for topic in response.topics for each in topic.partitions}
            assert codes == {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
            assert (response.error_code, response.nodes) == (0, [])

    asyncio.run(scenario())


def test_nothing_asked_is_no_error(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running_node(tmp_path) as node, await Wire.to(node) as wire:
            response = await wire.ask(asking(), 2)
            assert (response.error_code, response.topics) == (0, [])

    asyncio.run(scenario())
