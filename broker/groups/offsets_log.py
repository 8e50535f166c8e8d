"""The topic ``__consumer_offsets``: made when it is first needed, appended to, and read from its start."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING

from walrusmq.broker.commands import CreateTopic
from walrusmq.broker.groups.offset_records import OffsetRecord, encode_record, partition_for
from walrusmq.broker.topic_ids import new_topic_id
from walrusmq.broker.topics import OFFSETS_TOPIC, TopicPlanner
from walrusmq.protocol.errors import (
    CoordinatorNotAvailable,
    ErrorCode,
    KafkaError,
    KafkaStorageError,
    NotCoordinator,
    TopicAlreadyExists,
)
from walrusmq.protocol.messages.create_topics import CreatableTopic, CreatableTopicConfig
from walrusmq.protocol.records.batch import RecordBatch, decode_batches, encode_batch
from walrusmq.segments.acknowledgements import Acknowledged
from walrusmq.segments.partition import Appended, SegmentStopped

if TYPE_CHECKING:
    from walrusmq.broker.image import TopicImage
    from walrusmq.broker.node import Node
    from walrusmq.segments.partition import Partition

#: Read in one turn of the loop while loading: a few milliseconds of unpacking.
LOAD_BYTES = 1 << 16
#: How long loading waits for an index that is being made again, or for a disk that refuses.
LOAD_RETRY_S = 0.1

#: What Kafka's coordinator makes of an append's error: clients look the coordinator up again, or ask again.
UNAVAILABLE = (
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    ErrorCode.REQUEST_TIMED_OUT,
)
MOVED = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.KAFKA_STORAGE_ERROR)


class OffsetsLog:
    """Appends to and reads the partitions of the topic. Used on the event loop."""

    __slots__ = ("_making", "_node")

    def __init__(self, node: Node) -> None:
        self._node = node
        self._making = asyncio.Lock()

    @property
    def topic(self) -> TopicImage | None:
        """The topic as the image has it, if it has been made."""
        return self._node.image.topics_by_name.get(OFFSETS_TOPIC)

    def partition_of(self, group_id: str) -> Partition:
        """The partition that has a group. Raises NotCoordinator: clients then ask for the coordinator again."""
        topic = self.topic
        if topic is None:
            raise NotCoordinator(f"there is no {OFFSETS_TOPIC} yet: FindCoordinator makes it")
        index = partition_for(group_id, len(topic.partitions))
        partition = self._node.partitions_by_id.get(topic.id, {}).get(index)
        if partition is None:
            raise NotCoordinator(f"node {self._node.node_id} doesn't lead {OFFSETS_TOPIC}/{index}")
        return partition

    async def make(self) -> None:
        """Make the topic unless it is there. Raises CoordinatorNotAvailable."""
        async with self._making:
            if self.topic is not None:
                return
            settings = self._node.settings
            count = settings.offsets_topic_num_partitions
            configs = [
                CreatableTopicConfig(name="cleanup.policy", value="compact"),
                CreatableTopicConfig(name="compression.type", value="producer"),
                CreatableTopicConfig(name="segment.bytes", value=str(settings.offsets_topic_segment_bytes)),
            ]
            wanted = CreatableTopic(name=OFFSETS_TOPIC, num_partitions=count, replication_factor=1, configs=configs)
            try:
                command: CreateTopic = TopicPlanner(self._node.image, settings).plan(wanted, new_topic_id())
                await self._node.propose(command)
            except TopicAlreadyExists:
                return
            except KafkaError as error:
                raise CoordinatorNotAvailable(f"{OFFSETS_TOPIC} can't be made: {error}") from error

    def append(
        self,
        partition: Partition,
        records: Sequence[OffsetRecord],
        settled: Acknowledged,
        answered: Acknowledged,
    ) -> None:
        """Append records as one batch.

        ``settled`` is told once the batch is acknowledged, or why it won't be, in the order of the batches in the log.
        ``answered`` is told the same behind it, or CoordinatorNotAvailable when that isn't known within
        ``offsets.commit.timeout.ms``: clients don't wait longer. Both may be called before this returns.
        """
        now_ms = self._node.clock.now_ms()
        batch = encode_batch([encode_record(record, now_ms, offset) for offset, record in enumerate(records)])
        wait = _Wait(self._node, settled, answered)
        self._append(partition, memoryview(bytearray(batch)), wait.ended)
        if not wait.has_answered:
            wait.begin()

    def _append(self, partition: Partition, batch: memoryview, ended: Acknowledged) -> None:
        def opened(error: KafkaError | None, kept: memoryview) -> None:
            if error is not None:
                ended(error)
            else:
                self._append(partition, kept, ended)

        def appended_aside(outcome: Appended | KafkaError, kept: memoryview) -> None:
            if isinstance(outcome, SegmentStopped):
                self._append(partition, kept, ended)
            elif isinstance(outcome, KafkaError):
                ended(outcome)
            else:
                _wait_for(partition, outcome, ended)

        aside = partition.store.aside
        try:
            if aside.is_active and aside.takes(partition):
                aside.add(partition, batch, appended_aside)
            elif not partition.is_open and not partition.is_gone:
                self._node.held_appends.add(partition, batch, opened)
            else:
                _wait_for(partition, partition.append(batch, self._node.clock.now_ms()), ended)
        except KafkaError as error:
            ended(error)

    async def read(self, partition: Partition) -> AsyncIterator[RecordBatch]:
        """The batches that the partition has now, in pieces small enough for the loop's other work."""
        offset, end_offset = partition.log_start_offset, partition.high_watermark
        while offset < end_offset and not partition.is_gone:
            data = self._read_piece(partition, offset)
            if data is None:
                await asyncio.sleep(LOAD_RETRY_S)
                continue
            for batch in decode_batches(data):
                if batch.header.last_offset >= offset:
                    offset = batch.header.last_offset + 1
                    yield batch
            await asyncio.sleep(0)
            offset = max(offset, partition.log_start_offset)

    def _read_piece(self, partition: Partition, offset: int) -> bytes | None:
        region = partition.read(offset, LOAD_BYTES, True)
        if region is None:
            return None
        handle = region.handle
        try:
            return self._node.files.pread(handle.fd, region.size, region.position)
        except OSError as error:
            raise KafkaStorageError(f"{partition} can't be read at offset {offset}: {error}") from error
        finally:
            handle.unpin()


