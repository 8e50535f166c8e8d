"""OffsetCommit: store how far a group has come, once its member or generation is known to be the present one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from walrusmq.broker.context import Context
from walrusmq.broker.deferred import Deferred
from walrusmq.broker.dispatcher import handles
from walrusmq.broker.groups.offsets import NO_EXPIRY_MS, CommittedOffset, TopicPartition
from walrusmq.protocol.errors import ErrorCode, IllegalGeneration, KafkaError
from walrusmq.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)

if TYPE_CHECKING:
    from walrusmq.broker.image import TopicImage
    from walrusmq.broker.node import Node

FIRST_VERSION_WITH_IDS = 10
#: A client that leaves it to the node how long offsets are kept.
NO_RETENTION = -1


@handles(OffsetCommitRequest)
def offset_commit(request: OffsetCommitRequest, context: Context) -> Any:
    """Answer each partition: what can't be committed doesn't keep the others back, a refused member does."""
    node = context.node
    response = OffsetCommitResponse()
    committed: dict[TopicPartition, CommittedOffset] = {}
    accepted: list[OffsetCommitResponsePartition] = []
    for wanted in request.topics:
        topic, unknown = _find_topic(wanted, context)
        answered = OffsetCommitResponseTopic(name=wanted.name, topic_id=wanted.topic_id)
        response.topics.append(answered)
        for partition in wanted.partitions:
            part = OffsetCommitResponsePartition(partition_index=partition.partition_index, error_code=unknown)
            answered.partitions.append(part)
            if topic is None:
                continue
            part.error_code = _refusal(partition, topic, node)
            if not part.error_code:
                accepted.append(part)
                committed[topic.name, partition.partition_index] = _committed(partition, request, topic, node)
    if not accepted:
        return response
    deferred = Deferred()

    def done(error: KafkaError | None) -> None:
        if error is not None:
            for part in accepted:
                part.error_code = error.code
        deferred.resolve(response)

    try:
        _check_member(request, node)
        node.coordinator.commit(request.group_id, committed, done)
    except KafkaError as error:
        done(error)
    return response if deferred.is_done else deferred


def _check_member(request: OffsetCommitRequest, node: Node) -> None:
    coordinator = node.coordinator
    group = coordinator.group(request.group_id)
    generation = request.generation_id_or_member_epoch
    if group is not None:
        try:
            group.check_commit(request.member_id, request.group_instance_id, generation, coordinator.now_ms())
        finally:
            coordinator.act(group)
    elif generation >= 0:
        raise IllegalGeneration(f"there is no group {request.group_id}, and so no generation {generation}")


def _find_topic(wanted: OffsetCommitRequestTopic, context: Context) -> tuple[TopicImage | None, int]:
    """The topic, or None and the code for that."""
    image = context.node.image
    if context.api_version >= FIRST_VERSION_WITH_IDS:
        return image.topics.get(wanted.topic_id), ErrorCode.UNKNOWN_TOPIC_ID
    return image.topics_by_name.get(wanted.name), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def _refusal(partition: OffsetCommitRequestPartition, topic: TopicImage, node: Node) -> int:
    """The code by which a partition's offset is refused, 0 for none."""
    if not 0 <= partition.partition_index < len(topic.partitions):
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    metadata = partition.committed_metadata or ""
    # Java counts UTF-16 units
    if len(metadata.encode("utf-16-le", "surrogatepass")) // 2 > node.settings.offset_metadata_max_bytes:
        return ErrorCode.OFFSET_METADATA_TOO_LARGE
    return ErrorCode.NONE


def _committed(
    partition: OffsetCommitRequestPartition, request: OffsetCommitRequest, topic: TopicImage, node: Node
) -> CommittedOffset:
    now_ms = node.clock.now_ms()
    kept_ms = request.retention_time_ms
    return CommittedOffset(
        offset=partition.committed_offset,
        leader_epoch=partition.committed_leader_epoch,
        metadata=partition.committed_metadata or "",
        commit_ms=now_ms,
        expire_ms=NO_EXPIRY_MS if kept_ms == NO_RETENTION else now_ms + kept_ms,
        topic_id=topic.id,
    )
