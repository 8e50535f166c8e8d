"""DescribeGroups: state and members of classic groups (KIP-40, KIP-1043)."""

from __future__ import annotations

from walrusmq.broker.authorized_operations import GROUP_OPERATIONS
from walrusmq.broker.context import Context
from walrusmq.broker.dispatcher import handles
from walrusmq.broker.groups.member import GroupState
from walrusmq.protocol.errors import ErrorCode, KafkaError
from walrusmq.protocol.messages.describe_groups import DescribedGroup, DescribeGroupsRequest, DescribeGroupsResponse

#: Before it a group that doesn't exist is shown as a dead one, without an error.
FIRST_VERSION_THAT_MISSES_GROUPS = 6


@handles(DescribeGroupsRequest)
def describe_groups(request: DescribeGroupsRequest, context: Context) -> DescribeGroupsResponse:
    """Answer each group in the request's order."""
    described = [_describe(group_id, context) for group_id in request.groups]
    if request.include_authorized_operations:
        for group in described:
            if not group.error_code:
                group.authorized_operations = GROUP_OPERATIONS
    return DescribeGroupsResponse(groups=described)


def _describe(group_id: str, context: Context) -> DescribedGroup:
    try:
        group = context.node.coordinator.group(group_id)
    except KafkaError as error:
        return DescribedGroup(group_id=group_id, error_code=error.code)
    if group is not None:
        return group.describe()
    missing = DescribedGroup(group_id=group_id, group_state=GroupState.DEAD.value)
    if context.api_version >= FIRST_VERSION_THAT_MISSES_GROUPS:
        missing.error_code = ErrorCode.GROUP_ID_NOT_FOUND
        missing.error_message = f"Group {group_id} not found."
    return missing
