"""Produce requests for one partition that begin like the one before, as nearly all do: only the batch is new.

A request's bytes up to its batch say what it wants. Where they are the same as those of a request that was decoded,
so is what they mean; and the response is the same but for three numbers. To decode, look up, build and encode anew
would cost a third of a small request.
"""

from __future__ import annotations

import struct
from typing import Any

from walrusmq.broker.context import Context
from walrusmq.broker.deferred import Deferred
from walrusmq.broker.dispatcher import HEADER_START_BYTES, NO_ANSWER, Route
from walrusmq.broker.produce_waits import MAX_WAIT_S, fail, finished
from walrusmq.protocol.codec import codec
from walrusmq.protocol.errors import InvalidTimestamp, KafkaError, RequestTimedOut
from walrusmq.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from walrusmq.protocol.schema import schema_of
from walrusmq.segments.partition import Partition

#: What follows the batch in a flexible version: no tagged fields in partition, topic and request.
FLEXIBLE_SUFFIX = b"\0\0\0"
SIZE_BYTES = 4
#: The size and the correlation id, before what a flexible header adds.
FRAME_START_BYTES = 8
#: Base offset, log append time and, from this version on, the log's start offset, one behind the other.
FIRST_VERSION_WITH_LOG_START = 5
#: Numbers that stand nowhere else in a response: they show where the real ones go.
_MARKS = (0x0123_4567_89AB_CDEF, 0x1123_4567_89AB_CDEF, 0x2123_4567_89AB_CDEF)


class AnswerForm:
    """The whole frame of the response for one partition in one version, made in one call."""

    __slots__ = ("_after", "_before", "_has_log_start", "_pack", "_size")

    def __init__(self, route: Route, topic: TopicProduceData, index: int) -> None:
        base_offset, log_append_time_ms, log_start_offset = _MARKS
        part = PartitionProduceResponse(
            index=index,
            base_offset=base_offset,
            log_append_time_ms=log_append_time_ms,
            log_start_offset=log_start_offset,
        )
        encoded = codec(ProduceResponse, route.version).encode(response_of(topic, part))
        self._has_log_start = route.version >= FIRST_VERSION_WITH_LOG_START
        numbers = struct.pack(">qqq", *_MARKS) if self._has_log_start else struct.pack(">qq", *_MARKS[:2])
        before, _, self._after = encoded.partition(numbers)
        self._before = route.pack_header(0, 0)[FRAME_START_BYTES:] + before
        form = f">ii{len(self._before)}s{len(numbers) // 8}q{len(self._after)}s"
        self._pack = struct.Struct(form).pack
        self._size = struct.calcsize(form) - struct.calcsize(">i")

    def fill(self, correlation_id: int, base_offset: int, log_append_time_ms: int, log_start_offset: int) -> bytes:
        """The frame that says so, without an error."""
        if self._has_log_start:
            return self._pack(
                self._size, correlation_id, self._before, base_offset, log_append_time_ms, log_start_offset, self._after
            )
        return self._pack(self._size, correlation_id, self._before, base_offset, log_append_time_ms, self._after)


