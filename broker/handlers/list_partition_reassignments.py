"""ListPartitionReassignments: partitions that move to other nodes. On a single node none ever does (KIP-455)."""

from __future__ import annotations

from walrusmq.broker.context import Context
from walrusmq.broker.dispatcher import handles
from walrusmq.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)


@handles(ListPartitionReassignmentsRequest)
def list_partition_reassignments(
    request: ListPartitionReassignmentsRequest, context: Context
) -> ListPartitionReassignmentsResponse:
    """Kafka leaves out partitions that don't move, known or not."""
    return ListPartitionReassignmentsResponse(error_message=None)