class _Wait:
    """One batch on its way to the disk."""

    __slots__ = ("_answered", "_bucket", "_node", "_settled", "has_answered")

    def __init__(self, node: Node, settled: Acknowledged, answered: Acknowledged) -> None:
        self._node = node
        self._settled = settled
        self._answered = answered
        self._bucket = -1
        self.has_answered = False

    def begin(self) -> None:
        at_s = self._node.clock.monotonic() + self._node.settings.offsets_commit_timeout_ms / 1000
        self._bucket = self._node.deadlines.add(self, at_s, self._timed_out)

    def ended(self, error: KafkaError | None) -> None:
        """The batch is acknowledged, or refused for good."""
        outcome = None if error is None else coordinator_error(error)
        self._settled(outcome)
        if not self.has_answered:
            self._node.deadlines.remove(self, self._bucket)
            self._answer(outcome)

    def _timed_out(self) -> None:
        self._answer(CoordinatorNotAvailable("the disk takes too long: what was to be stored may yet be"))

    def _answer(self, error: KafkaError | None) -> None:
        self.has_answered = True
        self._answered(error)


def _wait_for(partition: Partition, appended: Appended, ended: Acknowledged) -> None:
    if appended.acknowledged:
        ended(None)
    else:
        partition.when_acknowledged(appended.end_offset, ended)


def coordinator_error(error: KafkaError) -> KafkaError:
    """An append's error as clients of a coordinator know it."""
    if error.code in UNAVAILABLE:
        return CoordinatorNotAvailable(str(error))
    if error.code in MOVED:
        return NotCoordinator(str(error))
    return error
