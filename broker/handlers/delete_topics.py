"""DeleteTopics: delete topics by name or, from version 6 on, by id (KIP-4, KIP-516)."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from walrusmq.broker.commands import DeleteTopic
from walrusmq.broker.context import Context
from walrusmq.broker.dispatcher import handles
from walrusmq.broker.proposals import propose_each
from walrusmq.protocol.errors import (
    ErrorCode,
    InvalidRequest,
    KafkaError,
    RequestTimedOut,
    UnknownTopicId,
    UnknownTopicOrPartition,
)
from walrusmq.protocol.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from walrusmq.protocol.primitives import ZERO_UUID

if TYPE_CHECKING:
    from walrusmq.broker.image import ClusterImage

FIRST_VERSION_WITH_IDS = 6


@handles(DeleteTopicsRequest)
async def delete_topics(request: DeleteTopicsRequest, context: Context) -> DeleteTopicsResponse:
    """Answer each topic by itself: one that can't be deleted doesn't keep the others back."""
    if context.api_version >= FIRST_VERSION_WITH_IDS:
        wanted = request.topics
    else:
        wanted = [DeleteTopicState(name=name) for name in request.topic_names]
    results = _plan(wanted, context.node.image)
    # what contradicts itself is refused before anything could take time, in Kafka too
    if request.timeout_ms <= 0 and any(result.error_code != ErrorCode.INVALID_REQUEST for result in results):
        late = RequestTimedOut(f"a timeout of {request.timeout_ms} ms leaves no time: nothing was deleted")
        return DeleteTopicsResponse(responses=[_failed(state.name, state.topic_id, late) for state in wanted])
    deletable = [result for result in results if not result.error_code]
    commands = [DeleteTopic(topic_id=result.topic_id) for result in deletable]
    outcomes = await propose_each(context.node.propose, commands, request.timeout_ms)
    for result, outcome in zip(deletable, outcomes, strict=True):
        if isinstance(outcome, KafkaError):
            result.error_code, result.error_message = outcome.code, str(outcome)
    return DeleteTopicsResponse(responses=results)


def _plan(wanted: list[DeleteTopicState], image: ClusterImage) -> list[DeletableTopicResult]:
    """A result for each topic: those without an error are to be deleted."""
    contradictory = [state for state in wanted if (state.name is None) == (state.topic_id == ZERO_UUID)]
    ids = Counter(state.topic_id for state in wanted if state.name is None and state.topic_id != ZERO_UUID)
    names = Counter(state.name for state in wanted if state.name is not None and state.topic_id == ZERO_UUID)
    return [
        *(_contradictory(state) for state in contradictory),
        *(_by_name(name, count, ids, image) for name, count in names.items()),
        *(_by_id(topic_id, count, image) for topic_id, count in ids.items()),
    ]


def _contradictory(state: DeleteTopicState) -> DeletableTopicResult:
    what = "neither name nor id" if state.name is None else "both name and id"
    return _failed(state.name, state.topic_id, InvalidRequest(f"{what} of a topic to delete are given"))


def _by_name(name: str, count: int, ids: Counter[bytes], image: ClusterImage) -> DeletableTopicResult:
    """The result for a name; takes the topic's id out of ``ids`` if the request has that too."""
    topic = image.topics_by_name.get(name)
    if count > 1:
        return _failed(name, ZERO_UUID, InvalidRequest(f"the request names topic {name} {count} times"))
    if topic is None:
        return _failed(name, ZERO_UUID, UnknownTopicOrPartition(f"there is no topic {name}"))
    if ids.pop(topic.id, 0):
        return _failed(name, topic.id, InvalidRequest(f"the request has topic {name} by its id too"))
    return DeletableTopicResult(name=name, topic_id=topic.id)


def _by_id(topic_id: bytes, count: int, image: ClusterImage) -> DeletableTopicResult:
    topic = image.topics.get(topic_id)
    if count > 1:
        return _failed(None, topic_id, InvalidRequest(f"the request has topic id {topic_id.hex()} {count} times"))
    if topic is None:
        return _failed(None, topic_id, UnknownTopicId(f"there is no topic with id {topic_id.hex()}"))
    return DeletableTopicResult(name=topic.name, topic_id=topic_id)


def _failed(name: str | None, topic_id: bytes, error: KafkaError) -> DeletableTopicResult:
    return DeletableTopicResult(name=name, topic_id=topic_id, error_code=error.code, error_message=str(error))
