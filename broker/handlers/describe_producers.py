"""DescribeProducers: the idempotent producers that partitions remember (KIP-664)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from walrusmq.broker.context import Context
from walrusmq.broker.dispatcher import handles
from walrusmq.broker.partition_lookup import NO_EPOCH, led_partition
from walrusmq.broker.topics import missing_topic
from walrusmq.protocol.errors import InvalidRequest, KafkaError
from walrusmq.protocol.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicResponse,
)

if TYPE_CHECKING:
    from walrusmq.broker.node import Node

#: Producers in one answer, about 5 MB: a request can name a partition with thousands of them any number of times.
MAX_DESCRIBED_PRODUCERS = 100_000
#: Partitions described before other work gets its turn.
PARTITIONS_PER_TURN = 100
#: There are no transactions, so no coordinator has written an end of one.
NO_EPOCH_OF_A_COORDINATOR = -1


@handles(DescribeProducersRequest)
async def describe_producers(request: DescribeProducersRequest, context: Context) -> DescribeProducersResponse:
    """Answer each partition in the request's order, also one that is asked for twice."""
    node = context.node
    topics: list[TopicResponse] = []
    left, count = MAX_DESCRIBED_PRODUCERS, 0
    for topic in request.topics:
        described = TopicResponse(name=topic.name)
        topics.append(described)
        for index in topic.partition_indexes:
            answer = _describe(node, topic.name, index, left)
            left -= len(answer.active_producers)
            described.partitions.append(answer)
            count += 1
            if count % PARTITIONS_PER_TURN == 0:
                await asyncio.sleep(0)
    return DescribeProducersResponse(topics=topics)


def _describe(node: Node, name: str, index: int, limit: int) -> PartitionResponse:
    answer = PartitionResponse(partition_index=index)
    try:
        answer.active_producers = _producers(node, name, index, limit)
    except KafkaError as error:
        answer.error_code, answer.error_message = error.code, str(error)
    return answer


def _producers(node: Node, name: str, index: int, limit: int) -> list[ProducerState]:
    """Raises InvalidTopic, InvalidRequest for more than ``limit``, and what `led_partition` and `load` raise."""
    if name not in node.image.topics_by_name:
        raise missing_topic(name)
    partition = led_partition(node, name, index, NO_EPOCH)
    partition.load()
    snapshot = partition.producers.snapshot(node.clock.now_ms())
    if len(snapshot) > limit:
        raise InvalidRequest(f"one answer has at most {MAX_DESCRIBED_PRODUCERS} producers: ask for fewer partitions")
    return [
        ProducerState(
            producer_id=producer_id,
            producer_epoch=epoch,
            last_sequence=batches[-1].last_sequence,
            last_timestamp=batches[-1].max_timestamp,
            coordinator_epoch=NO_EPOCH_OF_A_COORDINATOR,
        )
        for producer_id, epoch, _, batches in snapshot
    ]
