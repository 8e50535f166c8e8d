"""Metadata: the nodes, and who leads which partition; makes topics that a client asks for, if it may."""

from __future__ import annotations

from collections.abc import Collection, Coroutine, Iterable
from typing import TYPE_CHECKING, Any, TypeAlias

from walrusmq.broker.authorized_operations import CLUSTER_OPERATIONS, NOT_ASKED_FOR, TOPIC_OPERATIONS
from walrusmq.broker.context import Context
from walrusmq.broker.dispatcher import EncodedResponse, handles
from walrusmq.broker.node_addresses import node_addresses
from walrusmq.broker.placements import Placements
from walrusmq.broker.proposals import propose_each
from walrusmq.broker.topic_ids import new_topic_id
from walrusmq.broker.topics import (
    DEFAULT_COUNT,
    METADATA_LOG_NAME,
    TopicPlanner,
    check_partition_total,
    is_internal,
    missing_topic,
)
from walrusmq.protocol.codec import codec
from walrusmq.protocol.errors import ErrorCode, KafkaError, TopicAlreadyExists
from walrusmq.protocol.messages.create_topics import CreatableTopic
from walrusmq.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from walrusmq.protocol.primitives import ZERO_UUID

if TYPE_CHECKING:
    from walrusmq.broker.image import TopicImage

#: Ids stand in requests from version 10 on, but Kafka takes them from 12 on (KIP-516).
FIRST_VERSION_WITH_IDS = 10
FIRST_VERSION_THAT_TAKES_IDS = 12
#: A client's own timeout isn't in the request; most give up after 30 s and ask again.
AUTO_CREATE_TIMEOUT_MS = 10_000
#: Partitions from which on an answer is kept as bytes: a smaller one is encoded sooner than it would push out a large.
LEAST_PARTITIONS_TO_KEEP = 200

Answer: TypeAlias = MetadataResponse | EncodedResponse


@handles(MetadataRequest)
def metadata(request: MetadataRequest, context: Context) -> Answer | Coroutine[Any, Any, Answer]:
    """Describe all topics, or those that are named or whose ids are given; created means usable at once."""
    image, version, wanted = context.node.image, context.api_version, request.topics
    if wanted is None or (version == 0 and not wanted):
        return _known_topics(request, context, image.topics.values(), None)
    refusal = _refusal(wanted, version)
    if refusal is not ErrorCode.NONE:
        return MetadataResponse(
            error_code=refusal,
            topics=[
                MetadataResponseTopic(error_code=refusal, name=topic.name or "", topic_id=topic.topic_id)
                for topic in wanted
            ],
        )
    if any(topic.topic_id != ZERO_UUID for topic in wanted):
        return _topics_by_id(request, context, wanted)
    names = list(dict.fromkeys(topic.name for topic in wanted if topic.name is not None))
    may_create = request.allow_auto_topic_creation and context.node.settings.auto_create_topics_enable
    if may_create and any(name not in image.topics_by_name for name in names):
        return _create_and_answer(request, context, names)
    return _topics_by_name(request, context, names, {})


def _refusal(wanted: list[MetadataRequestTopic], version: int) -> ErrorCode:
    """The error for all topics of a request that names them in a way that Kafka doesn't take."""
    has_ids = any(topic.topic_id != ZERO_UUID for topic in wanted)
    has_nameless = any(topic.name is None for topic in wanted)
    if version < FIRST_VERSION_WITH_IDS:
        return ErrorCode.NONE
    if version < FIRST_VERSION_THAT_TAKES_IDS:
        return ErrorCode.INVALID_REQUEST if has_ids or has_nameless else ErrorCode.NONE
    # Kafka fails inside on neither id nor name, and that is the code which clients know.
    return ErrorCode.UNKNOWN_SERVER_ERROR if has_nameless and not has_ids else ErrorCode.NONE


def _topics_by_id(request: MetadataRequest, context: Context, wanted: list[MetadataRequestTopic]) -> Answer:
    """Each id once; names beside ids count for nothing (KIP-516)."""
    topics = context.node.image.topics
    ids = dict.fromkeys(topic.topic_id for topic in wanted if topic.topic_id != ZERO_UUID)
    known = [topics[topic_id] for topic_id in ids if topic_id in topics]
    unknown = [
        MetadataResponseTopic(error_code=ErrorCode.UNKNOWN_TOPIC_ID, name=None, topic_id=topic_id)
        for topic_id in ids
        if topic_id not in topics
    ]
    if not unknown:
        return _known_topics(request, context, known, tuple(ids))
    return _respond(request, context, unknown + _entries(context, known))


def _topics_by_name(
    request: MetadataRequest, context: Context, names: list[str], failed: dict[str, ErrorCode]
) -> Answer:
    """The known topics; then, with its error, each that isn't there."""
    topics = context.node.image.topics_by_name
    known = [topics[name] for name in names if name in topics]
    unknown = [
        MetadataResponseTopic(
            error_code=failed.get(name) or missing_topic(name).code, name=name, is_internal=is_internal(name)
        )
        for name in names
        if name not in topics
    ]
    if not unknown:
        return _known_topics(request, context, known, tuple(names))
    return _respond(request, context, _entries(context, known) + unknown)


