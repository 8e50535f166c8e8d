"""Produce: append batches to partitions, and answer once they are as safe as was asked for."""

from __future__ import annotations

from typing import Any

from walrusmq.broker.context import Context
from walrusmq.broker.deferred import Deferred
from walrusmq.broker.dispatcher import CLOSE_CONNECTION, NO_ANSWER, PRODUCE_KEY, handles
from walrusmq.protocol.errors import (
    CorruptMessage,
    ErrorCode,
    KafkaError,
    KafkaStorageError,
    MessageTooLarge,
    NotLeaderOrFollower,
    UnknownTopicOrPartition,
)
from walrusmq.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from walrusmq.protocol.records.header import TransactionsNotSupported
from walrusmq.protocol.records.legacy import NotOneBatch
from walrusmq.segments.partition import Appended, Partition

#: The first version that names topics by id (KIP-516).
FIRST_VERSION_WITH_IDS = 13
#: The first version that may carry zstd (KIP-110).
FIRST_VERSION_WITH_ZSTD = 7
ZSTD = 4
ATTRIBUTES_AT = 22
LEGAL_ACKS = (-1, 0, 1)
#: Errors that Kafka answers without the log's start: they were found before the log was asked, or by its disk.
WITHOUT_LOG_START = (
    CorruptMessage, KafkaStorageError, MessageTooLarge, NotLeaderOrFollower, NotOneBatch, TransactionsNotSupported,
    UnknownTopicOrPartition,
)  # fmt: skip
#: No wait is kept longer than this, whatever timeout a client names.
MAX_WAIT_S = 3600.0


class ProduceAnswer:
    """The answer to one request while some of its batches wait: for a sync, or for the next segment to open."""

    __slots__ = ("_bucket", "_context", "_waits", "deferred", "is_acknowledged_at_once", "response")

    def __init__(self, response: ProduceResponse, context: Context) -> None:
        self.response = response
        self.deferred: Deferred | None = None
        self._context = context
        self._waits: dict[int, PartitionProduceResponse] = {}
        self._bucket = 0

    def wait(self, partition: Partition, appended: Appended, part: PartitionProduceResponse) -> None:
        """Have ``part`` answered once what was appended is acknowledgeable."""
        key = id(part)
        self._waits[key] = part

        def acknowledged(error: KafkaError | None) -> None:
            if self._waits.pop(key, None) is None:
                return
            if error is not None:
                fail(part, error, partition)
            if not self._waits:
                self._finish()

        partition.when_acknowledged(appended.end_offset, acknowledged)

    def hold(self, partition: Partition, batch: memoryview, part: PartitionProduceResponse) -> None:
        """Have the batch appended when the next segment opens (design: what clients see of a rollover)."""
        key = id(part)

        def opened(error: KafkaError | None, kept: memoryview) -> None:
            if self._waits.pop(key, None) is None:
                return
            try:
                if error is not None:
                    raise error
                if not partition.is_open:
                    self.hold(partition, kept, part)
                    return
                self.append(partition, kept, part)
            except KafkaError as refusal:
                fail(part, refusal, partition)
                if self.deferred is None:
                    self._context.connection.close_in_turn(None)
            if not self._waits:
                self._finish()

        self._context.node.held_appends.add(partition, batch, opened)
        self._waits[key] = part

    def append(self, partition: Partition, batch: memoryview, part: PartitionProduceResponse) -> None:
        """Append one batch. Raises the KafkaError that says why it wasn't written."""
        node = self._context.node
        appended = partition.append(batch, node.clock.now_ms())
        part.base_offset = appended.base_offset
        part.log_append_time_ms = appended.log_append_time_ms
        part.log_start_offset = partition.log_start_offset
        node.metrics.entries_appended += appended.end_offset - appended.base_offset
        node.metrics.bytes_appended += len(batch)
        if not appended.acknowledged:
            self.wait(partition, appended, part)

    def outcome(self, acks: int, timeout_ms: int) -> Any:
        """What the handler returns: the response, a Deferred of it, or what acks=0 gets."""
        if acks == 0:
            return CLOSE_CONNECTION if self._has_error() else NO_ANSWER
        if not self._waits:
            self._count_errors()
            return self.response
        self.deferred = Deferred()
        node = self._context.node
        wait_s = min(max(timeout_ms, 0) / 1000, MAX_WAIT_S)
        self._bucket = node.deadlines.add(self, node.clock.monotonic() + wait_s, self._time_out)
        return self.deferred

    def _finish(self) -> None:
        if self.deferred is not None and not self.deferred.is_done:
            self._context.node.deadlines.remove(self, self._bucket)
            self._count_errors()
            self.deferred.resolve(self.response)

    def _time_out(self) -> None:
        """Appended, and not known to be safe in time: the outcome is unknown to the client."""
        for part in self._waits.values():
            part.error_code = int(ErrorCode.REQUEST_TIMED_OUT)
            part.base_offset = part.log_append_time_ms = part.log_start_offset = -1
        self._waits.clear()
        self._count_errors()
        if self.deferred is not None:
            self.deferred.resolve(self.response)

    def _has_error(self) -> bool:
        return any(part.error_code for topic in self.response.responses for part in topic.partition_responses)

    def _count_errors(self) -> None:
        for topic in self.response.responses:
            for part in topic.partition_responses:
                if part.error_code:
                    self._context.node.metrics.count_error(PRODUCE_KEY, part.error_code)


