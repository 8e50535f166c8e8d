"""ListGroups: the groups that this node coordinates (KIP-518, KIP-848)."""

from __future__ import annotations

from walrusmq.broker.context import Context
from walrusmq.broker.dispatcher import handles
from walrusmq.protocol.errors import KafkaError
from walrusmq.protocol.messages.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse

CLASSIC = "classic"


@handles(ListGroupsRequest)
def list_groups(request: ListGroupsRequest, context: Context) -> ListGroupsResponse:
    """Those that pass both filters, whose words may be written in any case."""
    states = {state.lower() for state in request.states_filter}
    types = {group_type.lower() for group_type in request.types_filter}
    if types and CLASSIC not in types:
        return ListGroupsResponse()
    try:
        groups = list(context.node.coordinator.groups())
    except KafkaError as error:
        return ListGroupsResponse(error_code=error.code)
    return ListGroupsResponse(
        groups=[
            ListedGroup(
                group_id=group.group_id,
                protocol_type=group.protocol_type or "",
                group_state=group.state.value,
                group_type=CLASSIC,
            )
            for group in groups
            if not states or group.state.value.lower() in states
        ]
    )
