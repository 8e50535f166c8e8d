"""All partitions of one data folder, with what they share: open files, the commit thread, the thread for files.

Data is never shared between partitions, so that a bad file of one is no matter for another.
"""

from __future__ import annotations

import errno
import logging
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Protocol

from walrusmq.segments.aside import AsideAppends
from walrusmq.segments.background import Background
from walrusmq.segments.chain import Chain
from walrusmq.segments.checkpoint import Points, TrustedPoint, take_marker
from walrusmq.segments.closing import close_partitions
from walrusmq.segments.commit import CommitThread
from walrusmq.segments.facts import OpenSegment, SealedSegment
from walrusmq.segments.files import Files
from walrusmq.segments.handles import HandlePool, LogFile
from walrusmq.segments.index_cache import IndexCache
from walrusmq.segments.log_config import Durability, LogConfig
from walrusmq.segments.open_log import OpenLog
from walrusmq.segments.partition import Partition
from walrusmq.segments.partition_folder import CHECKPOINT, LOG, PartitionFolder, folder_name, parse_folder_name
from walrusmq.segments.prepared_appends import PreparedAppends
from walrusmq.segments.producers import DEFAULT_EXPIRATION_MS, Producers
from walrusmq.segments.recovery import LogRecovery, Recovery
from walrusmq.segments.sealed_log import SealedLog
from walrusmq.segments.store_counters import StoreCounters

logger = logging.getLogger("walrusmq.segments")

DEFAULT_OPEN_FILES = 512
"""Half of the 1,024 that a process may usually open, where nobody says more."""
ENOUGH_FREE_BYTES = 4 << 20
"""Room on the disk at which a partition that was refused for lack of it counts as writable again."""
TOPICS_FOLDER = "topics"

PartitionKey = tuple[bytes, int]
"""Topic id and partition."""


class Clock(Protocol):
    """What a store needs of the node's clock."""

    def now_ms(self) -> int: ...


