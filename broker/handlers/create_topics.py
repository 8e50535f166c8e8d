"""CreateTopics: create topics, or with ``validate_only`` say what would happen (KIP-4, KIP-464, KIP-525)."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from walrusmq.broker.commands import CreateTopic
from walrusmq.broker.context import Context
from walrusmq.broker.dispatcher import handles
from walrusmq.broker.proposals import propose_each
from walrusmq.broker.topic_configs import describe
from walrusmq.broker.topic_ids import new_topic_id
from walrusmq.broker.topics import METADATA_LOG_NAME, TopicPlanner, check_command_total, check_partition_total
from walrusmq.protocol.errors import InvalidRequest, KafkaError, RequestTimedOut
from walrusmq.protocol.messages.create_topics import (
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)

if TYPE_CHECKING:
    from walrusmq.broker.node import Node


@handles(CreateTopicsRequest)
async def create_topics(request: CreateTopicsRequest, context: Context) -> CreateTopicsResponse:
    """Answer each topic by itself: one that can't be created doesn't keep the others back.

    An answer without error means that the topic can be produced to and fetched from at once.
    """
    node = context.node
    counts = Counter(topic.name for topic in request.topics)
    try:
        _check_whole(request, counts, node)
        results = _plan(request, counts, node)
        commands = [outcome for outcome in results.values() if isinstance(outcome, CreateTopic)]
        check_command_total(commands)
    except KafkaError as refusal:
        return CreateTopicsResponse(topics=[_failed(topic.name, refusal) for topic in request.topics])
    if not request.validate_only:
        outcomes = await propose_each(node.propose, commands, request.timeout_ms)
        for command, outcome in zip(commands, outcomes, strict=True):
            if isinstance(outcome, KafkaError):
                results[command.name] = outcome
    shown = ShownConfigs(node)
    return CreateTopicsResponse(
        topics=[
            _failed(name, outcome) if isinstance(outcome, KafkaError) else _created(outcome, shown)
            for name, outcome in results.items()
        ]
    )


def _plan(request: CreateTopicsRequest, counts: Counter[str], node: Node) -> dict[str, CreateTopic | KafkaError]:
    """By name, in the request's order, the command or the error that says why there is none."""
    planner = TopicPlanner(node.image, node.settings)
    planned: dict[str, CreateTopic | KafkaError] = {}
    for topic in request.topics:
        try:
            if counts[topic.name] > 1:
                raise InvalidRequest(f"the request names topic {topic.name} {counts[topic.name]} times")
            planned[topic.name] = planner.plan(topic, new_topic_id())
        except KafkaError as error:
            planned[topic.name] = error
    return planned


def _check_whole(request: CreateTopicsRequest, counts: Counter[str], node: Node) -> None:
    """Raise what is wrong with the request as a whole; topics that are refused for their names don't count."""
    creatable = [topic for topic in request.topics if counts[topic.name] == 1 and topic.name != METADATA_LOG_NAME]
    if creatable and request.timeout_ms <= 0:
        raise RequestTimedOut(f"a timeout of {request.timeout_ms} ms leaves no time: nothing was created")
    check_partition_total(creatable, node.settings)


def _failed(name: str, error: KafkaError) -> CreatableTopicResult:
    return CreatableTopicResult(name=name, error_code=error.code, error_message=str(error), configs=[])


def _created(command: CreateTopic, shown: ShownConfigs) -> CreatableTopicResult:
    """What the topic is, or would be, like: Kafka gives the id that it made up even for ``validate_only``."""
    return CreatableTopicResult(
        name=command.name,
        topic_id=command.topic_id,
        error_message=None,
        num_partitions=len(command.partitions),
        replication_factor=len(command.partitions[0].assigned),
        configs=shown.of(command),
    )


class ShownConfigs:
    """The configs of new topics as the answer shows them: made once for all topics that have the same."""

    __slots__ = ("_by_own", "_node")

    def __init__(self, node: Node) -> None:
        self._node = node
        self._by_own: dict[tuple[tuple[str, str | None], ...], list[CreatableTopicConfigs]] = {}

    def of(self, command: CreateTopic) -> list[CreatableTopicConfigs]:
        """Every config of the topic with its value and where that comes from."""
        own = tuple((config.name, config.value) for config in command.configs)
        shown = self._by_own.get(own)
        if shown is None:
            configs = {name: value for name, value in own if value is not None}
            shown = self._by_own[own] = [
                CreatableTopicConfigs(
                    name=row.name,
                    value=row.value,
                    read_only=row.is_read_only,
                    config_source=row.source,
                    is_sensitive=row.is_sensitive,
                )
                for row in describe(configs, self._node.settings)
            ]
        return shown
