"""What a new topic must be like: legal names, collisions, placement, configs. Decides, never does."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from walrusmq.broker.commands import CreateTopic, NamedValue, NewPartition
from walrusmq.broker.topic_configs import check_together, validate
from walrusmq.protocol.errors import (
    InvalidConfig,
    InvalidPartitions,
    InvalidReplicaAssignment,
    InvalidReplicationFactor,
    InvalidRequest,
    InvalidTopic,
    KafkaError,
    PolicyViolation,
    TopicAlreadyExists,
    UnknownTopicOrPartition,
)

if TYPE_CHECKING:
    from walrusmq.broker.image import ClusterImage
    from walrusmq.broker.settings import Settings
    from walrusmq.protocol.messages.create_topics import (
        CreatableTopic,
        CreatableTopicConfig,
    )

#: Kafka's limit: a folder's name must hold the topic's, a dash and the partition.
MAX_NAME_LENGTH = 249
#: Kafka's limit for one CreateTopics request: what is created at once is opened at once, and holds up the event loop.
MAX_PARTITIONS_PER_REQUEST = 10_000
#: Kafka's limit for what one request adds to its metadata log: a record for each topic, partition and topic setting.
MAX_RECORDS_PER_REQUEST = 10_000
#: In a request: as many partitions or replicas as the node's settings say (KIP-464).
DEFAULT_COUNT = -1

#: Kafka's name for its metadata log: no topic may have it, since tools take it for that.
METADATA_LOG_NAME = "__cluster_metadata"
#: The topics that coordinators keep their state in. They make them themselves, with partition counts of their own.
OFFSETS_TOPIC = "__consumer_offsets"
INTERNAL_TOPICS = frozenset((OFFSETS_TOPIC, "__transaction_state", "__share_group_state"))

_LEGAL_NAME = re.compile(r"[a-zA-Z0-9._-]+")


def is_internal(name: str) -> bool:
    """Whether clients are told that the topic isn't a user's."""
    return name in INTERNAL_TOPICS


def validate_topic_name(name: str) -> None:
    """Raise InvalidTopic unless Kafka allows a topic of this name."""
    if not name:
        raise InvalidTopic("a topic's name can't be empty")
    if name in (".", ".."):
        raise InvalidTopic(f"a topic can't be named {name!r}")
    if len(name) > MAX_NAME_LENGTH:
        raise InvalidTopic(f"a topic's name has at most {MAX_NAME_LENGTH} characters; this one has {len(name)}")
    if not _LEGAL_NAME.fullmatch(name):
        raise InvalidTopic(f"topic name {name!r} may only have the letters a-z and A-Z, digits, '.', '_' and '-'")


def missing_topic(name: str) -> KafkaError:
    """The error for a name that no topic has: InvalidTopic if none may have it, else UnknownTopicOrPartition."""
    try:
        validate_topic_name(name)
    except InvalidTopic as error:
        return error
    return UnknownTopicOrPartition(f"there is no topic {name}")


def check_partition_total(topics: Iterable[CreatableTopic], settings: Settings) -> None:
    """Raise PolicyViolation if one request asks for more partitions than may be created at once."""
    total = 0
    for topic in topics:
        if topic.assignments:
            total += len(topic.assignments)
        elif topic.num_partitions == DEFAULT_COUNT:
            total += settings.num_partitions
        else:
            total += max(topic.num_partitions, 0)
    if total > MAX_PARTITIONS_PER_REQUEST:
        raise PolicyViolation(
            f"one request creates at most {MAX_PARTITIONS_PER_REQUEST} partitions; this asks for {total}"
        )


def check_command_total(commands: Iterable[CreateTopic]) -> None:
    """Raise PolicyViolation if the topics of one request, with their partitions and configs, are too many together."""
    total = sum(1 + len(command.partitions) + len(command.configs) for command in commands)
    if total > MAX_RECORDS_PER_REQUEST:
        raise PolicyViolation(
            f"one request creates at most {MAX_RECORDS_PER_REQUEST} topics, partitions and topic settings together; "
            f"this asks for {total}"
        )


class TopicPlanner:
    """Turns wishes for topics into commands, each against the image as it is when the planner is asked.

    Topics of one request aren't checked against each other: Kafka creates both ``a.b`` and ``a_b`` for one that asks.
    """

    __slots__ = ("_image", "_names_by_metric_name", "_settings")

    def __init__(self, image: ClusterImage, settings: Settings) -> None:
        self._image = image
        self._settings = settings
        self._names_by_metric_name: dict[str, str] | None = None

    def plan(self, wanted: CreatableTopic, topic_id: bytes) -> CreateTopic:
        """The command that creates the topic.

        Raises InvalidTopic, InvalidRequest, TopicAlreadyExists, InvalidConfig, InvalidReplicationFactor,
        InvalidPartitions or InvalidReplicaAssignment; of several faults, the one that Kafka names first.
        """
        self._check_name(wanted.name)
        configs = _checked_configs(wanted.configs, self._settings)
        assigned = self._assigned_by_hand(wanted) if wanted.assignments else self._placed(wanted, topic_id)
        return CreateTopic(
            topic_id=topic_id,
            name=wanted.name,
            partitions=[NewPartition(assigned=nodes) for nodes in assigned],
            configs=configs,
        )

    def _check_name(self, name: str) -> None:
        validate_topic_name(name)
        if name == METADATA_LOG_NAME:
            raise InvalidRequest(f"{METADATA_LOG_NAME} stands for the cluster's metadata and can't be created")
        if name in self._image.topics_by_name:
            raise TopicAlreadyExists(f"there is a topic {name} already")
        other = self._colliding(name)
        if other is not None:
            raise InvalidTopic(f"topic {name} and the existing {other} differ only in '.' and '_': metrics mix them up")

    def _colliding(self, name: str) -> str | None:
        if "." not in name and "_" not in name:
            return None
        if self._names_by_metric_name is None:
            self._names_by_metric_name = {_metric_name(other): other for other in self._image.topics_by_name}
        return self._names_by_metric_name.get(_metric_name(name))

    def _placed(self, wanted: CreatableTopic, topic_id: bytes) -> list[list[int]]:
        """Each partition's nodes: round the ring of nodes, from a place that the topic's id decides."""
        replicas = wanted.replication_factor
        if replicas == DEFAULT_COUNT:
            replicas = self._settings.default_replication_factor
        elif replicas < 1:
            raise InvalidReplicationFactor(f"a replication factor is at least 1, or -1 for the default; not {replicas}")
        partitions = wanted.num_partitions
        if partitions == DEFAULT_COUNT:
            partitions = self._settings.num_partitions
        elif partitions < 1:
            raise InvalidPartitions(f"a topic has at least 1 partition, or -1 for the default; not {partitions}")
        ring = sorted(self._image.nodes)
        if replicas > len(ring):
            raise InvalidReplicationFactor(f"{replicas} replicas need as many nodes, and the cluster has {len(ring)}")
        return placed_round(ring, int.from_bytes(topic_id[:4]), replicas, range(partitions))

    def _assigned_by_hand(self, wanted: CreatableTopic) -> list[list[int]]:
        if wanted.replication_factor != DEFAULT_COUNT:
            raise InvalidRequest("replicas are assigned by hand, so the replication factor must be -1")
        if wanted.num_partitions != DEFAULT_COUNT:
            raise InvalidRequest("replicas are assigned by hand, so the number of partitions must be -1")
        by_index: dict[int, list[int]] = {}
        for assignment in wanted.assignments:
            if assignment.partition_index in by_index:
                raise InvalidReplicaAssignment(f"partition {assignment.partition_index} is assigned twice")
            by_index[assignment.partition_index] = checked_nodes(
                assignment.partition_index, assignment.broker_ids, self._image
            )
        if set(by_index) != set(range(len(by_index))):
            raise InvalidReplicaAssignment("the assigned partitions must be 0, 1, 2 … without a gap")
        assigned = [by_index[index] for index in range(len(by_index))]
        if any(len(nodes) != len(assigned[0]) for nodes in assigned):
            raise InvalidReplicaAssignment("all partitions must have as many replicas as the first")
        return assigned


def placed_round(ring: Sequence[int], start: int, replicas: int, partitions: range) -> list[list[int]]:
    """Each partition's nodes: those of partition 0 stand in the ring from ``start`` on, each next one begins one on."""
    return [[ring[(start + index + k) % len(ring)] for k in range(replicas)] for index in partitions]


def checked_nodes(index: int, nodes: Sequence[int], image: ClusterImage) -> list[int]:
    """A partition's nodes as assigned by hand. Raises InvalidReplicaAssignment unless all exist, each given once."""
    if not nodes:
        raise InvalidReplicaAssignment(f"partition {index} is assigned to no node")
    if len(set(nodes)) != len(nodes):
        raise InvalidReplicaAssignment(f"partition {index} is assigned to a node twice")
    for node in nodes:
        if node not in image.nodes:
            raise InvalidReplicaAssignment(f"partition {index} is assigned to node {node}, which doesn't exist")
    return list(nodes)


def _checked_configs(configs: Iterable[CreatableTopicConfig], settings: Settings) -> list[NamedValue]:
    """The configs by name, each once: of one that is given twice, the last counts, as in Kafka."""
    values: dict[str, str] = {}
    for config in configs:
        if config.value is None:
            raise InvalidConfig(f"topic setting {config.name} has no value (null)")
        values[config.name] = config.value
    for name, value in values.items():
        validate(name, value)
    check_together(values, settings)
    return [NamedValue(name=name, value=values[name]) for name in sorted(values)]


def _metric_name(name: str) -> str:
    return name.replace(".", "_")