class SegmentStore:
    """Called on the event loop's thread. `folder` is the node's data folder, which it has to itself."""

    def __init__(
        self,
        folder: str,
        files: Files,
        clock: Clock,
        *,
        max_open_files: int | None = None,
        fsync_interval_ms: int = 1000,
        producer_id_expiration_ms: int = DEFAULT_EXPIRATION_MS,
    ) -> None:
        self.folder = folder
        self.files = files
        self.clock = clock
        self.counters = StoreCounters()
        self.handles = HandlePool(files, max_open_files or DEFAULT_OPEN_FILES)
        self.commit = CommitThread(files, fsync_interval_ms, self.counters)
        self.background = Background()
        self.aside = AsideAppends(files, self.counters, clock.now_ms)
        self.prepared = PreparedAppends(clock.now_ms)
        self.index_cache = IndexCache()
        self.write_problems: dict[Partition, OSError] = {}
        """Partitions whose last append the disk refused."""
        self._topics_folder = f"{folder}/{TOPICS_FOLDER}"
        self._producer_id_expiration_ms = producer_id_expiration_ms
        self._partitions: dict[PartitionKey, Partition] = {}
        self._found: set[str] = set()
        self._clean_points: Points = {}

    def start(self) -> None:
        """See what is in the data folder, and take the clean marker away. Raises OSError."""
        self.files.mkdir(self._topics_folder)
        self.files.sync_folder(self.folder)
        self._clean_points = take_marker(self.files, self.folder)
        self._found = set(self.files.listdir(self._topics_folder))
        if self._found:
            self.files.sync_folder(self._topics_folder)

    @property
    def has_folders(self) -> bool:
        """Whether the start found partitions in the data folder."""
        return bool(self._found)

    async def stop(self) -> None:
        """Sync all, leave the exact ends for the next start, and let go of every file and thread."""
        await self.prepared.stop()
        await self.aside.stop()
        await close_partitions(self)

    def __iter__(self) -> Iterator[Partition]:
        return iter(self._partitions.values())

    def __len__(self) -> int:
        return len(self._partitions)

    def get(self, topic_id: bytes, index: int) -> Partition | None:
        return self._partitions.get((topic_id, index))

    def open_partition(
        self,
        topic: str,
        topic_id: bytes,
        index: int,
        config: LogConfig,
        sealed: Sequence[SealedSegment],
        open_segment: OpenSegment,
        log_start_offset: int,
    ) -> Partition:
        """Open a partition as the cluster image knows it, and recover what the last stop left. Raises OSError."""
        key = (topic_id, index)
        assert key not in self._partitions, "a partition is opened once"
        folder = PartitionFolder(self.files, self._topics_folder, topic, topic_id, index)
        folder.is_made = folder.is_durable = folder_name(topic_id, index) in self._found
        log = self.make_log(folder, open_segment)
        producers = Producers(self._producer_id_expiration_ms)
        point = self._clean_points.pop(key, None)
        recovery = None
        if point is not None and log.ends_at(point):
            log.resume(point)
            recovery = Recovery(was_clean=True)
        elif folder.is_made:
            point = None
            recovery = self._recover(log, producers, sealed, config)
        log.skip_to(log_start_offset)
        is_suspect = recovery is not None and not recovery.was_clean and config.effective_durability is Durability.NEVER
        chain = Chain(sealed, partial(self._make_sealed_log, folder, is_suspect=is_suspect))
        partition = Partition(self, topic, topic_id, index, config, chain, log, producers, log_start_offset)
        partition.recovery = recovery
        partition.unloaded = point
        self._partitions[key] = partition
        return partition

    def remove(self, topic_id: bytes, index: int) -> None:
        """The topic was deleted: the partition is gone at once, its files go in the background."""
        partition = self._partitions.pop((topic_id, index), None)
        if partition is None:
            return
        partition.leave()
        folder = partition.log.folder
        if folder.is_made:
            self.background.start(f"removing {folder.path}", partial(self.files.remove_tree, folder.path))

    def remove_strays(self, known: set[PartitionKey]) -> None:
        """Remove folders of partitions that the cluster image doesn't know, in the background."""
        for name in self._found:
            key = parse_folder_name(name)
            if key is not None and key not in known:
                path = f"{self._topics_folder}/{name}"
                logger.info("removing %s: its topic was deleted", path)
                self.background.start(f"removing {path}", partial(self.files.remove_tree, path))

    def forget_producers_after(self, expiration_ms: int) -> None:
        """Remember the sequence numbers of idle producers for so long from now on."""
        self._producer_id_expiration_ms = expiration_ms
        for partition in self._partitions.values():
            partition.producers.expiration_ms = expiration_ms

    # --- what others may ask

    @property
    def fsyncs(self) -> int:
        """Syncs of log files so far."""
        return self.counters.syncs

    @property
    def fsync_seconds(self) -> float:
        """Time spent in them."""
        return self.counters.sync_seconds

    def write_failures(self) -> list[str]:
        """Which partitions can't be written and why, a line each; none while all is well, or well again."""
        problems = self.write_problems
        full = [partition for partition, error in problems.items() if error.errno == errno.ENOSPC]
        if full and self.files.free_bytes(self.folder) >= ENOUGH_FREE_BYTES:
            for partition in full:
                del problems[partition]
        return [f"{partition} can't be written: {error}" for partition, error in problems.items()]

    # --- for partitions

    def make_log(self, folder: PartitionFolder, segment: OpenSegment) -> OpenLog:
        """The log of an open segment, empty; no file is touched."""
        return OpenLog(segment, folder, LogFile(self.handles, folder.file(segment.id, LOG)), self.files)

    def seal_log(self, partition: Partition, sealed: SealedSegment) -> None:
        """The partition's open log goes into its chain with the facts that were recorded of it."""
        log = partition.log
        sealed_log = self._make_sealed_log(log.folder, sealed, is_suspect=False)
        sealed_log.adopt(log)
        partition.chain.add(sealed_log)
        if log.checkpoint_position:
            path = log.folder.file(sealed.id, CHECKPOINT)
            self.background.start(f"removing {path}", partial(log.folder.remove_file, sealed.id, CHECKPOINT))

    def load(self, partition: Partition, point: TrustedPoint) -> None:
        """Load the indexes and producers of a log that ends at `point`. Raises OSError."""
        log = partition.log
        recovery = LogRecovery(self.files, log, partition.producers, partition.chain.sealed, self.clock.now_ms())
        recovery.trust(point)
        if recovery.recovery.rebuilt:
            logger.warning("%s: made again from the log: %s", log.file.path, ", ".join(recovery.recovery.rebuilt))

    def write_refused(self, partition: Partition, error: OSError) -> None:
        """Note that the disk refused an append; the log says so once until one succeeds."""
        self.counters.failed_writes += 1
        if partition not in self.write_problems:
            logger.error("%s can't be written, producers are told so until it can: %s", partition, error)
        self.write_problems[partition] = error

    # --- inside

    def _make_sealed_log(self, folder: PartitionFolder, facts: SealedSegment, *, is_suspect: bool) -> SealedLog:
        file = LogFile(self.handles, folder.file(facts.id, LOG, facts.generation))
        return SealedLog(facts, file, folder, self.files, self.index_cache, self.background, is_suspect=is_suspect)

    def _recover(
        self, log: OpenLog, producers: Producers, sealed: Sequence[SealedSegment], config: LogConfig
    ) -> Recovery:
        now_ms = self.clock.now_ms()
        scan = LogRecovery(self.files, log, producers, sealed, now_ms)
        scan.scan()
        log.folder.remove_leftovers({facts.id: facts.generation for facts in sealed}, log.facts.id)
        recovery = scan.recovery
        recovery.needs_rollover = log.position > 0 and config.effective_durability is not Durability.BATCH
        if recovery.scanned_bytes or recovery.rebuilt:
            logger.log(
                logging.WARNING if recovery.cut_bytes or recovery.rebuilt else logging.INFO,
                "%s (%s) recovered after an unclean stop: ends at offset %d; %s",
                log.file.path,
                log.folder.topic,
                log.end_offset,
                recovery,
            )
        return recovery
