"""LeaveGroup: members leave at once, one up to version 2, several from version 3 on (KIP-345)."""

from __future__ import annotations

from walrusmq.broker.context import Context
from walrusmq.broker.dispatcher import handles
from walrusmq.protocol.errors import ErrorCode, KafkaError
from walrusmq.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberResponse

FIRST_VERSION_WITH_SEVERAL = 3


@handles(LeaveGroupRequest)
def leave_group(request: LeaveGroupRequest, context: Context) -> LeaveGroupResponse:
    """Let each member go, or say why it can't; the others share anew."""
    coordinator = context.node.coordinator
    is_several = context.api_version >= FIRST_VERSION_WITH_SEVERAL
    wanted: list[tuple[str, str | None]] = (
        [(member.member_id, member.group_instance_id) for member in request.members]
        if is_several
        else [(request.member_id, None)]
    )
    try:
        group = coordinator.group_to_join(request.group_id, create=False)
        if group is None:
            codes: list[int] = [ErrorCode.UNKNOWN_MEMBER_ID] * len(wanted)
        else:
            codes = group.leave(wanted, coordinator.now_ms())
            coordinator.act(group)
    except KafkaError as error:
        return LeaveGroupResponse(error_code=error.code)
    if not is_several:
        return LeaveGroupResponse(error_code=codes[0])
    return LeaveGroupResponse(
        members=[
            MemberResponse(member_id=member_id, group_instance_id=instance_id, error_code=code)
            for (member_id, instance_id), code in zip(wanted, codes, strict=True)
        ]
    )
