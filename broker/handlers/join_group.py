"""JoinGroup: a member joins its group's next generation (KIP-62, KIP-345, KIP-394)."""

from __future__ import annotations

from walrusmq.broker.context import Context
from walrusmq.broker.deferred import Deferred
from walrusmq.broker.dispatcher import handles
from walrusmq.protocol.errors import ErrorCode, KafkaError
from walrusmq.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse

#: From here on a member without an id is given one first, and joins with it (KIP-394).
FIRST_VERSION_WITH_IDS_FIRST = 4


@handles(JoinGroupRequest)
def join_group(request: JoinGroupRequest, context: Context) -> JoinGroupResponse | Deferred:
    """Answer once the generation begins, or at once what keeps the member out."""
    coordinator = context.node.coordinator
    try:
        group = coordinator.group_for(request.group_id, create=not request.member_id)
    except KafkaError as error:
        return JoinGroupResponse(error_code=error.code, member_id=request.member_id)
    if group is None:
        return JoinGroupResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID, member_id=request.member_id)
    answer = coordinator.waiting(
        JoinGroupResponse(error_code=ErrorCode.NOT_COORDINATOR, member_id=request.member_id, protocol_name="")
    )
    group.join(
        request,
        coordinator.new_member_id(request.group_instance_id or context.client_id),
        context.api_version >= FIRST_VERSION_WITH_IDS_FIRST,
        context.client_id or "",
        f"/{context.connection.peer_host}",
        answer,
        coordinator.now_ms(),
    )
    coordinator.act(group)
    return answer
