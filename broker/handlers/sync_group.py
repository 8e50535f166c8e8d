"""SyncGroup: the leader hands in the assignments, each member gets its own."""

from __future__ import annotations

from walrusmq.broker.context import Context
from walrusmq.broker.deferred import Deferred
from walrusmq.broker.dispatcher import handles
from walrusmq.protocol.errors import ErrorCode, KafkaError
from walrusmq.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse


@handles(SyncGroupRequest)
def sync_group(request: SyncGroupRequest, context: Context) -> SyncGroupResponse | Deferred:
    """Answer once the assignments are stored."""
    coordinator = context.node.coordinator
    try:
        group = coordinator.group_to_join(request.group_id, create=False)
    except KafkaError as error:
        return SyncGroupResponse(error_code=error.code)
    if group is None:
        return SyncGroupResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID)
    answer = coordinator.waiting(SyncGroupResponse(error_code=ErrorCode.NOT_COORDINATOR))
    group.sync(request, answer, coordinator.now_ms())
    coordinator.act(group)
    return answer
