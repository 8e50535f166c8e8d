"""ListConfigResources: which resources have configs (KIP-1142); in version 0 only client metrics subscriptions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from walrusmq.broker.commands import ResourceType
from walrusmq.broker.config_changes import KINDS_ELSEWHERE
from walrusmq.broker.context import Context
from walrusmq.broker.dispatcher import handles
from walrusmq.protocol.errors import ErrorCode
from walrusmq.protocol.messages.list_config_resources import (
    ConfigResource,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)

if TYPE_CHECKING:
    from walrusmq.broker.image import ClusterImage

FIRST_VERSION_WITH_TYPES = 1


@handles(ListConfigResourcesRequest)
def list_config_resources(request: ListConfigResourcesRequest, context: Context) -> ListConfigResourcesResponse:
    """List the topics and nodes, if they are asked for or nothing is; of what else Kafka has there are none."""
    if context.api_version < FIRST_VERSION_WITH_TYPES:
        return ListConfigResourcesResponse()
    known = {*ResourceType, *KINDS_ELSEWHERE}
    wanted = set(request.resource_types) or known
    if not wanted <= known:
        return ListConfigResourcesResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    return ListConfigResourcesResponse(config_resources=list(_resources(wanted, context.node.image)))


def _resources(wanted: set[int], image: ClusterImage) -> Iterator[ConfigResource]:
    if ResourceType.BROKER in wanted:
        for node_id in image.nodes:
            yield ConfigResource(resource_name=str(node_id), resource_type=ResourceType.BROKER)
    if ResourceType.TOPIC in wanted:
        for name in image.topics_by_name:
            yield ConfigResource(resource_name=name, resource_type=ResourceType.TOPIC)