def fail(part: PartitionProduceResponse, error: KafkaError, partition: Partition) -> None:
    """Answer a partition with an error, as Kafka does: the log's start goes with what its own checks found."""
    part.error_code = int(error.code)
    part.error_message = str(error)
    part.base_offset = part.log_append_time_ms = part.log_start_offset = -1
    if not isinstance(error, WITHOUT_LOG_START):
        part.log_start_offset = partition.log_start_offset


def last_of_each(topics: list[TopicProduceData]) -> list[TopicProduceData]:
    """Each partition once: of several batches for one in a request Kafka takes the last, so that is what clients know."""
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
    response = ProduceResponse()
    answer = ProduceAnswer(response, context)
    version = context.api_version
    if request.acks not in LEGAL_ACKS:
        refuse_all(request, response, ErrorCode.INVALID_REQUIRED_ACKS)
        return answer.outcome(request.acks, 0)
    node = context.node
    topics = request.topic_data
    if len(topics) > 1 or (topics and len(topics[0].partition_data) > 1):
        topics = last_of_each(topics)
    for topic in topics:
        if not topic.partition_data:
            continue
        parts: list[PartitionProduceResponse] = []
        if version >= FIRST_VERSION_WITH_IDS:
            partitions = node.partitions_by_id.get(topic.topic_id)
            unknown = ErrorCode.UNKNOWN_TOPIC_ID
            response.responses.append(TopicProduceResponse(topic_id=topic.topic_id, partition_responses=parts))
        else:
            partitions = node.partitions_by_name.get(topic.name)
            unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            response.responses.append(TopicProduceResponse(name=topic.name, partition_responses=parts))
        for data in topic.partition_data:
            part = PartitionProduceResponse(index=data.index, base_offset=-1)
            parts.append(part)
            partition = partitions.get(data.index) if partitions is not None else None
            if partition is None:
                part.error_code = int(unknown if partitions is None else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
                continue
            if data.records is None:
                part.error_code = int(ErrorCode.INVALID_RECORD)
                continue
            append_or_hold(answer, partition, data.records, part, version)
    return answer.outcome(request.acks, request.timeout_ms)


def append_or_hold(
    answer: ProduceAnswer, partition: Partition, batch: memoryview, part: PartitionProduceResponse, version: int
) -> None:
    """Append now, or behind those that wait for the partition's next segment."""
    try:
        if version < FIRST_VERSION_WITH_ZSTD and len(batch) > ATTRIBUTES_AT and batch[ATTRIBUTES_AT] & 7 == ZSTD:
            part.error_code = int(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)
        elif partition.is_open:
            answer.append(partition, batch, part)
        else:
            answer.hold(partition, batch, part)
    except KafkaError as error:
        fail(part, error, partition)


def refuse_all(request: ProduceRequest, response: ProduceResponse, code: ErrorCode) -> None:
    """Answer every partition of the request with one error."""
    for topic in request.topic_data:
        parts = [PartitionProduceResponse(index=d.index, error_code=int(code), base_offset=-1) for d in topic.partition_data]
        response.responses.append(
            TopicProduceResponse(name=topic.name, topic_id=topic.topic_id, partition_responses=parts)
        )
