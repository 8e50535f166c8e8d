"""One partition on the node that leads it: appends to the open segment, acknowledgements, reads over the chain.

All calls are made on the event loop's thread, and nothing here awaits but `seal`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, NamedTuple

from walrusmq.protocol.errors import (
    FencedLeaderEpoch,
    InvalidTimestamp,
    KafkaError,
    KafkaStorageError,
    MessageTooLarge,
    NotEnoughReplicasAfterAppend,
    NotLeaderOrFollower,
    OffsetOutOfRange,
    UnknownLeaderEpoch,
    UnknownTopicOrPartition,
)
from walrusmq.protocol.frames import FileRegion
from walrusmq.protocol.records.header import (
    LOG_APPEND_TIME,
    MAX_SEQUENCE,
    check_fields,
    place_batch,
    set_create_time,
    set_log_append_time,
)
from walrusmq.segments import lookups, sealing
from walrusmq.segments.acknowledgements import Acknowledged, Acknowledgements
from walrusmq.segments.aside import SLOW_WRITE_S
from walrusmq.segments.chain import Chain
from walrusmq.segments.checkpoint import TrustedPoint
from walrusmq.segments.commit import LogSync
from walrusmq.segments.facts import OpenSegment, SealedSegment, place_of
from walrusmq.segments.log_config import FOREVER, Durability, LogConfig, TimestampType
from walrusmq.segments.open_log import OpenLog
from walrusmq.segments.producers import ProducerBatch, Producers, Snapshot
from walrusmq.segments.reading import ReadEnds, read_open, read_sealed
from walrusmq.segments.recovery import Recovery
from walrusmq.segments.retention import expired
from walrusmq.segments.sealing import SegmentGone as SegmentGone
from walrusmq.segments.segment_producers import remove_segments
from walrusmq.segments.thresholds import MAX_ENTRIES, Thresholds

if TYPE_CHECKING:
    from walrusmq.segments.store import SegmentStore

logger = logging.getLogger("walrusmq.segments")

_new_tuple = tuple.__new__
"""Makes an `Appended` at half the price of its own constructor."""


class SegmentStopped(NotLeaderOrFollower):
    """The open segment takes no appends any more; nothing was written. The next one will, in a moment."""


class Appended(NamedTuple):
    """What an append did. A duplicate has the offsets of its original and is acknowledged when that one is."""

    base_offset: int
    end_offset: int
    log_append_time_ms: int
    """-1 where the producer's timestamps stand; for a duplicate the original's largest timestamp, as in Kafka."""
    acknowledged: bool
    """Whether it is as safe as the topic asks for already; else see `Partition.when_acknowledged`."""


class Partition:
    """Made by `SegmentStore.open_partition`."""

    __slots__ = (
        "_after_max_ms",
        "_aside",
        "_before_max_ms",
        "_config",
        "_flush_offset",
        "_max_message_bytes",
        "_never_syncs",
        "_stamps",
        "_syncs_each",
        "_watchers",
        "acknowledgements",
        "chain",
        "high_position",
        "high_watermark",
        "index",
        "is_gone",
        "is_open",
        "leader_epoch",
        "log",
        "log_start_offset",
        "next_producers",
        "on_full",
        "prepares",
        "producers",
        "read_ends",
        "recovery",
        "sealed",
        "store",
        "thresholds",
        "topic",
        "topic_id",
        "unloaded",
        "when_synced",
    )

    def __init__(
        self,
        store: SegmentStore,
        topic: str,
        topic_id: bytes,
        index: int,
        config: LogConfig,
        chain: Chain,
        log: OpenLog,
        producers: Producers,
        log_start_offset: int,
    ) -> None:
        self.store = store
        self._aside = store.aside
        self.topic = topic
        self.topic_id = topic_id
        self.index = index
        self.chain = chain
        self.log = log
        self.producers = producers
        self.log_start_offset = log_start_offset
        self.leader_epoch = log.facts.leader_epoch
        self.high_watermark = log.end_offset
        """Consumers see nothing at or above it."""
        self.high_position = log.position
        """Where the high watermark stands in the open log, if it is there."""
        self.is_open = True
        """Whether the open segment takes appends."""
        self.is_gone = False
        self.on_full: Callable[[Partition, str], object] | None = None
        """Called by each append that finds a threshold passed twice, with its name, until the segment is stopped; and
        with `recovery` when a sync has failed."""
        self.recovery: Recovery | None = None
        """What the start found and did; None for a partition that had no files."""
        self.unloaded: TrustedPoint | None = None
        """What a clean stop left of the open segment, until its first use loads what belongs to it."""
        self.sealed: SealedSegment | None = None
        """The facts of the open segment once `seal` has found them."""
        self.next_producers: Snapshot | None = None
        """Their state at the next segment's first offset, if `seal` couldn't write it."""
        self.acknowledgements = Acknowledgements()
        self.read_ends = ReadEnds()
        self.when_synced = self._synced
        self._flush_offset = log.end_offset
        self._watchers: dict[Callable[[], None], None] = {}
        self.config = config

    def __str__(self) -> str:
        return f"{self.topic}-{self.index}"

    @property
    def log_end_offset(self) -> int:
        """The offset that the next entry gets."""
        return self.log.end_offset

    @property
    def config(self) -> LogConfig:
        """The log's settings; assign to change them while the partition is in use."""
        return self._config

    @config.setter
    def config(self, config: LogConfig) -> None:
        self._config = config
        self.prepares = config.looks_inside or self in self.store.prepared
        """Whether a producer's batch may have to be prepared before it is appended, or wait for one that is."""
        self._max_message_bytes = config.max_message_bytes
        self._stamps = config.timestamp_type is TimestampType.LOG_APPEND_TIME
        self._before_max_ms = config.timestamp_before_max_ms
        self._after_max_ms = config.timestamp_after_max_ms
        self._never_syncs = (
            config.durability is Durability.NEVER and config.flush_messages == FOREVER == config.flush_ms
        )
        self._syncs_each = config.effective_durability is Durability.BATCH
        self.thresholds = Thresholds(config, self.log)

    # --- appending

    def append(self, batch: memoryview, now_ms: int) -> Appended:
        """Write one batch, as a producer sent it, at the end; its base offset and epoch are patched in place.

        Raises SegmentStopped while the segment is being sealed, KafkaStorageError when the disk refuses, and what
        `check_batch` and the topic's limits have against the batch. Whatever is raised, nothing was written.
        """
        if self._aside.is_active:
            self._aside.join(self)
        if not self.is_open:
            raise self._stopped()
        size = len(batch)
        if size > self._max_message_bytes:
            raise MessageTooLarge(f"a batch of {size} bytes for {self}, where {self._max_message_bytes} are allowed")
        fields = check_fields(batch)
        _, _, _, _, _, attributes, last_delta, base_timestamp, max_timestamp, producer_id, epoch, sequence, _ = fields
        append_time_ms = -1
        if self._stamps:
            append_time_ms = max_timestamp = now_ms
        elif max_timestamp > now_ms + self._after_max_ms or -1 != base_timestamp < now_ms - self._before_max_ms:
            raise InvalidTimestamp(f"{self} takes no timestamps {base_timestamp} to {max_timestamp} at {now_ms}")
        if self.unloaded is not None:
            self.load()
        log = self.log
        if producer_id >= 0:
            last_sequence = (sequence + last_delta) & MAX_SEQUENCE
            original = self.producers.check(producer_id, epoch, sequence, last_sequence, now_ms)
            if original is not None:
                end_offset = original.end_offset
                return Appended(
                    original.base_offset, end_offset, original.max_timestamp, end_offset <= self.high_watermark
                )
        if self._stamps:
            set_log_append_time(batch, now_ms)
        elif attributes & LOG_APPEND_TIME:
            set_create_time(batch)
        base_offset = log.end_offset
        place_batch(batch, base_offset, self.leader_epoch)
        started = perf_counter()
        try:
            log.write(batch, last_delta + 1, max_timestamp)
        except OSError as error:
            if producer_id >= 0:
                self.producers.await_again(producer_id, epoch, sequence)
            raise self._refused(error) from error
        seconds = perf_counter() - started
        if seconds > SLOW_WRITE_S:
            self._aside.note_slow_write(self, seconds)
        if self.store.write_problems:
            self.store.write_problems.pop(self, None)
        end_offset = log.end_offset
        if producer_id >= 0:
            produced = ProducerBatch(sequence, last_sequence, base_offset, end_offset, max_timestamp)
            self.producers.record(producer_id, epoch, produced, now_ms)
        if log.started_ms < 0:
            self._first_written(now_ms)
        thresholds = self.thresholds
        if end_offset >= thresholds.offset or log.position >= thresholds.position or now_ms >= thresholds.ms:
            self._passed_threshold(now_ms)
        if self._syncs_each:
            self.store.commit.request(log, self.when_synced)
            return _new_tuple(Appended, (base_offset, end_offset, append_time_ms, False))
        self.high_watermark = end_offset
        self.high_position = log.position
        if self._watchers:
            self._notify()
        is_acknowledged = True if self._never_syncs else self._sync_later(end_offset)
        return _new_tuple(Appended, (base_offset, end_offset, append_time_ms, is_acknowledged))

    def when_acknowledged(self, end_offset: int, callback: Acknowledged) -> None:
        """Call `callback` once all up to `end_offset` is on disk, in the order of these calls, on the loop.

        It gets None, or the error that says why that will never be certain: NotEnoughReplicasAfterAppend after a failed
        sync, UnknownTopicOrPartition when the partition was removed.
        """
        if self.is_gone:
            callback(self._gone())
        elif end_offset <= self.log.synced_offset:
            callback(None)
        elif self.log.is_rewound:
            callback(self._uncertain())
        else:
            self.acknowledgements.add(end_offset, callback)

    def rollover_due(self, now_ms: int) -> str | None:
        """`entries`, `bytes` or `age`: the threshold that the open segment has reached, if it has."""
        return self.thresholds.due(self.log, now_ms)

    # --- reading

    def read(self, offset: int, max_bytes: int, minimum_one: bool) -> FileRegion | None:
        """Whole batches below the high watermark, from the one that holds `offset`, up to `max_bytes`; its file pinned.

        None where there is nothing yet, or where the first batch is larger than `max_bytes` and `minimum_one` is False.
        Whoever gets a region unpins its handle in the end. Raises OffsetOutOfRange, KafkaStorageError.
        """
        if not self.log_start_offset <= offset < self.high_watermark:
            if self.log_start_offset <= offset <= self.log.end_offset:
                return None
            held = f"{self.log_start_offset} to {self.log.end_offset}"
            raise OffsetOutOfRange(f"offset {offset} of {self}, which has {held}")
        try:
            if offset < self.log.facts.first_offset:
                return read_sealed(self, offset, max_bytes, minimum_one)
            return read_open(self, offset, max_bytes, minimum_one)
        except OSError as error:
            raise KafkaStorageError(f"{self} can't be read at offset {offset}: {error}") from error

    def watch(self, callback: Callable[[], None]) -> None:
        """Call `callback` each time the high watermark moves, and when the partition goes away."""
        self._watchers[callback] = None

    def unwatch(self, callback: Callable[[], None]) -> None:
        self._watchers.pop(callback, None)

    def offset_for_timestamp(self, timestamp: int) -> tuple[int, int] | None:
        """(timestamp, offset) of the first record that consumers see with that time (ms) or a later one."""
        return lookups.offset_for_timestamp(self, timestamp)

    def max_timestamp(self) -> tuple[int, int] | None:
        """(timestamp, offset) of the first record with the largest timestamp of all (KIP-734); None: there is none."""
        return lookups.max_timestamp(self)

    def check_leader_epoch(self, current_leader_epoch: int) -> None:
        """Hold the epoch that a client believes in to the partition's (KIP-320); -1: it doesn't say.

        Raises FencedLeaderEpoch for an older one, UnknownLeaderEpoch for a newer one.
        """
        if 0 <= current_leader_epoch != self.leader_epoch:
            text = f"epoch {current_leader_epoch} for {self}, whose leader epoch is {self.leader_epoch}"
            raise FencedLeaderEpoch(text) if current_leader_epoch < self.leader_epoch else UnknownLeaderEpoch(text)

    def end_offset_for_epoch(self, epoch: int) -> tuple[int, int] | None:
        """(largest epoch up to `epoch` that there was, the offset where it ended), for OffsetForLeaderEpoch.

        An epoch below all known ones ends where they begin. None for one that isn't known yet, and for a negative one.
        """
        if not 0 <= epoch <= self.leader_epoch:
            return None
        if epoch == self.leader_epoch:
            return epoch, self.log.end_offset
        place = self.chain.at_epoch(epoch)
        following = self.chain.sealed[place] if place < len(self.chain) else self.log.facts
        existed = self.chain.sealed[place - 1].leader_epoch if place else epoch
        return existed, max(following.first_offset, self.log_start_offset)

    # --- retention

    def expired_before(self, now_ms: int, retention_ms: int, retention_bytes: int) -> int | None:
        """Where retention lets the log begin from now on; None where everything is to stay. See `retention.expired`."""
        return expired(
            self.chain.sealed, now_ms, retention_ms, retention_bytes, self.log.position, self.log_start_offset
        )

    def move_log_start(self, offset: int) -> list[SealedSegment]:
        """Let the log begin at `offset`: sealed segments that end there or before are removed; returns their facts.

        Nothing happens for an offset below the present start. Their files go in the background.
        """
        if offset < self.log_start_offset:
            return []
        self.log_start_offset = offset
        dropped = self.chain.drop_below(offset)
        if dropped:
            work = partial(remove_segments, self.store.files, self.log, dropped)
            self.store.background.start(f"removing segments of {self}", work)
        return dropped

    def compacted(self, segment_id: int, facts: SealedSegment | None) -> None:
        """A new generation of a sealed segment was recorded, or None: nothing is left of it. Reads go by that now."""
        place = place_of(self.chain.sealed, segment_id)
        if place is None:
            return
        old = self.chain.sealed[place]
        if facts is None:
            self.chain.remove(place)
            work = partial(remove_segments, self.store.files, self.log, [old])
        else:
            self.chain.replace(place, facts)
            work = partial(self.log.folder.remove_log, old.id, old.generation)
        self.store.background.start(f"removing generation {old.generation} of {self}:{old.id}", work)

    # --- the open segment's end

    def stop(self) -> None:
        """The open segment never takes an append again."""
        self.is_open = False

    async def seal(self) -> SealedSegment:
        """After `stop`: the exact facts of the open segment, once all of it is synced (unless `fsync` is `never`).

        When a sync has failed, it ends at its last synced end. Raises SegmentGone.
        """
        assert not self.is_open, "a segment is stopped before it is sealed"
        if self.sealed is None:
            await self._aside.settle(self)
            self.sealed = await sealing.seal(self)
        return self.sealed

    def open_next(self, segment: OpenSegment, sealed: SealedSegment) -> None:
        """The rollover was recorded: `segment` takes the appends from now on."""
        log = self.log
        assert (sealed.id, sealed.end_offset, sealed.size_bytes) == (log.facts.id, log.end_offset, log.position)
        assert segment.first_offset == sealed.end_offset
        self.store.seal_log(self, sealed)
        self.log = self.store.make_log(log.folder, segment)
        self.log.unwritten_producers = self.next_producers
        self.high_position = 0
        self.read_ends = ReadEnds()
        self._flush_offset = segment.first_offset
        self.leader_epoch = segment.leader_epoch
        self.thresholds = Thresholds(self._config, self.log)
        self.sealed = None
        self.is_open = True

    def load(self) -> None:
        """Load what a clean stop left of the open segment. Raises KafkaStorageError."""
        if self.unloaded is not None:
            try:
                self.store.load(self, self.unloaded)
            except OSError as error:
                raise KafkaStorageError(f"the files of {self} can't be read: {error}") from error
            self.unloaded = None

    def leave(self) -> None:
        """The partition was removed or its store stops: whoever waits or watches is told."""
        self.is_open = False
        self.is_gone = True
        self.store.commit.forget(self.log)
        self.store.write_problems.pop(self, None)
        self.chain.close()
        self.log.file.close()
        self.acknowledgements.fail(self._gone())
        self._notify()

    # --- inside

    def _stopped(self) -> KafkaError:
        return self._gone() if self.is_gone else SegmentStopped(f"the open segment of {self} is being sealed")

    def _gone(self) -> KafkaError:
        return UnknownTopicOrPartition(f"{self} is gone")

    def _uncertain(self) -> KafkaError:
        return NotEnoughReplicasAfterAppend(f"a sync of {self} failed: what was appended may be lost")

    def _refused(self, error: OSError) -> KafkaStorageError:
        self.store.write_refused(self, error)
        return KafkaStorageError(f"{self} couldn't be written, and nothing of the batch was: {error}")

    def _first_written(self, now_ms: int) -> None:
        self.log.started_ms = now_ms
        self.thresholds.started(self.log)

    def _passed_threshold(self, now_ms: int) -> None:
        if self.thresholds.is_checkpoint_due(self.log):
            self.thresholds.checkpointed(self.log.position)
            sealing.begin_checkpoint(self, now_ms)
        reason = self.thresholds.passed_twice(self.log, now_ms)
        if reason is None:
            return
        if self.log.end_offset - self.log.facts.first_offset >= MAX_ENTRIES:
            self.stop()
        if self.on_full is not None:
            self.on_full(self, reason)

    def _sync_later(self, end_offset: int) -> bool:
        """A batch was written whose sync isn't waited for but where `flush.messages` says so; is it acknowledged?"""
        config = self._config
        log = self.log
        if end_offset - self._flush_offset >= config.flush_messages:
            self._flush_offset = end_offset
            self.store.commit.request(log, self.when_synced)
            return False
        if config.durability is Durability.INTERVAL:
            self.store.commit.request_later(log, self.when_synced)
        if config.flush_ms != FOREVER:
            self.store.commit.request_within(log, self.when_synced, config.flush_ms)
        return True

    def _synced(self, sync: LogSync) -> None:
        """On the loop: the commit thread is done with a sync of one of our logs."""
        log = self.log
        if sync.log is not log or self.is_gone:
            return
        if sync.error is not None:
            self._sync_failed(sync.error)
            return
        log.synced_to(sync.end_offset, sync.position, sync.max_timestamp)
        self._flush_offset = max(self._flush_offset, sync.end_offset)
        has_moved = sync.end_offset > self.high_watermark
        if has_moved:
            self.high_watermark = sync.end_offset
            self.high_position = sync.position
        self.acknowledgements.release(sync.end_offset)
        if has_moved and self._watchers:
            self._notify()

    def _sync_failed(self, error: OSError) -> None:
        """The kernel may have dropped the pages: nothing behind the last synced end will ever be certain."""
        log = self.log
        if log.is_rewound:
            return
        logger.error(
            "%s: a sync failed (%s): the open segment ends at its last synced offset, %d, instead of %d",
            self,
            error,
            log.synced_offset,
            log.end_offset,
        )
        self.producers.await_lost(log.synced_offset)
        log.rewind()
        self.stop()
        if self.high_watermark > log.end_offset:
            self.high_watermark = log.end_offset
            self.high_position = log.position
        self.acknowledgements.fail(self._uncertain())
        if self.on_full is not None:
            self.on_full(self, "recovery")

    def _notify(self) -> None:
        for callback in tuple(self._watchers):
            callback()
