"""ListOffsets: the offset that belongs to a time, or one of the special ones: earliest, latest, largest timestamp …"""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, NamedTuple

from walrusmq.broker.context import Context
from walrusmq.broker.dispatcher import handles
from walrusmq.broker.partition_lookup import led_partition
from walrusmq.protocol.errors import InvalidRequest, KafkaError, UnsupportedVersion
from walrusmq.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)

if TYPE_CHECKING:
    from walrusmq.broker.image import PartitionImage
    from walrusmq.segments.partition import Partition

LATEST = -1
EARLIEST = -2
MAX_TIMESTAMP = -3
EARLIEST_LOCAL = -4
LATEST_TIERED = -5
EARLIEST_PENDING_UPLOAD = -6
#: Negative timestamps that mean something, and since which version (KIP-734, KIP-405, KIP-1005, KIP-1023).
FIRST_VERSIONS = {
    LATEST: 1,
    EARLIEST: 1,
    MAX_TIMESTAMP: 7,
    EARLIEST_LOCAL: 8,
    LATEST_TIERED: 9,
    EARLIEST_PENDING_UPLOAD: 11,
}

FIRST_VERSION_WITH_EPOCHS = 4
CONSUMER = -1
ISOLATION_LEVELS = (0, 1)


class Found(NamedTuple):
    """An offset with its record's timestamp, where one was looked for, and leader epoch; -1 is none."""

    timestamp: int
    offset: int
    leader_epoch: int


NOTHING = Found(-1, -1, -1)


@handles(ListOffsetsRequest)
def list_offsets(request: ListOffsetsRequest, context: Context) -> ListOffsetsResponse:
    """Answer each partition once; one that is asked for twice gets INVALID_REQUEST instead, as in Kafka."""
    topics: dict[str, ListOffsetsTopicResponse] = {}
    answered: dict[tuple[str, int], ListOffsetsPartitionResponse] = {}
    for topic in request.topics:
        for wanted in topic.partitions:
            key = (topic.name, wanted.partition_index)
            if key in answered:
                _fail(answered[key], InvalidRequest("the request has this partition twice"))
                continue
            if topic.name not in topics:
                topics[topic.name] = ListOffsetsTopicResponse(name=topic.name)
            answered[key] = _answer(request, topic.name, wanted, context)
            topics[topic.name].partitions.append(answered[key])
    return ListOffsetsResponse(topics=list(topics.values()))


def _answer(
    request: ListOffsetsRequest, topic: str, wanted: ListOffsetsPartition, context: Context
) -> ListOffsetsPartitionResponse:
    answer = ListOffsetsPartitionResponse(partition_index=wanted.partition_index)
    try:
        found = _find(request, topic, wanted, context)
    except KafkaError as error:
        _fail(answer, error)
    else:
        answer.timestamp, answer.offset = found.timestamp, found.offset
        if context.api_version >= FIRST_VERSION_WITH_EPOCHS:
            answer.leader_epoch = found.leader_epoch
    return answer


def _fail(answer: ListOffsetsPartitionResponse, error: KafkaError) -> None:
    answer.error_code = error.code
    answer.timestamp, answer.offset, answer.leader_epoch = NOTHING


def _find(request: ListOffsetsRequest, topic: str, wanted: ListOffsetsPartition, context: Context) -> Found:
    if request.isolation_level not in ISOLATION_LEVELS:
        raise InvalidRequest(f"isolation level {request.isolation_level} isn't known")
    timestamp = wanted.timestamp
    if timestamp < 0 and context.api_version < FIRST_VERSIONS.get(timestamp, context.api_version + 1):
        raise UnsupportedVersion(f"timestamp {timestamp} means nothing in version {context.api_version}")
    partition = led_partition(context.node, topic, wanted.partition_index, wanted.current_leader_epoch)
    # Until transactions exist, what read_committed consumers see ends where all others' view does.
    end = partition.high_watermark if request.replica_id == CONSUMER else partition.log_end_offset
    if timestamp == LATEST:
        return Found(-1, end, partition.leader_epoch)
    if timestamp in (LATEST_TIERED, EARLIEST_PENDING_UPLOAD):
        return NOTHING
    image = context.node.image.topics_by_name[topic].partitions[wanted.partition_index]
    if timestamp in (EARLIEST, EARLIEST_LOCAL):
        return Found(-1, partition.log_start_offset, _leader_epoch_at(partition.log_start_offset, image))
    return _find_record(partition, timestamp, end, image)


def _find_record(partition: Partition, timestamp: int, end: int, image: PartitionImage) -> Found:
    """The first record of that time or later, or the first with the largest timestamp, if it is below ``end``."""
    found = partition.max_timestamp() if timestamp == MAX_TIMESTAMP else partition.offset_for_timestamp(timestamp)
    if found is None:
        return NOTHING
    record_timestamp, offset = found
    if offset >= end:
        return NOTHING
    return Found(record_timestamp, offset, _leader_epoch_at(offset, image))


def _leader_epoch_at(offset: int, image: PartitionImage) -> int:
    """The leader epoch of the segment that the offset falls into."""
    place = bisect_right(image.sealed, offset, key=lambda segment: segment.end_offset)
    return image.sealed[place].leader_epoch if place < len(image.sealed) else image.open.leader_epoch
