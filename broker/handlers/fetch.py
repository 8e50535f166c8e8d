"""Fetch: hand out batches below the high watermark, or wait until there are enough of them."""

from __future__ import annotations

import asyncio
from typing import Any

from walrusmq.broker.answers import release as release_parts
from walrusmq.broker.context import Context
from walrusmq.broker.deferred import Deferred
from walrusmq.broker.dispatcher import FETCH_KEY, handles
from walrusmq.broker.fetch_sessions import (
    FINAL_EPOCH,
    INITIAL_EPOCH,
    NO_SESSION,
    Session,
    TopicKey,
    WantedPartition,
)
from walrusmq.protocol.errors import ErrorCode, KafkaError, OffsetOutOfRange
from walrusmq.protocol.messages.fetch import (
    EpochEndOffset,
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    LeaderIdAndEpoch,
    PartitionData,
)
from walrusmq.segments.partition import Partition

#: The first version that names topics by id (KIP-516).
FIRST_VERSION_WITH_IDS = 13
#: The first version that tells where the leader is (KIP-951).
FIRST_VERSION_WITH_LEADERS = 16
READ_COMMITTED = 1
#: A waiting fetch is answered after this at the latest, whatever a client asks for.
MAX_WAIT_MS = 300_000


class Fetch:
    """One fetch on its way: evaluated at once, and again when a high watermark moves or its time is up."""

    __slots__ = (
        "_context",
        "_deferred",
        "_is_committed_only",
        "_is_replica",
        "_max_bytes",
        "_min_bytes",
        "_session",
        "_session_is_new",
        "_timer",
        "_wanted",
        "_watched",
    )

    def __init__(
        self,
        request: FetchRequest,
        context: Context,
        wanted: list[WantedPartition],
        session: Session | None,
        session_is_new: bool,
    ) -> None:
        self._context = context
        self._wanted = wanted
        self._session = session
        self._session_is_new = session_is_new
        self._min_bytes = request.min_bytes
        self._max_bytes = min(request.max_bytes, context.node.settings.fetch_max_bytes)
        self._is_committed_only = request.isolation_level == READ_COMMITTED
        self._is_replica = request.replica_id >= 0 or request.replica_state.replica_id >= 0
        self._deferred: Deferred | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._watched: list[Partition] = []

    def begin(self, max_wait_ms: int) -> FetchResponse | Deferred:
        """The response if there is enough to answer, else a Deferred of it."""
        found, is_enough = self._read()
        if is_enough or max_wait_ms <= 0 or self._min_bytes <= 0 or not self._wanted or self._context.node.is_stopping:
            return self._respond(found)
        release(found)
        self._deferred = Deferred()
        self._watch()
        self._timer = asyncio.get_running_loop().call_later(min(max_wait_ms, MAX_WAIT_MS) / 1000, self.end)
        self._context.node.waiting_fetches.add(self)
        self._context.connection.when_lost = self._stop_waiting
        return self._deferred

    def end(self) -> None:
        """Answer with what there is."""
        found, _ = self._read()
        self._finish(found)

    def _woken(self) -> None:
        found, is_enough = self._read()
        if is_enough:
            self._finish(found)
        else:
            release(found)

    def _finish(self, found: list[tuple[WantedPartition, PartitionData]]) -> None:
        assert self._deferred is not None
        self._stop_waiting()
        self._deferred.resolve(self._respond(found))

    def _stop_waiting(self) -> None:
        """Leave nothing behind: there is an answer, or the client has left."""
        self._unwatch()
        if self._timer is not None:
            self._timer.cancel()
        self._context.node.waiting_fetches.discard(self)
        self._context.connection.when_lost = None

    def _watch(self) -> None:
        for wanted in self._wanted:
            partition = self._partition(wanted)
            if partition is not None:
                partition.watch(self._woken)
                self._watched.append(partition)

    def _unwatch(self) -> None:
        for partition in self._watched:
            partition.unwatch(self._woken)
        self._watched.clear()

    def _partition(self, wanted: WantedPartition) -> Partition | None:
        node = self._context.node
        table: Any = (
            node.partitions_by_id if self._context.api_version >= FIRST_VERSION_WITH_IDS else node.partitions_by_name
        )
        partitions = table.get(wanted.topic)
        return None if partitions is None else partitions.get(wanted.index)

    def _read(self) -> tuple[list[tuple[WantedPartition, PartitionData]], bool]:
        """Read every wanted partition; says too whether that is enough to answer at once.

        Those of a session that have nothing new are left out: a consumer may have thousands of them.
        """
        found: list[tuple[WantedPartition, PartitionData]] = []
        left = self._max_bytes
        total = 0
        is_enough = False
        may_skip = self._session is not None and not self._session_is_new and not self._is_replica
        for wanted in self._wanted:
            partition = self._partition(wanted)
            if may_skip and partition is not None and has_nothing_new(partition, wanted):
                continue
            data = PartitionData(
                partition_index=wanted.index, high_watermark=-1, records=b"", aborted_transactions=None
            )
            if partition is None:
                data.error_code = int(self._unknown(wanted))
                data.aborted_transactions = []
            elif self._is_replica:
                data.error_code = int(ErrorCode.NOT_LEADER_OR_FOLLOWER)
                if self._context.api_version >= FIRST_VERSION_WITH_LEADERS:
                    data.current_leader = LeaderIdAndEpoch(
                        leader_id=self._context.node.node_id, leader_epoch=partition.leader_epoch
                    )
            else:
                try:
                    is_enough |= self._read_partition(partition, wanted, data, left, minimum_one=not total)
                except KafkaError as error:
                    data.error_code = int(error.code)
            if data.error_code or data.diverging_epoch.epoch >= 0:
                is_enough = True
            size = len(data.records)
            total += size
            left -= size
            found.append((wanted, data))
        return found, is_enough or total >= self._min_bytes

    def _read_partition(
        self, partition: Partition, wanted: WantedPartition, data: PartitionData, left: int, *, minimum_one: bool
    ) -> bool:
        """Read one partition into ``data``; says whether there is more of it than fitted: then nothing is waited for.

        In Kafka a limit counts as reached too although whole batches rarely fill it, and so does a segment's end.
        """
        partition.check_leader_epoch(wanted.current_leader_epoch)
        if wanted.last_fetched_epoch >= 0 and self._diverges(partition, wanted, data):
            return False
        has_more = not minimum_one and wanted.fetch_offset < partition.high_watermark
        if left > 0 or minimum_one:
            region = partition.read(wanted.fetch_offset, min(wanted.max_bytes, left), minimum_one)
            if region is not None:
                data.records = region
                is_sealed = wanted.fetch_offset < partition.log.facts.first_offset
                has_more = is_sealed or region.position + region.size < partition.high_position
        data.high_watermark = data.last_stable_offset = partition.high_watermark
        data.log_start_offset = partition.log_start_offset
        if self._is_committed_only:
            data.aborted_transactions = []
        return has_more

    @staticmethod
    def _diverges(partition: Partition, wanted: WantedPartition, data: PartitionData) -> bool:
        """Whether the client followed a log that ends earlier here (KIP-595)."""
        end = partition.end_offset_for_epoch(wanted.last_fetched_epoch)
        if end is None:
            raise OffsetOutOfRange(f"no segment has the epoch {wanted.last_fetched_epoch}")
        epoch, end_offset = end
        if epoch >= wanted.last_fetched_epoch and end_offset >= wanted.fetch_offset:
            return False
        data.diverging_epoch = EpochEndOffset(epoch=epoch, end_offset=end_offset)
        data.high_watermark = data.last_stable_offset = partition.high_watermark
        data.log_start_offset = partition.log_start_offset
        return True

    def _unknown(self, wanted: WantedPartition) -> ErrorCode:
        if isinstance(wanted.topic, bytes) and wanted.topic not in self._context.node.partitions_by_id:
            return ErrorCode.UNKNOWN_TOPIC_ID
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    def _respond(self, found: list[tuple[WantedPartition, PartitionData]]) -> FetchResponse:
        session = self._session
        response = FetchResponse(session_id=session.id if session is not None else NO_SESSION)
        topics: dict[TopicKey, FetchableTopicResponse] = {}
        for wanted, data in found:
            if data.error_code:
                self._context.node.metrics.count_error(FETCH_KEY, data.error_code)
            if session is not None and not self._must_tell(session, wanted, data):
                continue
            topic = topics.get(wanted.topic)
            if topic is None:
                topic = topics[wanted.topic] = (
                    FetchableTopicResponse(topic_id=wanted.topic)
                    if isinstance(wanted.topic, bytes)
                    else FetchableTopicResponse(topic=wanted.topic)
                )
                response.responses.append(topic)
            topic.partitions.append(data)
        return response

    def _must_tell(self, session: Session, wanted: WantedPartition, data: PartitionData) -> bool:
        """Whether an incremental answer must name this partition; remembers what it is told."""
        is_news = (
            self._session_is_new
            or data.error_code != 0
            or bool(data.records)
            or data.diverging_epoch.epoch >= 0
            or data.high_watermark != wanted.told_high_watermark
            or data.log_start_offset != wanted.told_log_start_offset
        )
        if is_news:
            wanted.told_high_watermark = -1 if data.error_code else data.high_watermark
            wanted.told_log_start_offset = data.log_start_offset
            if data.records and not self._session_is_new:
                key = (wanted.topic, wanted.index)
                if key in session.partitions:
                    session.partitions.move_to_end(key)
        return is_news


