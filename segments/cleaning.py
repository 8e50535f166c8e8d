"""The files of a compaction: a round reads a partition's sealed segments and writes new generations of their logs.

It runs on a thread of its own. Nothing that is there is changed: a new generation has files of its own, which count
from the moment at which the metadata log has recorded them, and are removed as leftovers if it never does.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from threading import Event
from typing import TYPE_CHECKING, TypeVar

from walrusmq.protocol.records.keys import batch_keys
from walrusmq.protocol.records.scan import DamagedLog, scan_headers
from walrusmq.segments.compaction import CompactionRules, Kept, NewestOffsets, compacted
from walrusmq.segments.facts import NO_TIMESTAMP, SealedSegment
from walrusmq.segments.files import Files
from walrusmq.segments.index_files import IndexFiles
from walrusmq.segments.indexes import SegmentIndexes
from walrusmq.segments.lookups import first_at_or_after
from walrusmq.segments.partition_folder import LOG, PartitionFolder
from walrusmq.segments.small_files import read_exactly, write_exactly

if TYPE_CHECKING:
    from walrusmq.protocol.records.header import BatchHeader

T = TypeVar("T")

WRITE_BYTES = 1 << 20
"""Compacted log that is held in memory before it is written."""
BUSY_S = 0.001
"""How long a round computes before it lets go of the interpreter: the event loop waits so long at the most."""
ITEMS_PER_STEP = 256
"""Records looked at without looking at the time."""
PAUSE_S = 0.0002
"""How long it lets go: less, and the waiting thread may not wake in time to get it."""


class CleaningStopped(Exception):
    """The round was told to stop: nothing of it counts but what was recorded."""


class Pace:
    """Gives other threads their turn, and ends a round that has been stopped."""

    def __init__(self) -> None:
        self._is_stopped = Event()
        self._paused_s = time.perf_counter()

    def stop(self) -> None:
        """From any thread: have the round end at its next batch."""
        self._is_stopped.set()

    def through(self, items: Iterable[T]) -> Iterator[T]:
        """The same items, with a step now and then. Raises CleaningStopped."""
        for number, item in enumerate(items):
            if not number % ITEMS_PER_STEP:
                self.step()
            yield item

    def step(self) -> None:
        """Called at least for each batch. Raises CleaningStopped."""
        if time.perf_counter() - self._paused_s >= BUSY_S:
            time.sleep(PAUSE_S)
            self._paused_s = time.perf_counter()
        if self._is_stopped.is_set():
            raise CleaningStopped


def first_timestamp(files: Files, folder: PartitionFolder, facts: SealedSegment) -> int:
    """The largest timestamp (ms) of a segment's first batch. Raises OSError, DamagedLog."""
    if not facts.size_bytes:
        return NO_TIMESTAMP
    fd = files.open(folder.file(facts.id, LOG, facts.generation))
    try:
        _, header = next(scan_headers(partial(files.pread, fd), 0, facts.size_bytes))
    finally:
        files.close(fd)
    return header.max_timestamp


