"""CreatePartitions: give topics more partitions, or with ``validate_only`` say what would happen (KIP-195)."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from walrusmq.broker.commands import CreatePartitions, NewPartition
from walrusmq.broker.context import Context
from walrusmq.broker.dispatcher import handles
from walrusmq.broker.proposals import propose_each
from walrusmq.broker.topics import MAX_PARTITIONS_PER_REQUEST, checked_nodes, placed_round
from walrusmq.protocol.errors import (
    InvalidPartitions,
    InvalidReplicaAssignment,
    InvalidRequest,
    KafkaError,
    PolicyViolation,
    RequestTimedOut,
    UnknownTopicOrPartition,
)
from walrusmq.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)

if TYPE_CHECKING:
    from walrusmq.broker.image import ClusterImage, TopicImage


@handles(CreatePartitionsRequest)
async def create_partitions(request: CreatePartitionsRequest, context: Context) -> CreatePartitionsResponse:
    """Answer each topic by itself: one that can't grow doesn't keep the others back.

    An answer without error means that the new partitions can be produced to and fetched from at once.
    """
    node = context.node
    counts = Counter(topic.name for topic in request.topics)
    single = [topic for topic in request.topics if counts[topic.name] == 1]
    outcomes: dict[str, CreatePartitions | KafkaError] = {
        name: InvalidRequest(f"the request names topic {name} {count} times")
        for name, count in counts.items()
        if count > 1
    }
    if request.timeout_ms <= 0:
        late = RequestTimedOut(f"a timeout of {request.timeout_ms} ms leaves no time: nothing was created")
        outcomes |= {topic.name: late for topic in single}
    else:
        try:
            outcomes |= _plan(single, node.image)
        except PolicyViolation as refusal:
            return CreatePartitionsResponse(results=[_result(topic.name, refusal) for topic in request.topics])
    if not request.validate_only:
        commands = {name: plan for name, plan in outcomes.items() if isinstance(plan, CreatePartitions)}
        results = await propose_each(node.propose, list(commands.values()), request.timeout_ms)
        for name, result in zip(commands, results, strict=True):
            if isinstance(result, KafkaError):
                outcomes[name] = result
    return CreatePartitionsResponse(results=[_result(name, outcome) for name, outcome in outcomes.items()])


def _plan(topics: list[CreatePartitionsTopic], image: ClusterImage) -> dict[str, CreatePartitions | KafkaError]:
    """By name, the command or the error that says why there is none.

    Raises PolicyViolation if the request asks for more partitions than may be created at once: then none is.
    """
    planned: dict[str, CreatePartitions | KafkaError] = {}
    left = MAX_PARTITIONS_PER_REQUEST
    for wanted in topics:
        try:
            planned[wanted.name] = command = _grown(wanted, image, left)
            left -= len(command.partitions)
        except PolicyViolation:
            raise
        except KafkaError as error:
            planned[wanted.name] = error
    return planned


def _grown(wanted: CreatePartitionsTopic, image: ClusterImage, limit: int) -> CreatePartitions:
    """The command that lets a topic grow by at most ``limit`` partitions.

    Raises UnknownTopicOrPartition, InvalidPartitions, InvalidReplicaAssignment or PolicyViolation; of several faults,
    the one that Kafka names first.
    """
    topic = image.topics_by_name.get(wanted.name)
    if topic is None:
        raise UnknownTopicOrPartition(f"there is no topic {wanted.name}")
    present = len(topic.partitions)
    added = wanted.count - present
    if added == 0:
        raise InvalidPartitions(f"topic {topic.name} has {present} partitions already")
    if added < 0:
        raise InvalidPartitions(f"topic {topic.name} has {present} partitions: {wanted.count} would be fewer")
    if wanted.assignments is not None and len(wanted.assignments) != added:
        raise InvalidReplicaAssignment(
            f"topic {topic.name} would get {added} more partitions, and {len(wanted.assignments)} are assigned"
        )
    if added > limit:
        raise PolicyViolation(f"one request creates at most {MAX_PARTITIONS_PER_REQUEST} partitions")
    if wanted.assignments is None:
        nodes = _placed(topic, added, image)
    else:
        nodes = [
            _assigned(index, assignment.broker_ids, topic, image)
            for index, assignment in enumerate(wanted.assignments, present)
        ]
    return CreatePartitions(
        topic_id=topic.id, first_partition=present, partitions=[NewPartition(assigned=each) for each in nodes]
    )


def _placed(topic: TopicImage, added: int, image: ClusterImage) -> list[list[int]]:
    """Each new partition's nodes: on round the ring of nodes from where the topic's first ones were placed."""
    ring = sorted(image.nodes)
    replicas = len(topic.partitions[0].assigned)
    if replicas > len(ring):
        raise InvalidReplicaAssignment(f"{replicas} replicas need as many nodes, and the cluster has {len(ring)}")
    first = topic.partitions[0].assigned[0]
    start = ring.index(first) if first in image.nodes else 0
    present = len(topic.partitions)
    return placed_round(ring, start, replicas, range(present, present + added))


def _assigned(index: int, wanted: list[int], topic: TopicImage, image: ClusterImage) -> list[int]:
    nodes, replicas = checked_nodes(index, wanted, image), len(topic.partitions[0].assigned)
    if len(nodes) != replicas:
        raise InvalidReplicaAssignment(
            f"partition {index} is assigned to {len(nodes)} nodes, and those of topic {topic.name} have {replicas}"
        )
    return nodes


def _result(name: str, outcome: CreatePartitions | KafkaError) -> CreatePartitionsTopicResult:
    if isinstance(outcome, KafkaError):
        return CreatePartitionsTopicResult(name=name, error_code=outcome.code, error_message=str(outcome))
    return CreatePartitionsTopicResult(name=name, error_message=None)