def has_nothing_new(partition: Partition, wanted: WantedPartition) -> bool:
    """Whether a session's client stands at the partition's end and knows all else that could be told of it."""
    return (
        wanted.fetch_offset == partition.high_watermark == wanted.told_high_watermark
        and partition.log_start_offset == wanted.told_log_start_offset
        and wanted.current_leader_epoch in (-1, partition.leader_epoch)
        and wanted.last_fetched_epoch in (-1, partition.leader_epoch)
    )


def release(found: list[tuple[WantedPartition, PartitionData]]) -> None:
    """Let go of the file regions of an answer that won't be sent."""
    release_parts(data.records for _, data in found)


@handles(FetchRequest)
def fetch(request: FetchRequest, context: Context) -> FetchResponse | Deferred:
    """Answer a full fetch, or one within a session (KIP-227); regions of files go out uncopied."""
    uses_topic_ids = context.api_version >= FIRST_VERSION_WITH_IDS
    sessions = context.node.fetch_sessions
    now_s = context.node.clock.monotonic()
    named = wanted_partitions(request, uses_topic_ids)
    if request.session_epoch in (FINAL_EPOCH, INITIAL_EPOCH):
        if request.session_id != NO_SESSION:
            sessions.close(request.session_id)
        session = None
        if request.session_epoch == INITIAL_EPOCH:
            session = sessions.create(named, uses_topic_ids, now_s)
        return Fetch(request, context, named, session, True).begin(request.max_wait_ms)
    forgotten: list[tuple[TopicKey, int]] = [
        (topic.topic_id if uses_topic_ids else topic.topic, index)
        for topic in request.forgotten_topics_data
        for index in topic.partitions
    ]
    try:
        session = sessions.advance(request.session_id, request.session_epoch, named, forgotten, uses_topic_ids, now_s)
    except KafkaError as error:
        context.node.metrics.count_error(FETCH_KEY, int(error.code))
        return FetchResponse(error_code=int(error.code))
    wanted = list(session.partitions.values()) if session is not None else []
    return Fetch(request, context, wanted, session, False).begin(request.max_wait_ms)


def wanted_partitions(request: FetchRequest, uses_topic_ids: bool) -> list[WantedPartition]:
    """The partitions that a request names, in its order; of one that it names again, as in Kafka, the last wish counts.

    So a fetch costs no more than there are partitions, each time that it is looked at.
    """
    wanted = {
        (topic.topic_id if uses_topic_ids else topic.topic, partition.partition): partition
        for topic in request.topics
        for partition in topic.partitions
    }
    return [
        WantedPartition(
            topic,
            index,
            partition.fetch_offset,
            partition.partition_max_bytes,
            partition.current_leader_epoch,
            partition.last_fetched_epoch,
        )
        for (topic, index), partition in wanted.items()
    ]