class Cleaning:
    """One round over one partition. `note` goes over what is new, then `compact` over each segment up to there.

    Every call may raise OSError, DamagedLog, KafkaError (records that can't be unpacked) and CleaningStopped.
    """

    def __init__(self, files: Files, folder: PartitionFolder, rules: CompactionRules, pace: Pace) -> None:
        self._files = files
        self._folder = folder
        self._rules = rules
        self._pace = pace

    def note(self, segments: Sequence[SealedSegment], from_offset: int, newest: NewestOffsets) -> None:
        """Take in the keys of the segments' batches from an offset on, as many as there is room for."""
        for facts in segments:
            for header, data in self._batches(facts):
                if header.last_offset < from_offset:
                    continue
                if not newest.has_room_for(header):
                    newest.settle()
                    return
                newest.note(header, self._pace.through(batch_keys(data)))
        newest.settle()

    def compact(
        self, facts: SealedSegment, newest: NewestOffsets, generation: int, *, may_leave: bool
    ) -> SealedSegment | None:
        """Write a segment's next generation; its facts, of size 0 where nothing is left; None where all of it stays.

        Where it may not leave the chain, its last batch stays whatever becomes of the records.
        """
        writer = _Writer(self._files, self._folder, facts, generation)
        unchanged_bytes = 0
        is_over = True
        try:
            batches = (data for _, data in self._batches(facts))
            for kept in compacted(batches, newest, self._rules, facts.end_offset - 1):
                header = kept.header
                if kept.is_as_it_was:
                    unchanged_bytes += len(kept.data)
                if header.record_count or header.is_control or self._rules.is_producers_end(header):
                    is_over = False
                writer.add(kept)
            if is_over and may_leave:
                writer.discard()
                return replace(facts, generation=generation, size_bytes=0)
            if unchanged_bytes == facts.size_bytes:
                writer.discard()
                return None
            return writer.finish()
        except BaseException:
            writer.discard()
            raise

    def _batches(self, facts: SealedSegment) -> Iterator[tuple[BatchHeader, bytes]]:
        if not facts.size_bytes:
            return
        fd = self._files.open(self._folder.file(facts.id, LOG, facts.generation))
        try:
            size = self._files.size(fd)
            if size < facts.size_bytes:
                raise DamagedLog(size, f"{facts.size_bytes - size} bytes are missing")
            for position, header in scan_headers(partial(self._files.pread, fd), 0, facts.size_bytes):
                self._pace.step()
                yield header, read_exactly(self._files, fd, header.size_bytes, position)
        finally:
            self._files.close(fd)


class _Writer:
    """A new generation of a segment's log in the making."""

    def __init__(self, files: Files, folder: PartitionFolder, facts: SealedSegment, generation: int) -> None:
        self._files = files
        self._folder = folder
        self._facts = facts
        self._generation = generation
        self._indexes = SegmentIndexes(facts.first_offset)
        self._max_timestamp = NO_TIMESTAMP
        self._waiting: list[bytes | memoryview] = []
        self._waiting_bytes = 0
        self._position = 0
        self._fd = files.open(folder.file(facts.id, LOG, generation), create=True)
        files.ftruncate(self._fd, 0)

    def add(self, kept: Kept) -> None:
        header = kept.header
        self._indexes.note(header.base_offset, self._position + self._waiting_bytes, header.max_timestamp)
        if header.record_count:
            self._max_timestamp = max(self._max_timestamp, header.max_timestamp)
        self._waiting.append(kept.data)
        self._waiting_bytes += len(kept.data)
        if self._waiting_bytes >= WRITE_BYTES:
            self._write()

    def finish(self) -> SealedSegment:
        """All is added: sync it, and find its facts."""
        self._write()
        files, facts = self._files, self._facts
        files.fdatasync(self._fd)
        files.sync_folder(self._folder.path)
        found = None
        if self._max_timestamp != NO_TIMESTAMP:
            found = first_at_or_after(
                files, self._fd, self._indexes, self._position, self._max_timestamp, facts.first_offset
            )
        index_files = IndexFiles(files, self._folder, facts.id, self._generation)
        if index_files.are_behind(self._position):
            index_files.write(index_files.take(self._indexes, self._position, facts.end_offset))
        self._close()
        return replace(
            facts,
            generation=self._generation,
            size_bytes=self._position,
            max_timestamp=self._max_timestamp,
            max_timestamp_offset=NO_TIMESTAMP if found is None else found[1],
        )

    def discard(self) -> None:
        """It isn't needed after all."""
        self._close()
        self._folder.remove_log(self._facts.id, self._generation)

    def _write(self) -> None:
        write_exactly(self._files, self._fd, b"".join(self._waiting), self._position)
        self._position += self._waiting_bytes
        self._waiting.clear()
        self._waiting_bytes = 0

    def _close(self) -> None:
        if self._fd >= 0:
            fd, self._fd = self._fd, -1
            self._files.close(fd)
