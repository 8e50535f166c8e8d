"""OffsetFetch: how far groups have come, in the partitions that are asked for or in all (KIP-709, KIP-848)."""

from __future__ import annotations

from walrusmq.broker.context import Context
from walrusmq.broker.dispatcher import handles
from walrusmq.broker.groups.offsets import CommittedOffset, OffsetsByTopic
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
    topics = _all_of(offsets, context) if wanted.topics is None else wanted.topics
    answer.topics = [_answered(topic, context, offsets) for topic in topics]
    return answer


def _all_of(offsets: OffsetsByTopic, context: Context) -> list[OffsetFetchRequestTopics]:
    """As if all partitions that have offsets were asked for."""
    image = context.node.image
    return [
        OffsetFetchRequestTopics(name=name, topic_id=image.topics_by_name[name].id, partition_indexes=list(partitions))
        for name, partitions in offsets.items()
        if name in image.topics_by_name
    ]


def _answered(
    wanted: OffsetFetchRequestTopics,
    context: Context,
    offsets: OffsetsByTopic,
    error_code: int = ErrorCode.NONE,
) -> OffsetFetchResponseTopics:
    name = wanted.name
    if context.api_version >= FIRST_VERSION_WITH_IDS:
        topic = context.node.image.topics.get(wanted.topic_id)
        if topic is None:
            offsets, error_code = {}, ErrorCode.UNKNOWN_TOPIC_ID
        else:
            name = topic.name
    held = offsets.get(name, {})
    return OffsetFetchResponseTopics(
        name=name,
        topic_id=wanted.topic_id,
        partitions=[_partition(index, held.get(index, NOTHING), error_code) for index in wanted.partition_indexes],
    )


def _partition(index: int, committed: CommittedOffset, error_code: int) -> OffsetFetchResponsePartitions:
    return OffsetFetchResponsePartitions(
        partition_index=index,
        committed_offset=committed.offset,
        committed_leader_epoch=committed.leader_epoch,
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
