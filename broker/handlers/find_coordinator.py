"""FindCoordinator: which node coordinates a group, for one key or for several (KIP-699)."""

from __future__ import annotations

from walrusmq.broker.context import Context
from walrusmq.broker.dispatcher import handles
from walrusmq.protocol.errors import InvalidRequest, KafkaError, UnsupportedVersion
from walrusmq.protocol.messages.find_coordinator import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse

FIRST_VERSION_WITH_SEVERAL = 4
GROUP = 0
TRANSACTION = 1
NOBODY = -1


@handles(FindCoordinatorRequest)
async def find_coordinator(request: FindCoordinatorRequest, context: Context) -> FindCoordinatorResponse:
    """Answer each key; the topic in which coordinators keep their state is made for the first one."""
    if context.api_version >= FIRST_VERSION_WITH_SEVERAL:
        return FindCoordinatorResponse(
            coordinators=[await _find(key, request.key_type, context) for key in request.coordinator_keys]
        )
    found = await _find(request.key, request.key_type, context)
    return FindCoordinatorResponse(
        error_code=found.error_code,
        error_message=found.error_message,
        node_id=found.node_id,
        host=found.host,
        port=found.port,
    )


async def _find(key: str, key_type: int, context: Context) -> Coordinator:
    node = context.node
    try:
        _check_type(key_type)
        await node.coordinator.make_ready(key)
    except KafkaError as error:
        return Coordinator(
            key=key, node_id=NOBODY, host="", port=NOBODY, error_code=error.code, error_message=str(error)
        )
    host, port = node.advertised_address(context.connection)
    return Coordinator(key=key, node_id=node.node_id, host=host, port=port, error_message="NONE")


def _check_type(key_type: int) -> None:
    if key_type == TRANSACTION:
        # as InitProducerId answers: producers give up on it, and don't ask for ever
        raise UnsupportedVersion("transactions aren't supported")
    if key_type != GROUP:
        raise InvalidRequest(f"coordinators of type {key_type} aren't known")