def _known_topics(
    request: MetadataRequest,
    context: Context,
    topics: Collection[TopicImage],
    asked_for: tuple[str, ...] | tuple[bytes, ...] | None,
) -> Answer:
    """Topics that are all there: where they are large, encoded once for all clients that ask for the same.

    What remains is the first such request after each change of the image, which holds up the event loop for some 30 ms
    with 10,000 partitions, most of it in the encoder. It is felt only where segments roll over all the time.
    """
    node, image = context.node, context.node.image
    key = (
        MetadataRequest,
        context.api_version,
        request.include_cluster_authorized_operations,
        request.include_topic_authorized_operations,
        asked_for,
        *node_addresses(context),
    )
    encoded = node.encoded_answers.get(key)
    if encoded is None:
        response = _respond(request, context, _entries(context, topics))
        is_large = sum(len(topic.partitions) for topic in topics) >= LEAST_PARTITIONS_TO_KEEP
        # partitions without a leader are errors, and those are counted anew in each answer
        if not is_large or not all(leader in image.nodes for leader in image.led_counts):
            return response
        body = codec(MetadataResponse, context.api_version).encode(response)
        encoded = node.encoded_answers.keep(key, EncodedResponse(body))
    return encoded


def _respond(request: MetadataRequest, context: Context, topics: list[MetadataResponseTopic]) -> MetadataResponse:
    node = context.node
    if request.include_topic_authorized_operations:
        topics = [_with_operations(topic) for topic in topics]
    return MetadataResponse(
        brokers=[
            MetadataResponseBroker(node_id=address.node_id, host=address.host, port=address.port, rack=address.rack)
            for address in node_addresses(context)
        ],
        cluster_id=node.cluster_id,
        controller_id=node.node_id,
        topics=topics,
        cluster_authorized_operations=CLUSTER_OPERATIONS
        if request.include_cluster_authorized_operations
        else NOT_ASKED_FOR,
    )


def _with_operations(topic: MetadataResponseTopic) -> MetadataResponseTopic:
    """A copy, since entries are shared between answers; an unknown id has no operations."""
    return MetadataResponseTopic(
        error_code=topic.error_code,
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=topic.is_internal,
        partitions=topic.partitions,
        topic_authorized_operations=NOT_ASKED_FOR if topic.name is None else TOPIC_OPERATIONS,
    )


# --- the topics' entries


def _entries(context: Context, topics: Iterable[TopicImage]) -> list[MetadataResponseTopic]:
    """The topics' entries, which answers share and nobody changes: clients ask for the same ones again and again."""
    kept, placements = context.node.metadata_entries, Placements(context.node.image)
    entries = []
    for topic in topics:
        entry = kept.get(topic.id)
        if entry is None:
            entry = kept.keep(topic.id, _entry(topic, placements))
        entries.append(entry)
    return entries


def _entry(topic: TopicImage, placements: Placements) -> MetadataResponseTopic:
    partitions = []
    for index, partition in enumerate(topic.partitions):
        placement = placements.of(partition)
        partitions.append(
            MetadataResponsePartition(
                error_code=placement.error_code,
                partition_index=index,
                leader_id=placement.leader_id,
                leader_epoch=partition.open.leader_epoch,
                replica_nodes=placement.replica_nodes,
                isr_nodes=placement.isr_nodes,
                offline_replicas=placement.offline_replicas,
            )
        )
    return MetadataResponseTopic(
        name=topic.name, topic_id=topic.id, is_internal=is_internal(topic.name), partitions=partitions
    )


# --- making topics


async def _create_and_answer(request: MetadataRequest, context: Context, names: list[str]) -> Answer:
    """Create the topics that aren't there, and answer when they are usable, so that the first produce succeeds."""
    node = context.node
    wanted = [
        CreatableTopic(name=name, num_partitions=DEFAULT_COUNT, replication_factor=DEFAULT_COUNT)
        for name in names
        if name not in node.image.topics_by_name and not is_internal(name) and name != METADATA_LOG_NAME
    ]
    failed: dict[str, ErrorCode] = {}
    planner = TopicPlanner(node.image, node.settings)
    commands = []
    for topic in wanted:
        try:
            check_partition_total(wanted, node.settings)
            commands.append(planner.plan(topic, new_topic_id()))
        except KafkaError as error:
            failed[topic.name] = error.code
    outcomes = await propose_each(node.propose, commands, AUTO_CREATE_TIMEOUT_MS)
    for command, outcome in zip(commands, outcomes, strict=True):
        if isinstance(outcome, KafkaError) and not isinstance(outcome, TopicAlreadyExists):
            failed[command.name] = ErrorCode.LEADER_NOT_AVAILABLE if outcome.code.is_retriable else outcome.code
    return _topics_by_name(request, context, names, failed)
