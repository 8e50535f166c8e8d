"""OffsetForLeaderEpoch: where a leader epoch ended, for consumers that check for truncation (KIP-320)."""

from __future__ import annotations

from walrusmq.broker.context import Context
from walrusmq.broker.dispatcher import handles
from walrusmq.broker.partition_lookup import led_partition
from walrusmq.protocol.errors import KafkaError
from walrusmq.protocol.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopicResult,
)


@handles(OffsetForLeaderEpochRequest)
def offset_for_leader_epoch(request: OffsetForLeaderEpochRequest, context: Context) -> OffsetForLeaderEpochResponse:
    """Answer each partition in the request's order, also one that is asked for twice."""
    return OffsetForLeaderEpochResponse(
        topics=[
            OffsetForLeaderTopicResult(
                topic=topic.topic, partitions=[_answer(topic.topic, wanted, context) for wanted in topic.partitions]
            )
            for topic in request.topics
        ]
    )


def _answer(topic: str, wanted: OffsetForLeaderPartition, context: Context) -> EpochEndOffset:
    answer = EpochEndOffset(partition=wanted.partition)
    try:
        partition = led_partition(context.node, topic, wanted.partition, wanted.current_leader_epoch)
        found = partition.end_offset_for_epoch(wanted.leader_epoch)
    except KafkaError as error:
        answer.error_code = error.code
    else:
        if found is not None:
            answer.leader_epoch, answer.end_offset = found
    return answer
