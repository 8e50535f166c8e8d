"""JoinGroup: a member joins its group's next generation (KIP-62, KIP-345, KIP-394)."""

from __future__ import annotations

from walrusmq.broker.context import Context
from walrusmq.broker.deferred import Deferred
from walrusmq.broker.dispatcher import handles
from walrusmq.broker.groups.group_messages import refused_join
from walrusmq.protocol.errors import KafkaError, NotCoordinator, UnknownMemberId
from walrusmq.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse

#: From here on a member without an id is given one first, and joins with it (KIP-394).
FIRST_VERSION_WITH_IDS_FIRST = 4
#: From here on a static leader that comes back is told so, and that the assignments stand (KIP-814).
FIRST_VERSION_THAT_SKIPS_ASSIGNMENT = 9


@handles(JoinGroupRequest)
def join_group(request: JoinGroupRequest, context: Context) -> JoinGroupResponse | Deferred:
    """Answer once the generation begins, or at once what keeps the member out."""
    coordinator = context.node.coordinator
    try:
        group = coordinator.group_to_join(request.group_id, create=not request.member_id)
    except KafkaError as error:
        return refused_join(request.member_id, error)
    if group is None:
        return refused_join(request.member_id, UnknownMemberId(f"there is no group {request.group_id}"))
    stopping = refused_join(request.member_id, NotCoordinator("the node is stopping"))
    answer = coordinator.waiting(stopping)
    group.join(
        request,
        coordinator.new_member_id(request.group_instance_id or context.client_id),
        context.api_version >= FIRST_VERSION_WITH_IDS_FIRST,
        context.client_id or "",
        f"/{context.connection.peer_host}",
        answer,
        coordinator.now_ms(),
        context.api_version >= FIRST_VERSION_THAT_SKIPS_ASSIGNMENT,
    )
    coordinator.act(group)
    return answer
