"""DescribeTopicPartitions: topics and their partitions by name, page by page (KIP-966)."""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING

from walrusmq.broker.authorized_operations import TOPIC_OPERATIONS
from walrusmq.broker.context import Context
from walrusmq.broker.dispatcher import handles
from walrusmq.broker.placements import Placements
from walrusmq.broker.topics import is_internal, missing_topic
from walrusmq.protocol.errors import ErrorCode
from walrusmq.protocol.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)

if TYPE_CHECKING:
    from walrusmq.broker.image import ClusterImage, PartitionImage, TopicImage

#: Partitions of one page at most, whatever a client asks for: Kafka's default of max.request.partition.size.limit.
MAX_PAGE_PARTITIONS = 2000


@handles(DescribeTopicPartitionsRequest)
def describe_topic_partitions(
    request: DescribeTopicPartitionsRequest, context: Context
) -> DescribeTopicPartitionsResponse:
    """Describe topics in the order of their names, from the cursor on, until the page is full."""
    image = context.node.image
    names = sorted({topic.name for topic in request.topics} if request.topics else image.topics_by_name)
    refusal = _refusal(request, names)
    if refusal is not ErrorCode.NONE:
        refused = [
            DescribeTopicPartitionsResponseTopic(error_code=refusal, name=topic.name) for topic in request.topics
        ]
        return DescribeTopicPartitionsResponse(topics=refused)
    first = 0
    if request.cursor is not None:
        names = names[bisect_left(names, request.cursor.topic_name) :]
        if names and names[0] == request.cursor.topic_name:
            first = request.cursor.partition_index
    return _page(names, first, min(max(request.response_partition_limit, 1), MAX_PAGE_PARTITIONS), image)


def _refusal(request: DescribeTopicPartitionsRequest, names: list[str]) -> ErrorCode:
    """The error for all named topics; where all topics are asked for none is named, so that the answer is empty."""
    cursor = request.cursor
    if cursor is not None and cursor.partition_index < 0:
        return ErrorCode.INVALID_REQUEST
    if "" in names:
        # Kafka fails inside on an empty name, and that is the code which clients know.
        return ErrorCode.UNKNOWN_SERVER_ERROR
    if cursor is not None and request.topics and cursor.topic_name not in names:
        return ErrorCode.INVALID_REQUEST
    return ErrorCode.NONE


def _page(names: list[str], first: int, limit: int, image: ClusterImage) -> DescribeTopicPartitionsResponse:
    """Up to ``limit`` partitions, those of ``names[0]`` from ``first`` on."""
    response, placements = DescribeTopicPartitionsResponse(), Placements(image)
    left = limit
    for name in names:
        if left == 0:
            response.next_cursor = Cursor(topic_name=name, partition_index=0)
            break
        topic = image.topics_by_name.get(name)
        if topic is None:
            response.topics.append(_unknown(name))
        else:
            end = min(first + left, len(topic.partitions))
            response.topics.append(_describe(topic, first, end, placements))
            if end < len(topic.partitions):
                response.next_cursor = Cursor(topic_name=name, partition_index=end)
                break
            left -= max(end - first, 0)
        first = 0
    return response


def _unknown(name: str) -> DescribeTopicPartitionsResponseTopic:
    return DescribeTopicPartitionsResponseTopic(
        error_code=missing_topic(name).code,
        name=name,
        is_internal=is_internal(name),
        topic_authorized_operations=TOPIC_OPERATIONS,
    )


def _describe(topic: TopicImage, first: int, end: int, placements: Placements) -> DescribeTopicPartitionsResponseTopic:
    return DescribeTopicPartitionsResponseTopic(
        name=topic.name,
        topic_id=topic.id,
        is_internal=is_internal(topic.name),
        partitions=[_describe_partition(index, topic.partitions[index], placements) for index in range(first, end)],
        topic_authorized_operations=TOPIC_OPERATIONS,
    )


def _describe_partition(
    index: int, partition: PartitionImage, placements: Placements
) -> DescribeTopicPartitionsResponsePartition:
    """Every member of the open segment holds all of it, so there are no others who might be elected."""
    placement = placements.of(partition)
    return DescribeTopicPartitionsResponsePartition(
        error_code=placement.error_code,
        partition_index=index,
        leader_id=placement.leader_id,
        leader_epoch=partition.open.leader_epoch,
        replica_nodes=placement.replica_nodes,
        isr_nodes=placement.isr_nodes,
        eligible_leader_replicas=[],
        last_known_elr=[],
        offline_replicas=placement.offline_replicas,
    )
