"""DescribeLogDirs: how much of the node's disk each partition takes, and what is left of it (KIP-113, KIP-827)."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from walrusmq.broker.context import Context
from walrusmq.broker.dispatcher import handles
from walrusmq.protocol.errors import ErrorCode
from walrusmq.protocol.messages.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)

if TYPE_CHECKING:
    from walrusmq.broker.node import Node
    from walrusmq.segments.partition import Partition

logger = logging.getLogger("walrusmq.log_dirs")

#: Partitions added up before other work gets its turn: a few milliseconds.
PARTITIONS_PER_TURN = 500


@handles(DescribeLogDirsRequest)
async def describe_log_dirs(request: DescribeLogDirsRequest, context: Context) -> DescribeLogDirsResponse:
    """There is one directory. Partitions that this node doesn't lead are left out, as in Kafka."""
    node = context.node
    result = DescribeLogDirsResult(log_dir=node.store.folder)
    try:
        result.total_bytes, result.usable_bytes = await node.store.background.run(lambda: _disk(node))
    except OSError as error:
        logger.warning("the file system of %s can't be asked for its size: %s", node.store.folder, error)
        result.error_code = ErrorCode.KAFKA_STORAGE_ERROR
        return DescribeLogDirsResponse(results=[result])
    result.topics = await _sizes(_wanted(request, node))
    return DescribeLogDirsResponse(results=[result])


def _disk(node: Node) -> tuple[int, int]:
    return node.files.total_bytes(node.store.folder), node.files.free_bytes(node.store.folder)


def _wanted(request: DescribeLogDirsRequest, node: Node) -> list[Partition]:
    """The partitions that are asked for, each once."""
    if request.topics is None:
        return list(node.led)
    found: dict[tuple[str, int], Partition] = {}
    for topic in request.topics:
        led = node.partitions_by_name.get(topic.topic, {})
        found.update(((topic.topic, index), led[index]) for index in topic.partitions if index in led)
    return list(found.values())


async def _sizes(partitions: list[Partition]) -> list[DescribeLogDirsTopic]:
    topics: dict[bytes, DescribeLogDirsTopic] = {}
    for count, partition in enumerate(partitions, 1):
        topic = topics.get(partition.topic_id)
        if topic is None:
            topic = topics[partition.topic_id] = DescribeLogDirsTopic(name=partition.topic)
        size_bytes = partition.log.position + sum(facts.size_bytes for facts in partition.chain.sealed)
        topic.partitions.append(
            DescribeLogDirsPartition(partition_index=partition.index, partition_size=size_bytes, offset_lag=0)
        )
        if count % PARTITIONS_PER_TURN == 0:
            await asyncio.sleep(0)
    return list(topics.values())
