"""DescribeQuorum: who keeps the cluster's metadata, and how far each is (KIP-595, KIP-836, KIP-853)."""

from __future__ import annotations

from walrusmq.broker.context import Context
from walrusmq.broker.dispatcher import handles
from walrusmq.broker.topics import METADATA_LOG_NAME
from walrusmq.protocol.errors import ErrorCode
from walrusmq.protocol.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    PartitionData,
    ReplicaState,
    TopicData,
)
from walrusmq.protocol.messages.describe_quorum import Node as Voter

METADATA_PARTITION = 0
FIRST_VERSION_WITH_NODES = 2
NOT_HOSTED = "This server does not host this topic-partition."
"""Kafka's own words."""


@handles(DescribeQuorumRequest)
def describe_quorum(request: DescribeQuorumRequest, context: Context) -> DescribeQuorumResponse:
    """The metadata log alone is answered for, and only where nothing else is asked for with it, as in Kafka."""
    wanted = [(topic.topic_name, each.partition_index) for topic in request.topics for each in topic.partitions]
    is_metadata = wanted == [(METADATA_LOG_NAME, METADATA_PARTITION)] and len(request.topics) == 1
    response = DescribeQuorumResponse(error_message="")
    for topic in request.topics:
        partitions = [
            _metadata_log(context) if is_metadata else _not_hosted(each.partition_index) for each in topic.partitions
        ]
        response.topics.append(TopicData(topic_name=topic.topic_name, partitions=partitions))
    if is_metadata and context.api_version >= FIRST_VERSION_WITH_NODES:
        # it has no listener for other voters: there are none
        response.nodes.append(Voter(node_id=context.node.node_id))
    return response


def _metadata_log(context: Context) -> PartitionData:
    node = context.node
    end_offset, now_ms = node.image.applied_index + 1, node.clock.now_ms()
    voter = ReplicaState(
        replica_id=node.node_id,
        log_end_offset=end_offset,
        last_fetch_timestamp=now_ms,
        last_caught_up_timestamp=now_ms,
    )
    return PartitionData(
        partition_index=METADATA_PARTITION,
        error_message="",
        leader_id=node.node_id,
        leader_epoch=node.metadata_term,
        high_watermark=end_offset,
        current_voters=[voter],
    )


def _not_hosted(index: int) -> PartitionData:
    return PartitionData(
        partition_index=index, error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, error_message=NOT_HOSTED
    )
