"""Produce: append batches to partitions, and answer once they are as safe as was asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

from walrusmq.broker.context import Context
from walrusmq.broker.dispatcher import handles
from walrusmq.broker.produce_single import FIRST_VERSION_WITH_IDS, FIRST_VERSION_WITH_ZSTD, LEGAL_ACKS
from walrusmq.broker.produce_waits import ProduceAnswer, append, fail, finished
from walrusmq.protocol.errors import (
    ErrorCode,
    InvalidTimestamp,
    InvalidTopic,
    KafkaError,
    UnsupportedCompressionType,
)
from walrusmq.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from walrusmq.protocol.records.compression import Codec
from walrusmq.protocol.records.header import codec_in
from walrusmq.protocol.records.legacy import NotOneBatch

if TYPE_CHECKING:
    from walrusmq.segments.partition import Partition


def last_of_each(topics: list[TopicProduceData]) -> list[TopicProduceData]:
    """Each partition once: of several batches for one in a request, Kafka takes the last."""
    seen: dict[tuple[str, bytes], dict[int, PartitionProduceData]] = {}
    for topic in topics:
        partitions = seen.setdefault((topic.name, topic.topic_id), {})
        for data in topic.partition_data:
            partitions[data.index] = data
    return [
        TopicProduceData(name=name, topic_id=topic_id, partition_data=list(partitions.values()))
        for (name, topic_id), partitions in seen.items()
    ]


@handles(ProduceRequest)
def produce(request: ProduceRequest, context: Context) -> Any:
    """Append each partition's batch where this node leads; the others get the error that says why not."""
    acks = request.acks
    if acks not in LEGAL_ACKS:
        return refuse_all(request, context)
    topics = request.topic_data
    if len(topics) > 1 or (topics and len(topics[0].partition_data) > 1):
        topics = last_of_each(topics)
    response = ProduceResponse()
    version = context.api_version
    node = context.node
    answer: ProduceAnswer | None = None
    for topic in topics:
        if not topic.partition_data:
            continue
        if version >= FIRST_VERSION_WITH_IDS:
            partitions = node.partitions_by_id.get(topic.topic_id)
            answered = TopicProduceResponse(topic_id=topic.topic_id)
        else:
            partitions = node.partitions_by_name.get(topic.name)
            answered = TopicProduceResponse(name=topic.name)
        response.responses.append(answered)
        for data in topic.partition_data:
            part = PartitionProduceResponse(index=data.index)
            answered.partition_responses.append(part)
            partition = partitions.get(data.index) if partitions is not None else None
            if partition is None:
                part.error_code = unknown(partitions is not None, version)
                part.base_offset = -1
                continue
            batch = data.records
            try:
                if batch is None or (version < FIRST_VERSION_WITH_ZSTD and is_zstd(batch)):
                    refuse_batch(batch)
                if partition.prepares and must_prepare(partition, batch):
                    answer = answer or ProduceAnswer(response, acks, context)
                    answer.prepare(partition, batch, part)
                elif node.store.aside.is_active and node.store.aside.takes(partition):
                    answer = answer or ProduceAnswer(response, acks, context)
                    answer.append_aside(partition, batch, part)
                elif partition.is_open:
                    end_offset = append(node, partition, batch, part)
                    if end_offset is None:
                        continue
                    answer = answer or ProduceAnswer(response, acks, context)
                    answer.wait(partition, end_offset, part)
                else:
                    answer = answer or ProduceAnswer(response, acks, context)
                    answer.hold(partition, batch, part)
            except InvalidTimestamp as error:
                answer = answer or ProduceAnswer(response, acks, context)
                answer.refuse(partition, batch, error, part)
            except KafkaError as error:
                fail(part, error, partition)
    return finished(response, acks, context) if answer is None else answer.outcome(request.timeout_ms)


def unknown(has_topic: bool, version: int) -> int:
    """The code for a partition that this node doesn't lead."""
    if has_topic or version < FIRST_VERSION_WITH_IDS:
        return int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    return int(ErrorCode.UNKNOWN_TOPIC_ID)


def must_prepare(partition: Partition, batch: memoryview) -> bool:
    """Whether a batch is more than its header to its partition, or must wait for one that is.

    Raises InvalidTopic for one that only the node itself appends to.
    """
    if partition.config.is_reserved:
        raise InvalidTopic(f"{partition.topic} belongs to the broker: clients don't produce to it")
    return partition.store.prepared.takes(partition, batch)


def is_zstd(batch: memoryview) -> bool:
    """Whether the batch says that it is compressed with zstd."""
    return codec_in(batch) == Codec.ZSTD


def refuse_batch(batch: memoryview | None) -> NoReturn:
    """Raise what Kafka answers before it looks at the batch itself."""
    if batch is None:
        raise NotOneBatch("no record batch, but null")
    raise UnsupportedCompressionType("zstd needs Produce 7 or later")


def refuse_all(request: ProduceRequest, context: Context) -> Any:
    """Answer every partition of a request whose acks mean nothing."""
    response = ProduceResponse()
    code = ErrorCode.INVALID_REQUIRED_ACKS
    for topic in request.topic_data:
        parts = [
            PartitionProduceResponse(index=d.index, error_code=int(code), base_offset=-1) for d in topic.partition_data
        ]
        response.responses.append(
            TopicProduceResponse(name=topic.name, topic_id=topic.topic_id, partition_responses=parts)
        )
    return finished(response, request.acks, context)
