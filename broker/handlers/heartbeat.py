"""Heartbeat: a member of a group is alive."""

from __future__ import annotations

from walrusmq.broker.context import Context
from walrusmq.broker.dispatcher import handles
from walrusmq.protocol.errors import ErrorCode, KafkaError
from walrusmq.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse


@handles(HeartbeatRequest)
def heartbeat(request: HeartbeatRequest, context: Context) -> HeartbeatResponse:
    """Prolong the session, or say what the member must do instead."""
    coordinator = context.node.coordinator
    try:
        group = coordinator.group_to_join(request.group_id, create=False)
        if group is None:
            return HeartbeatResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID)
        group.heartbeat(request.member_id, request.group_instance_id, request.generation_id, coordinator.now_ms())
    except KafkaError as error:
        return HeartbeatResponse(error_code=error.code)
    coordinator.act(group)
    return HeartbeatResponse()
