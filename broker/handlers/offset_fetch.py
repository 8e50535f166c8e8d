"""OffsetFetch: how far groups have come, in the partitions that are asked for or in all (KIP-709, KIP-848)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from walrusmq.broker.context import Context
from walrusmq.broker.dispatcher import handles
from walrusmq.broker.groups.offsets import NO_EPOCH, CommittedOffset, TopicPartition
from walrusmq.protocol.errors import ErrorCode, KafkaError
from walrusmq.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)

if TYPE_CHECKING:
    from walrusmq.broker.image import ClusterImage

FIRST_VERSION_WITH_GROUPS = 8
FIRST_VERSION_WITH_IDS = 10
FIRST_VERSION_WITH_ERROR = 2
NO_OFFSET = -1
NOTHING = CommittedOffset(NO_OFFSET)


@handles(OffsetFetchRequest)
def offset_fetch(request: OffsetFetchRequest, context: Context) -> OffsetFetchResponse:
    """Answer -1 where a group has no offset: one that doesn't exist is no error."""
    if context.api_version >= FIRST_VERSION_WITH_GROUPS:
        return OffsetFetchResponse(groups=[_group(wanted, context) for wanted in request.groups])
    names = None
    if request.topics is not None:
        names = [OffsetFetchRequestTopics(name=t.name, partition_indexes=t.partition_indexes) for t in request.topics]
    found = _group(OffsetFetchRequestGroup(group_id=request.group_id, topics=names), context)
    if not found.error_code:
        return OffsetFetchResponse(topics=[_old_topic(topic) for topic in found.topics])
    if context.api_version >= FIRST_VERSION_WITH_ERROR:
        return OffsetFetchResponse(error_code=found.error_code)
    failed = [_answered(topic, context, {}, found.error_code) for topic in names or ()]
    return OffsetFetchResponse(topics=[_old_topic(topic) for topic in failed])


def _group(wanted: OffsetFetchRequestGroup, context: Context) -> OffsetFetchResponseGroup:
    answer = OffsetFetchResponseGroup(group_id=wanted.group_id)
    try:
        offsets = context.node.coordinator.offsets(wanted.group_id)
    except KafkaError as error:
        answer.error_code = error.code
        return answer
    topics = _all_of(offsets, context.node.image, context) if wanted.topics is None else wanted.topics
    answer.topics = [_answered(topic, context, offsets) for topic in topics]
    return answer


def _all_of(
    offsets: Mapping[TopicPartition, CommittedOffset], image: ClusterImage, context: Context
) -> list[OffsetFetchRequestTopics]:
    """As if all partitions that have offsets were asked for; by id only those of topics that there are."""
    indexes: dict[str, list[int]] = {}
    for name, index in offsets:
        indexes.setdefault(name, []).append(index)
    if context.api_version < FIRST_VERSION_WITH_IDS:
        return [OffsetFetchRequestTopics(name=name, partition_indexes=listed) for name, listed in indexes.items()]
    return [
        OffsetFetchRequestTopics(topic_id=image.topics_by_name[name].id, partition_indexes=listed)
        for name, listed in indexes.items()
        if name in image.topics_by_name
    ]


def _answered(
    wanted: OffsetFetchRequestTopics,
    context: Context,
    offsets: Mapping[TopicPartition, CommittedOffset],
    error_code: int = ErrorCode.NONE,
) -> OffsetFetchResponseTopics:
    name = wanted.name
    if context.api_version >= FIRST_VERSION_WITH_IDS:
        topic = context.node.image.topics.get(wanted.topic_id)
        if topic is None:
            offsets, error_code = {}, ErrorCode.UNKNOWN_TOPIC_ID
        else:
            name = topic.name
    return OffsetFetchResponseTopics(
        name=name,
        topic_id=wanted.topic_id,
        partitions=[
            _partition(index, offsets.get((name, index), NOTHING), error_code) for index in wanted.partition_indexes
        ],
    )


def _partition(index: int, committed: CommittedOffset, error_code: int) -> OffsetFetchResponsePartitions:
    return OffsetFetchResponsePartitions(
        partition_index=index,
        committed_offset=committed.offset,
        committed_leader_epoch=committed.leader_epoch if committed is not NOTHING else NO_EPOCH,
        metadata=committed.metadata,
        error_code=error_code,
    )


def _old_topic(topic: OffsetFetchResponseTopics) -> OffsetFetchResponseTopic:
    return OffsetFetchResponseTopic(
        name=topic.name,
        partitions=[
            OffsetFetchResponsePartition(
                partition_index=part.partition_index,
                committed_offset=part.committed_offset,
                committed_leader_epoch=part.committed_leader_epoch,
                metadata=part.metadata,
                error_code=part.error_code,
            )
            for part in topic.partitions
        ],
    )
