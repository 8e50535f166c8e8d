"""What becomes of a produced batch: appended, waiting for its sync or for the next segment, or refused."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from walrusmq.broker.context import Context
from walrusmq.broker.deferred import Deferred
from walrusmq.broker.dispatcher import CLOSE_CONNECTION, NO_ANSWER, PRODUCE_KEY
from walrusmq.protocol.errors import (
    CorruptMessage,
    ErrorCode,
    InvalidTimestamp,
    InvalidTopic,
    KafkaError,
    KafkaStorageError,
    MessageTooLarge,
    NotLeaderOrFollower,
    UnknownTopicOrPartition,
)
from walrusmq.protocol.messages.produce import (
    BatchIndexAndErrorMessage,
    PartitionProduceResponse,
    ProduceResponse,
)
from walrusmq.protocol.records.header import TransactionsNotSupported
from walrusmq.protocol.records.legacy import NotOneBatch
from walrusmq.segments.partition import Appended, Partition, SegmentStopped
from walrusmq.segments.preparation import RecordsRefused

if TYPE_CHECKING:
    from walrusmq.broker.node import Node

#: Errors that Kafka answers without the log's start: they were found before the log was asked, or by its disk.
WITHOUT_LOG_START = (
    CorruptMessage, InvalidTopic, KafkaStorageError, MessageTooLarge, NotLeaderOrFollower, NotOneBatch,
    TransactionsNotSupported, UnknownTopicOrPartition,
)  # fmt: skip
#: No wait is kept longer than this, whatever timeout a client names.
MAX_WAIT_S = 3600.0


class ProduceAnswer:
    """The answer to one request while some of its batches wait: for a sync, or for the next segment to open."""

    __slots__ = ("_acks", "_bucket", "_context", "_deferred", "_is_held", "_response", "_waits")

    def __init__(self, response: ProduceResponse, acks: int, context: Context) -> None:
        self._response = response
        self._acks = acks
        self._context = context
        self._deferred = Deferred()
        self._waits: dict[int, PartitionProduceResponse] = {}
        self._bucket = 0
        self._is_held = False

    def wait(self, partition: Partition, end_offset: int, part: PartitionProduceResponse) -> None:
        """Have ``part`` answered once what was appended is acknowledgeable."""
        key = id(part)
        self._waits[key] = part

        def acknowledged(error: KafkaError | None) -> None:
            if self._waits.pop(key, None) is None:
                return
            if error is not None:
                fail(part, error, partition)
            self._finish_if_done()

        partition.when_acknowledged(end_offset, acknowledged)

    def hold(self, partition: Partition, batch: memoryview, part: PartitionProduceResponse) -> None:
        """Have the batch appended when the next segment opens (design: what clients see of a rollover)."""
        key = id(part)

        def opened(error: KafkaError | None, kept: memoryview) -> None:
            if self._waits.pop(key, None) is None:
                return
            if error is None:
                self._append_in_turn(partition, kept, part)
            else:
                fail(part, error, partition)
            self._finish_if_done()

        self._context.node.held_appends.add(partition, batch, opened)
        self._waits[key] = part
        self._is_held = True

    def prepare(self, partition: Partition, batch: memoryview, part: PartitionProduceResponse) -> None:
        """Have the batch prepared off the loop, as its topic asks for, and then appended."""
        key = id(part)

        def prepared(outcome: memoryview | KafkaError) -> None:
            if self._waits.pop(key, None) is None:
                return
            if isinstance(outcome, KafkaError):
                fail(part, outcome, partition)
            else:
                self._append_in_turn(partition, outcome, part)
            self._finish_if_done()

        partition.store.prepared.add(partition, batch, prepared)
        self._waits[key] = part
        self._is_held = True

    def append_aside(self, partition: Partition, batch: memoryview, part: PartitionProduceResponse) -> None:
        """Have the batch appended off the loop, because the disk is slow."""
        key = id(part)

        def appended(outcome: Appended | KafkaError, kept: memoryview) -> None:
            end_offset = None
            if isinstance(outcome, Appended):
                end_offset = note(self._context.node, partition, outcome, len(kept), part)
            if self._waits.pop(key, None) is None:
                return
            try:
                if isinstance(outcome, SegmentStopped):
                    self.hold(partition, kept, part)
                elif isinstance(outcome, KafkaError):
                    raise outcome
                elif end_offset is not None:
                    self.wait(partition, end_offset, part)
            except KafkaError as error:
                self.refuse(partition, kept, error, part)
            self._finish_if_done()

        partition.store.aside.add(partition, batch, appended)
        self._waits[key] = part
        self._is_held = True

    def refuse(
        self, partition: Partition, batch: memoryview, error: KafkaError, part: PartitionProduceResponse
    ) -> None:
        """Answer with the error; for timestamps with what is wrong in each record too, which takes unpacking them."""
        if type(error) is not InvalidTimestamp:
            fail(part, error, partition)
            return
        key = id(part)

        def explained(refusal: KafkaError) -> None:
            if self._waits.pop(key, None) is not None:
                fail(part, refusal, partition)
                self._finish_if_done()

        try:
            partition.store.prepared.explain(partition, batch, error, explained)
        except KafkaError as refusal:
            fail(part, refusal, partition)
            return
        self._waits[key] = part
        self._is_held = True

    def _append_in_turn(self, partition: Partition, batch: memoryview, part: PartitionProduceResponse) -> None:
        """Append a batch that had to wait: now, or after those that wait for the disk or for the next segment."""
        aside = partition.store.aside
        try:
            if aside.is_active and aside.takes(partition):
                self.append_aside(partition, batch, part)
            elif not partition.is_open and not partition.is_gone:
                self.hold(partition, batch, part)
            else:
                end_offset = append(self._context.node, partition, batch, part)
                if end_offset is not None:
                    self.wait(partition, end_offset, part)
        except KafkaError as error:
            self.refuse(partition, batch, error, part)

    def outcome(self, timeout_ms: int) -> Any:
        """What the handler returns: a Deferred of the response, or what acks=0 gets at once.

        What acks=0 has waiting for the next segment counts as unanswered too, or nothing would hold back a producer
        that never waits. Its client knows no time after which it is lost.
        """
        if not self._waits:
            return finished(self._response, self._acks, self._context)
        if self._acks == 0 and not has_error(self._response):
            return self._deferred if self._is_held else NO_ANSWER
        node = self._context.node
        wait_s = min(max(timeout_ms, 0) / 1000, MAX_WAIT_S)
        self._bucket = node.deadlines.add(self, node.clock.monotonic() + wait_s, self._time_out)
        return self._deferred

    def _finish_if_done(self) -> None:
        if not self._waits:
            self._finish()

    def _finish(self) -> None:
        outcome = finished(self._response, self._acks, self._context)
        if self._bucket:
            self._context.node.deadlines.remove(self, self._bucket)
        if self._bucket or self._is_held:
            self._deferred.resolve(outcome)
        elif outcome is CLOSE_CONNECTION:
            self._context.connection.close_in_turn(None)

    def _time_out(self) -> None:
        """Appended, and not known to be safe in time: the outcome is unknown to the client."""
        for part in self._waits.values():
            part.error_code = int(ErrorCode.REQUEST_TIMED_OUT)
            part.base_offset = part.log_append_time_ms = part.log_start_offset = -1
        self._waits.clear()
        self._deferred.resolve(finished(self._response, self._acks, self._context))


def finished(response: ProduceResponse, acks: int, context: Context) -> Any:
    """The outcome of a request whose parts all have their answers."""
    if has_error(response):
        metrics = context.node.metrics
        for topic in response.responses:
            for part in topic.partition_responses:
                if part.error_code:
                    metrics.count_error(PRODUCE_KEY, part.error_code)
        return response if acks else CLOSE_CONNECTION
    return response if acks else NO_ANSWER


def has_error(response: ProduceResponse) -> bool:
    """Whether any partition was answered with an error."""
    for topic in response.responses:
        for part in topic.partition_responses:
            if part.error_code:
                return True
    return False


def append(node: Node, partition: Partition, batch: memoryview, part: PartitionProduceResponse) -> int | None:
    """Append one batch; returns the end offset that is still to be acknowledged, None if that is done.

    Raises the KafkaError that says why it wasn't written.
    """
    return note(node, partition, partition.append(batch, node.clock.now_ms()), len(batch), part)


def note(
    node: Node, partition: Partition, appended: Appended, batch_bytes: int, part: PartitionProduceResponse
) -> int | None:
    """Answer and count what was appended; returns as `append` does."""
    part.base_offset, end_offset, part.log_append_time_ms, is_acknowledged = appended
    part.log_start_offset = partition.log_start_offset
    metrics = node.metrics
    metrics.entries_appended += end_offset - part.base_offset
    metrics.bytes_appended += batch_bytes
    return None if is_acknowledged else end_offset


def fail(part: PartitionProduceResponse, error: KafkaError, partition: Partition) -> None:
    """Answer a partition with an error, as Kafka does: the log's start goes with what its own checks found."""
    part.error_code = int(error.code)
    part.error_message = str(error)
    part.base_offset = part.log_append_time_ms = part.log_start_offset = -1
    if isinstance(error, RecordsRefused):
        part.record_errors = [
            BatchIndexAndErrorMessage(batch_index=index, batch_index_error_message=text)
            for index, text in sorted(error.faults.items())
        ]
    if not isinstance(error, WITHOUT_LOG_START):
        part.log_start_offset = partition.log_start_offset
