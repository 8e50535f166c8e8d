"""InitProducerId: give an idempotent producer its id and epoch (KIP-98, KIP-360)."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any

from walrusmq.broker.commands import AllocateProducerIds
from walrusmq.broker.context import Context
from walrusmq.broker.dispatcher import handles
from walrusmq.broker.producer_ids import ProducerIds
from walrusmq.protocol.errors import (
    ErrorCode,
    InvalidRequest,
    InvalidTransactionTimeout,
    KafkaError,
    UnsupportedVersion,
)
from walrusmq.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

if TYPE_CHECKING:
    from walrusmq.broker.node import Node

#: Kafka's default of transaction.max.timeout.ms.
MAX_TRANSACTION_TIMEOUT_MS = 900_000
NO_ID = -1
NO_EPOCH = -1


@handles(InitProducerIdRequest)
def init_producer_id(
    request: InitProducerIdRequest, context: Context
) -> InitProducerIdResponse | Coroutine[Any, Any, InitProducerIdResponse]:
    """Hand out an id that nobody has had, with epoch 0: at once, or when the next block of ids is there.

    An idempotent producer that names its present id gets a new one too, as in Kafka: only a transactional id has a
    producer id of its own, whose epoch could go up.
    """
    try:
        _check(request)
    except KafkaError as error:
        return _failed(error.code)
    ids = context.node.producer_ids
    producer_id = ids.take()
    if producer_id is None:
        return _from_next_block(ids, context.node)
    return InitProducerIdResponse(producer_id=producer_id, producer_epoch=0)


def _check(request: InitProducerIdRequest) -> None:
    if (request.producer_id == NO_ID) != (request.producer_epoch == NO_EPOCH):
        raise InvalidRequest("a producer id comes with its epoch, and an epoch with its id (KIP-360)")
    if request.transactional_id is None:
        return
    if not request.transactional_id:
        raise InvalidRequest("a transactional id can't be empty")
    if not 0 < request.transaction_timeout_ms <= MAX_TRANSACTION_TIMEOUT_MS:
        raise InvalidTransactionTimeout(
            f"a transaction's timeout is 1 to {MAX_TRANSACTION_TIMEOUT_MS} ms, not {request.transaction_timeout_ms}"
        )
    # There are no transactions yet. Kafka answers a feature that isn't finalized with this code too; clients give up on
    # it at once and say what it is. COORDINATOR_NOT_AVAILABLE would make them ask until they time out, and an
    # authorization error would send people looking for ACLs.
    raise UnsupportedVersion("transactions aren't supported")


async def _from_next_block(ids: ProducerIds, node: Node) -> InitProducerIdResponse:
    async def allocate(count: int) -> int:
        first: int = await node.propose(
            AllocateProducerIds(node_id=node.node_id, incarnation=node.incarnation, count=count)
        )
        return first

    try:
        producer_id = await ids.next(allocate)
    except KafkaError:
        # Whatever kept the block away, the producer may ask again: nothing that it has is lost. Kafka says it so too.
        return _failed(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    return InitProducerIdResponse(producer_id=producer_id, producer_epoch=0)


def _failed(code: ErrorCode) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=code, producer_id=NO_ID, producer_epoch=NO_EPOCH)
