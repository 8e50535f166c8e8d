"""Making an open segment's log ready again at a start: from its last trusted point on, it is what the scan finds.

After a clean stop the trusted point is the exact end, and nothing is scanned. After any other, the log is read from the
last checkpoint on, cut at the first batch that is torn or wrong, and synced before anybody sees it.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

from walrusmq.protocol.records.scan import DamagedLog, Read, scan_headers, scan_verified
from walrusmq.segments.checkpoint import TrustedPoint, read_checkpoint
from walrusmq.segments.facts import NO_TIMESTAMP, SealedSegment
from walrusmq.segments.files import Files
from walrusmq.segments.index_files import IndexFiles
from walrusmq.segments.indexes import SegmentIndexes
from walrusmq.segments.open_log import OpenLog
from walrusmq.segments.partition_folder import UNSYNCED
from walrusmq.segments.producers import Producers, decode_snapshot
from walrusmq.segments.segment_producers import load_producers
from walrusmq.segments.small_files import write_exactly

logger = logging.getLogger("walrusmq.segments")

COPY_BYTES = 1 << 20
"""What is held in memory of a log that is written again."""


@dataclass(slots=True)
class Recovery:
    """What a start found in a partition's open segment, and did about it."""

    was_clean: bool
    """Whether the last stop left the segment's exact end."""
    needs_rollover: bool = False
    """Whether entries that were acknowledged may be missing: consumers must be able to tell, by a new epoch."""
    scanned_bytes: int = 0
    cut_bytes: int = 0
    cut_reason: str = ""
    rebuilt: list[str] = field(default_factory=list)
    """Files that were missing or wrong and have been made again from the log."""

    def __str__(self) -> str:
        parts = [f"{self.scanned_bytes} bytes scanned"]
        if self.cut_bytes:
            parts.append(f"{self.cut_bytes} cut at the end ({self.cut_reason})")
        if self.rebuilt:
            parts.append(f"made again: {', '.join(self.rebuilt)}")
        return ", ".join(parts)


class LogRecovery:
    """Recovers one open log with its producers. `sealed` is the chain before it."""

    def __init__(
        self,
        files: Files,
        log: OpenLog,
        producers: Producers,
        sealed: Sequence[SealedSegment],
        now_ms: int,
    ) -> None:
        self._files = files
        self._folder = log.folder
        self._log = log
        self._producers = producers
        self._sealed = sealed
        self._now_ms = now_ms
        self._path = log.file.path
        self.recovery = Recovery(was_clean=False)

    def trust(self, point: TrustedPoint) -> None:
        """Load what belongs to a log that ends at `point`: its indexes and producers. Raises OSError."""
        if not point.position:
            self._producers.restore(decode_snapshot(point.producers))
            return
        fd = self._files.open(self._path)
        try:
            self._begin_at(point, partial(self._files.pread, fd))
        finally:
            self._files.close(fd)

    def scan(self, limit: int | None = None) -> None:
        """Find out where the log ends, cut what is torn, and sync it.

        With `limit`, a sync has failed behind that position: only what stands before it is looked at, nothing changed.
        Raises OSError.
        """
        size = self._files.size_of(self._path)
        if size is None:
            self._load_producers()
            self._files.sync_folder(self._folder.path)
            return
        end = size if limit is None else min(size, limit)
        fd = self._files.open(self._path)
        try:
            read = partial(self._files.pread, fd)
            point = self._checkpoint(end)
            if point is None:
                self._load_producers()
            else:
                self._begin_at(point, read)
            begin = self._log.position
            self._scan_from_here(read, end)
            if limit is None:
                if self._log.position < size:
                    self._files.ftruncate(fd, self._log.position)
                self._make_durable(fd, begin)
        finally:
            self._files.close(fd)
        log = self._log
        log.synced_to(log.end_offset, log.position, log.indexes.max_timestamp)

    def _make_durable(self, fd: int, begin: int) -> None:
        """Sync what was found from `begin` on. Where a sync has failed before, it is written again first.

        The system takes pages that a failed sync has dropped for written: the next sync would say so, and do nothing.
        """
        segment_id = self._log.facts.id
        has_failed = self._files.exists(self._folder.file(segment_id, UNSYNCED))
        if has_failed:
            for position in range(begin, self._log.position, COPY_BYTES):
                piece = self._files.pread(fd, min(COPY_BYTES, self._log.position - position), position)
                write_exactly(self._files, fd, piece, position)
            self.recovery.rebuilt.append("what a failed sync may have lost")
        self._files.fdatasync(fd)
        self._files.sync_folder(self._folder.path)
        if has_failed:
            self._folder.remove_file(segment_id, UNSYNCED)

    def _checkpoint(self, end: int) -> TrustedPoint | None:
        facts = self._log.facts
        point = read_checkpoint(self._files, self._folder, facts.id, facts.first_offset)
        if point is not None and point.position > end:
            logger.error(
                "%s ends at %d, before %d up to where it was synced: entries are lost", self._path, end, point.position
            )
            return None
        return point

    def _load_producers(self) -> None:
        if load_producers(self._files, self._log, self._sealed, self._producers, self._now_ms):
            self.recovery.rebuilt.append("producers")

    def _begin_at(self, point: TrustedPoint, read: Read) -> None:
        log = self._log
        log.resume(point)
        log.index_files = IndexFiles(self._files, self._folder, log.facts.id)
        log.indexes, covered = log.index_files.load(log.facts.first_offset, point.position)
        if log.index_files.are_behind(point.position):
            self.recovery.rebuilt.append("indexes")
        if covered < point.position:
            complete_indexes(log.indexes, read, point.position, self._path)
        log.indexes.max_timestamp = point.max_timestamp
        self._producers.restore(decode_snapshot(point.producers))

    def _scan_from_here(self, read: Read, end: int) -> None:
        log, recovery = self._log, self.recovery
        begin = log.position
        try:
            for position, header in scan_verified(read, begin, end):
                if header.base_offset < log.end_offset:  # a gap is possible, see OpenLog.skip_to
                    raise DamagedLog(position, f"offset {header.base_offset} where {log.end_offset} is next")
                if not position:
                    log.started_ms = started_ms(header.max_timestamp, self._now_ms)
                log.indexes.note(header.base_offset, position, header.max_timestamp)
                self._producers.observe(header, self._now_ms)
                log.position = position + header.size_bytes
                log.end_offset = header.last_offset + 1
        except DamagedLog as damage:
            recovery.cut_reason = damage.reason
            recovery.cut_bytes = end - log.position
        recovery.scanned_bytes = end - begin


def started_ms(first_timestamp: int, now_ms: int) -> int:
    """When a segment began, by the timestamp of its first batch as Kafka does, if nobody noted the time itself."""
    return now_ms if first_timestamp == NO_TIMESTAMP else min(first_timestamp, now_ms)


def complete_indexes(indexes: SegmentIndexes, read: Read, end: int, path: str) -> None:
    """Add what the indexes lack of the log up to `end`, from its batches' headers. The log itself is trusted.

    A place that is damaged all the same ends it with an error line: what lies behind can't be found.
    """
    _, begin = indexes.offsets.floor_position(end)
    try:
        indexes.note_all(scan_headers(read, begin, end))
    except DamagedLog as damage:
        logger.error("%s is damaged though it was synced, what lies there can't be read: %s", path, damage)
