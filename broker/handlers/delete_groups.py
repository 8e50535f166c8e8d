"""DeleteGroups: forget groups without members, with their offsets (KIP-229)."""

from __future__ import annotations

from walrusmq.broker.context import Context
from walrusmq.broker.dispatcher import handles
from walrusmq.protocol.errors import KafkaError
from walrusmq.protocol.messages.delete_groups import DeletableGroupResult, DeleteGroupsRequest, DeleteGroupsResponse


@handles(DeleteGroupsRequest)
async def delete_groups(request: DeleteGroupsRequest, context: Context) -> DeleteGroupsResponse:
    """Answer each group by itself; one that is named twice is deleted once."""
    results = []
    for group_id in dict.fromkeys(request.groups_names):
        result = DeletableGroupResult(group_id=group_id)
        try:
            await context.node.coordinator.delete(group_id)
        except KafkaError as error:
            result.error_code = error.code
        results.append(result)
    return DeleteGroupsResponse(results=results)