class RepeatedProduce:
    """What one connection asks of one partition again and again, with the same acks and timeout."""

    __slots__ = (
        "_acks",
        "_aside",
        "_context",
        "_form",
        "_partition",
        "_prefix",
        "_size_at",
        "_suffix_bytes",
        "_timeout_s",
        "_topic",
        "_unpack",
        "_unpacked_bytes",
        "correlation_id",
        "route",
    )

    def __init__(self, request: ProduceRequest, partition: Partition, context: Context, route: Route) -> None:
        topic = request.topic_data[0]
        self.route = route
        self._context = context
        self._partition = partition
        self._aside = partition.store.aside
        self._acks = request.acks
        self._timeout_s = min(max(request.timeout_ms, 0) / 1000, MAX_WAIT_S)
        self._topic = TopicProduceData(name=topic.name, topic_id=topic.topic_id)
        self._form = AnswerForm(route, self._topic, partition.index)
        is_flexible = route.version in schema_of(ProduceRequest).flexible
        self._suffix_bytes = len(FLEXIBLE_SUFFIX) if is_flexible else 0
        self._size_at = _size_at(request, context, route)
        self._unpacked_bytes = self._size_at + SIZE_BYTES
        self._unpack = struct.Struct(f">4si{self._size_at - 8}s{'4s' if is_flexible else 'i'}").unpack_from
        self._prefix = b""
        #: Of the request that was served last.
        self.correlation_id = 0

    def remember(self, frame: memoryview, batch: memoryview) -> bool:
        """Take the bytes before the batch as those by which the request is known.

        False where not all stands where it must: with unknown tagged fields, a size in more bytes than it needs, or
        bytes behind the request. Then nobody could tell a size from what is near it.
        """
        batch_at = len(frame) - self._suffix_bytes - len(batch)
        if self._suffix_bytes:
            if frame[-self._suffix_bytes :] != FLEXIBLE_SUFFIX:
                return False
            size_at = batch_at - _varint_bytes(len(batch) + 1)
        else:
            size_at = batch_at - SIZE_BYTES
        if size_at != self._size_at:
            return False
        head, _, prefix, _ = self._unpack(frame)
        self._prefix = head + prefix
        return True

    def outcome(self, frame: memoryview) -> Any:
        """Serve the request if it begins like the remembered one; None if it doesn't."""
        size = len(frame)
        partition = self._partition
        if size < self._unpacked_bytes or not partition.is_open or self._aside.is_active or partition.prepares:
            return None
        head, self.correlation_id, prefix, batch_bytes = self._unpack(frame)
        if head + prefix != self._prefix:
            return None
        if self._suffix_bytes:
            batch_bytes, batch_at = _read_compact_size(batch_bytes, self._unpacked_bytes - SIZE_BYTES)
            if (
                batch_at + batch_bytes + self._suffix_bytes != size
                or frame[batch_at + batch_bytes :] != FLEXIBLE_SUFFIX
            ):
                return None
        else:
            batch_at = self._unpacked_bytes
            if batch_at + batch_bytes != size:
                return None
        batch = frame[batch_at : batch_at + batch_bytes]
        node = self._context.node
        try:
            base_offset, end_offset, log_append_time_ms, is_acknowledged = partition.append(batch, node.clock.now_ms())
        except InvalidTimestamp:
            return None  # what is wrong with each record is told by the long way
        except KafkaError as error:
            return self._refusal(error)
        metrics = node.metrics
        metrics.entries_appended += end_offset - base_offset
        metrics.bytes_appended += batch_bytes
        if self._acks == 0:
            return NO_ANSWER
        answer = self._form.fill(self.correlation_id, base_offset, log_append_time_ms, partition.log_start_offset)
        if is_acknowledged:
            return answer
        deferred = Deferred()
        bucket = node.deadlines.add(
            deferred,
            node.clock.monotonic() + self._timeout_s,
            lambda: deferred.resolve(self._refusal(RequestTimedOut("appended, and not known to be safe in time"))),
        )

        def acknowledged(error: KafkaError | None) -> None:
            node.deadlines.remove(deferred, bucket)
            if not deferred.is_done:
                deferred.resolve(answer if error is None else self._refusal(error))

        partition.when_acknowledged(end_offset, acknowledged)
        return deferred

    def _refusal(self, error: KafkaError) -> Any:
        part = PartitionProduceResponse(index=self._partition.index)
        fail(part, error, self._partition)
        return finished(response_of(self._topic, part), self._acks, self._context)


def response_of(topic: TopicProduceData, part: PartitionProduceResponse) -> ProduceResponse:
    """The response that says ``part`` of a topic's only partition."""
    answered = TopicProduceResponse(name=topic.name, topic_id=topic.topic_id, partition_responses=[part])
    return ProduceResponse(responses=[answered])


def _size_at(request: ProduceRequest, context: Context, route: Route) -> int:
    """Where the batch's size stands in a frame that says all in as few bytes as can be."""
    topic = request.topic_data[0]
    data = PartitionProduceData(index=topic.partition_data[0].index, records=b"")
    short = ProduceRequest(
        acks=request.acks,
        timeout_ms=request.timeout_ms,
        topic_data=[TopicProduceData(name=topic.name, topic_id=topic.topic_id, partition_data=[data])],
    )
    body_bytes = len(codec(ProduceRequest, route.version).encode(short))
    is_flexible = route.version in schema_of(ProduceRequest).flexible
    client_id_bytes = len((context.client_id or "").encode())
    header_bytes = HEADER_START_BYTES + client_id_bytes + route.header_tail_bytes
    return header_bytes + body_bytes - (1 + len(FLEXIBLE_SUFFIX) if is_flexible else SIZE_BYTES)


def _varint_bytes(value: int) -> int:
    return max(1, (value.bit_length() + 6) // 7)


def _read_compact_size(start: bytes, position: int) -> tuple[int, int]:
    """The size that the compact form says, and where what it counts begins; ``start`` is the bytes at ``position``.

    (-1, …) for one of more than four bytes, as no frame needs, and for null.
    """
    value = shift = 0
    for byte in start:
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value - 1, position
        shift += 7
    return -1, position
