"""Metadata: the nodes, and who leads which partition; makes topics that a client asks for, if it may."""

from __future__ import annotations

from collections.abc import Coroutine, Iterable
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakKeyDictionary

from walrusmq.broker.authorized_operations import CLUSTER_OPERATIONS, NOT_ASKED_FOR, TOPIC_OPERATIONS
from walrusmq.broker.context import Context
from walrusmq.broker.dispatcher import handles
from walrusmq.broker.node_addresses import node_addresses
from walrusmq.broker.proposals import propose_each
from walrusmq.broker.topic_ids import new_topic_id
from walrusmq.broker.topics import (
    DEFAULT_COUNT,
    METADATA_LOG_NAME,
    TopicPlanner,
    check_partition_total,
    is_internal,
    validate_topic_name,
)
from walrusmq.protocol.errors import ErrorCode, InvalidTopic, KafkaError, TopicAlreadyExists
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
    from walrusmq.broker.image import ClusterImage, PartitionImage, TopicImage

#: Ids stand in requests from version 10 on, but Kafka takes them from 12 on (KIP-516).
FIRST_VERSION_WITH_IDS = 10
FIRST_VERSION_THAT_TAKES_IDS = 12
#: A client's own timeout isn't in the request; most give up after 30 s and ask again.
AUTO_CREATE_TIMEOUT_MS = 10_000


@handles(MetadataRequest)
def metadata(request: MetadataRequest, context: Context) -> MetadataResponse | Coroutine[Any, Any, MetadataResponse]:
    """Describe all topics, or those that are named or whose ids are given; created means usable at once."""
    image, version, wanted = context.node.image, context.api_version, request.topics
    if wanted is None or (version == 0 and not wanted):
        return _respond(request, context, _entries(context, image.topics.values()))
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
        return _respond(request, context, _entries_by_id(context, wanted))
    names = list(dict.fromkeys(topic.name for topic in wanted if topic.name is not None))
    may_create = request.allow_auto_topic_creation and context.node.settings.auto_create_topics_enable
    if may_create and any(name not in image.topics_by_name for name in names):
        return _create_and_respond(request, context, names)
    return _respond(request, context, _entries_by_name(context, names, {}))


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


class Placement(NamedTuple):
    """Where partitions are: one for all that are on the same nodes, since thousands of partitions have few of them."""

    error_code: ErrorCode
    leader_id: int
    replica_nodes: list[int]
    isr_nodes: list[int]
    offline_replicas: list[int]


class Entries:
    """The entries of topics as of one index of the metadata log. They are shared by answers and never changed.

    So clients that poll for all topics have them made once per change of the image.
    """

    __slots__ = ("_by_id", "_index", "_placements")

    def __init__(self) -> None:
        self._index = -1
        self._by_id: dict[bytes, MetadataResponseTopic] = {}
        self._placements: dict[tuple[tuple[int, ...], tuple[int, ...], int], Placement] = {}

    def of(self, topic: TopicImage, image: ClusterImage) -> MetadataResponseTopic:
        """The topic's entry."""
        if self._index != image.applied_index:
            self._index = image.applied_index
            self._by_id.clear()
            self._placements.clear()
        entry = self._by_id.get(topic.id)
        if entry is None:
            entry = self._by_id[topic.id] = MetadataResponseTopic(
                name=topic.name,
                topic_id=topic.id,
                is_internal=is_internal(topic.name),
                partitions=[self._partition(index, part, image) for index, part in enumerate(topic.partitions)],
            )
        return entry

    def _partition(self, index: int, partition: PartitionImage, image: ClusterImage) -> MetadataResponsePartition:
        segment = partition.open
        key = (partition.assigned, segment.members, segment.leader)
        placement = self._placements.get(key)
        if placement is None:
            placement = self._placements[key] = _placement(*key, image)
        return MetadataResponsePartition(
            error_code=placement.error_code,
            partition_index=index,
            leader_id=placement.leader_id,
            leader_epoch=segment.leader_epoch,
            replica_nodes=placement.replica_nodes,
            isr_nodes=placement.isr_nodes,
            offline_replicas=placement.offline_replicas,
        )


def _placement(assigned: tuple[int, ...], members: tuple[int, ...], leader: int, image: ClusterImage) -> Placement:
    is_led = leader in image.nodes
    return Placement(
        error_code=ErrorCode.NONE if is_led else ErrorCode.LEADER_NOT_AVAILABLE,
        leader_id=leader if is_led else -1,
        replica_nodes=list(assigned),
        isr_nodes=list(members),
        offline_replicas=[node for node in assigned if node not in image.nodes],
    )


_entries_of_node: WeakKeyDictionary[Any, Entries] = WeakKeyDictionary()


def _entries(context: Context, topics: Iterable[TopicImage]) -> list[MetadataResponseTopic]:
    entries = _entries_of_node.get(context.node)
    if entries is None:
        entries = _entries_of_node[context.node] = Entries()
    image = context.node.image
    return [entries.of(topic, image) for topic in topics]


def _entries_by_id(context: Context, wanted: list[MetadataRequestTopic]) -> list[MetadataResponseTopic]:
    """Each id once; names beside ids count for nothing (KIP-516)."""
    topics = context.node.image.topics
    ids = dict.fromkeys(topic.topic_id for topic in wanted if topic.topic_id != ZERO_UUID)
    unknown = [
        MetadataResponseTopic(error_code=ErrorCode.UNKNOWN_TOPIC_ID, name=None, topic_id=topic_id)
        for topic_id in ids
        if topic_id not in topics
    ]
    return unknown + _entries(context, (topics[topic_id] for topic_id in ids if topic_id in topics))


def _entries_by_name(context: Context, names: list[str], failed: dict[str, ErrorCode]) -> list[MetadataResponseTopic]:
    """The known topics; then, with its error, each that isn't there."""
    topics = context.node.image.topics_by_name
    unknown = [
        MetadataResponseTopic(
            error_code=failed.get(name) or _why_unknown(name), name=name, is_internal=is_internal(name)
        )
        for name in names
        if name not in topics
    ]
    return _entries(context, (topics[name] for name in names if name in topics)) + unknown


def _why_unknown(name: str) -> ErrorCode:
    try:
        validate_topic_name(name)
    except InvalidTopic:
        return ErrorCode.INVALID_TOPIC_EXCEPTION
    return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


# --- making topics


async def _create_and_respond(request: MetadataRequest, context: Context, names: list[str]) -> MetadataResponse:
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
    return _respond(request, context, _entries_by_name(context, names, failed))
