"""OffsetDelete: forget a group's offsets of topics that it isn't subscribed to (KIP-496)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from walrusmq.broker.context import Context
from walrusmq.broker.dispatcher import handles
from walrusmq.broker.groups.subscriptions import CONSUMER_PROTOCOL_TYPE
from walrusmq.protocol.errors import ErrorCode, GroupIdNotFound, KafkaError, NonEmptyGroup
from walrusmq.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)

if TYPE_CHECKING:
    from walrusmq.broker.node import Node


@handles(OffsetDeleteRequest)
async def offset_delete(request: OffsetDeleteRequest, context: Context) -> OffsetDeleteResponse:
    """Answer each partition; an offset that isn't there counts as deleted."""
    node = context.node
    try:
        subscribed = _subscribed(request.group_id, node)
    except KafkaError as error:
        return OffsetDeleteResponse(error_code=error.code)
    response = OffsetDeleteResponse()
    deletable = []
    parts = []
    for topic in request.topics:
        answered = OffsetDeleteResponseTopic(name=topic.name)
        response.topics.append(answered)
        known = node.image.topics_by_name.get(topic.name)
        for partition in topic.partitions:
            index = partition.partition_index
            part = OffsetDeleteResponsePartition(partition_index=index)
            answered.partitions.append(part)
            if known is None or not 0 <= index < len(known.partitions):
                part.error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            elif subscribed is None or topic.name in subscribed:
                part.error_code = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
            else:
                deletable.append((topic.name, index))
                parts.append(part)
    try:
        await node.coordinator.delete_offsets(request.group_id, deletable)
    except KafkaError as error:
        for part in parts:
            part.error_code = error.code
    return response


def _subscribed(group_id: str, node: Node) -> set[str] | None:
    """The topics whose offsets stay; None for all, where members say what isn't understood.

    Raises why the group's offsets can't be deleted at all.
    """
    group = node.coordinator.group(group_id)
    if group is None:
        raise GroupIdNotFound(f"there is no group {group_id}")
    if group.is_empty:
        return set()
    if group.protocol_type != CONSUMER_PROTOCOL_TYPE:
        raise NonEmptyGroup(f"group {group_id} has members whose topics aren't known")
    return group.subscribed_topics()
