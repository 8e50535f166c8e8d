"""The log file of a sealed segment: checked against its facts when it is first needed, its indexes loaded when needed.

The facts are exact, so a file that is longer is cut to them. One that is shorter or missing is damaged: what is whole
of it can be read, and reads go on behind the gap.
"""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from typing import NamedTuple

from walrusmq.protocol.errors import KafkaStorageError
from walrusmq.protocol.records.scan import DamagedLog, scan_verified
from walrusmq.segments.background import Background
from walrusmq.segments.facts import SealedSegment
from walrusmq.segments.files import Files
from walrusmq.segments.handles import LogFile
from walrusmq.segments.index_cache import IndexCache
from walrusmq.segments.index_files import IndexFiles
from walrusmq.segments.indexes import SegmentIndexes
from walrusmq.segments.open_log import OpenLog
from walrusmq.segments.partition_folder import PartitionFolder
from walrusmq.segments.recovery import complete_indexes

logger = logging.getLogger("walrusmq.segments")

INLINE_REBUILD_BYTES = 4 << 20
"""Log whose index is made again while a read waits; more than that is done in the background."""


class IndexBeingRebuilt(KafkaStorageError):
    """The segment can be read again in a moment: its index was lost and is being made from the log."""


class _Rebuilt(NamedTuple):
    indexes: SegmentIndexes
    end_offset: int
    size_bytes: int


class SealedLog:
    """Called on the event loop's thread, but for `_rebuild`. A suspect one may be damaged whatever its size."""

    __slots__ = (
        "_background",
        "_cache",
        "_files",
        "_folder",
        "_is_checked",
        "_is_rebuilding",
        "_must_verify",
        "end_offset",
        "facts",
        "file",
        "size_bytes",
    )

    def __init__(
        self,
        facts: SealedSegment,
        file: LogFile,
        folder: PartitionFolder,
        files: Files,
        cache: IndexCache,
        background: Background,
        *,
        is_suspect: bool = False,
    ) -> None:
        self.facts = facts
        self.file = file
        self._folder = folder
        self._files = files
        self._cache = cache
        self._background = background
        self._must_verify = is_suspect
        self._is_checked = False
        self._is_rebuilding = False
        self.end_offset = facts.end_offset
        """Behind the last offset that can be read: the segment's end unless it is damaged."""
        self.size_bytes = facts.size_bytes
        """The bytes that can be read."""

    def indexes(self) -> SegmentIndexes:
        """The indexes, with `end_offset` and `size_bytes` true after it.

        Raises IndexBeingRebuilt for a while where that takes long, OSError where the disk refuses.
        """
        indexes = self._cache.get(self)
        if indexes is None:
            indexes = self._load()
            self._cache.put(self, indexes)
        return indexes

    def adopt(self, log: OpenLog) -> None:
        """The segment was sealed just now: its file is open and what the facts say, its indexes are in memory."""
        self.file = log.file
        self._is_checked = True
        self._cache.put(self, log.indexes)

    def close(self) -> None:
        """Nobody reads the segment any more."""
        self.file.close()
        self._cache.remove(self)

    def _load(self) -> SegmentIndexes:
        if self._is_rebuilding:
            raise IndexBeingRebuilt(f"the index of {self.file.path} is being made again")
        if not self._is_checked:
            self._check_size()
        index_files = IndexFiles(self._files, self._folder, self.facts.id, self.facts.generation)
        indexes, covered = index_files.load(self.facts.first_offset, self.size_bytes)
        if covered == self.size_bytes and not self._must_verify:
            indexes.max_timestamp = self.facts.max_timestamp
            return indexes
        if index_files.are_behind(self.size_bytes):
            logger.warning("%s: making its index again from the log", self.file.path)
        rebuild = partial(self._rebuild, index_files, indexes)
        if self.size_bytes - (0 if self._must_verify else covered) > INLINE_REBUILD_BYTES:
            self._is_rebuilding = True
            self._background.run(rebuild).add_done_callback(self._rebuild_ended)
            raise IndexBeingRebuilt(f"the index of {self.file.path} is being made again")
        return self._take(rebuild())

    def _check_size(self) -> None:
        size = self._files.size_of(self.file.path) or 0
        if size > self.size_bytes:
            self._files.ftruncate(self.file.open().fd, self.size_bytes)
            logger.warning("%s had %d bytes behind its sealed end: cut", self.file.path, size - self.size_bytes)
        if size < self.size_bytes:
            logger.error(
                "%s is damaged: %d of its %d bytes are there, what is missing is skipped by readers",
                self.file.path,
                size,
                self.size_bytes,
            )
            self.size_bytes = size
            self._must_verify = True
        self._is_checked = True

    def _rebuild(self, index_files: IndexFiles, indexes: SegmentIndexes) -> _Rebuilt:
        """On any thread: read the log, and put the indexes on the disk again. Raises OSError."""
        if not self.size_bytes:
            return _Rebuilt(indexes, self.facts.first_offset, 0)
        fd = self._files.open(self.file.path)
        try:
            read = partial(self._files.pread, fd)
            if self._must_verify:
                index_files = IndexFiles(self._files, self._folder, self.facts.id, self.facts.generation)
                rebuilt = self._verify(read)
            else:
                complete_indexes(indexes, read, self.size_bytes, self.file.path)
                rebuilt = _Rebuilt(indexes, self.end_offset, self.size_bytes)
        finally:
            self._files.close(fd)
        try:
            if index_files.are_behind(rebuilt.size_bytes):
                index_files.write(index_files.take(rebuilt.indexes, rebuilt.size_bytes, rebuilt.end_offset))
        except OSError as error:
            logger.warning("%s: its index couldn't be written: %s", self.file.path, error)
        return rebuilt

    def _verify(self, read: partial[bytes]) -> _Rebuilt:
        indexes = SegmentIndexes(self.facts.first_offset)
        end_offset, end_position = self.facts.first_offset, 0
        try:
            for position, header in scan_verified(read, 0, self.size_bytes):
                if header.base_offset < end_offset:
                    raise DamagedLog(position, f"offset {header.base_offset} where {end_offset} is next")
                indexes.note(header.base_offset, position, header.max_timestamp)
                end_offset, end_position = header.last_offset + 1, position + header.size_bytes
        except DamagedLog as damage:
            logger.error("%s is damaged, readers skip what lies behind: %s", self.file.path, damage)
        return _Rebuilt(indexes, end_offset, end_position)

    def _take(self, rebuilt: _Rebuilt) -> SegmentIndexes:
        self.end_offset, self.size_bytes = rebuilt.end_offset, rebuilt.size_bytes
        self._must_verify = False
        return rebuilt.indexes

    def _rebuild_ended(self, future: asyncio.Future[_Rebuilt]) -> None:
        self._is_rebuilding = False
        if future.cancelled():
            return
        error = future.exception()
        if error is None:
            self._cache.put(self, self._take(future.result()))
        else:
            logger.error("%s: its index couldn't be made again: %s", self.file.path, error)
