"""The log file of a partition's open segment: where it ends, how far it is synced, and the write that moves its end."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from contextlib import suppress

from walrusmq.segments.checkpoint import TrustedPoint
from walrusmq.segments.facts import NO_TIMESTAMP, OpenSegment
from walrusmq.segments.files import Buffer, Files
from walrusmq.segments.handles import LogFile, OpenFile
from walrusmq.segments.index_files import IndexFiles
from walrusmq.segments.indexes import SegmentIndexes
from walrusmq.segments.partition_folder import PartitionFolder
from walrusmq.segments.producers import Snapshot


class OpenLog:
    """Batches back to back. The file is made by the first write; its ends only grow, until a sync fails."""

    __slots__ = (
        "_files",
        "checkpoint_position",
        "end_offset",
        "facts",
        "file",
        "folder",
        "folders_to_sync",
        "has_leftover",
        "index_files",
        "indexes",
        "is_rewound",
        "position",
        "pwrite",
        "started_ms",
        "sync_error",
        "synced_max_timestamp",
        "synced_offset",
        "synced_position",
        "unwritten_producers",
    )

    def __init__(self, facts: OpenSegment, folder: PartitionFolder, file: LogFile, files: Files) -> None:
        self.facts = facts
        self.file = file
        self._files = files
        self.pwrite: Callable[[int, Buffer, int], int] = files.pwrite
        """What writes a batch; while a thread does, something else stands here (see `aside`)."""
        self.folder = folder
        self.indexes = SegmentIndexes(facts.first_offset)
        self.index_files = IndexFiles(files, folder, facts.id)
        self.end_offset = facts.first_offset
        """The offset that the next batch gets."""
        self.position = 0
        """Where the next batch goes."""
        self.synced_offset = facts.first_offset
        self.synced_position = 0
        self.synced_max_timestamp = NO_TIMESTAMP
        self.checkpoint_position = 0
        """Up to where the last checkpoint spares a recovery the scan."""
        self.started_ms = -1
        """When the first batch came; -1 while there is none."""
        self.folders_to_sync: tuple[str, ...] = ()
        """Folders whose entries must be on disk before any batch counts as synced."""
        self.has_leftover = False
        """Whether a failed write may have left bytes behind the end."""
        self.is_rewound = False
        """Whether a sync has failed, and the log ends where the last one before it succeeded."""
        self.unwritten_producers: Snapshot | None = None
        """The state at the first offset, where its file couldn't be written: the segments before are needed still."""
        self.sync_error: OSError | None = None
        """Why this file is never synced again: set once, on the commit thread."""

    def resume(self, point: TrustedPoint) -> None:
        """The log was synced up to `point`, and goes on there."""
        self.end_offset = self.synced_offset = point.end_offset
        self.position = self.synced_position = self.checkpoint_position = point.position
        self.started_ms = point.started_ms
        self.indexes.max_timestamp = self.synced_max_timestamp = point.max_timestamp

    def ends_at(self, point: TrustedPoint) -> bool:
        """Whether `point` is about this log, and its file ends just there. Raises OSError."""
        facts = self.facts
        if (point.segment_id, point.first_offset) != (facts.id, facts.first_offset):
            return False
        return (self._files.size_of(self.file.path) or 0) == point.position

    def skip_to(self, offset: int) -> None:
        """Go on at `offset` at least: entries up to there were deleted and so may not come again.

        Without `fsync=batch` a crash may take them out of the log after that was recorded. A gap stays in the offsets.
        """
        if offset > self.end_offset:
            self.end_offset = self.synced_offset = offset

    def write(self, batch: memoryview, entries: int, max_timestamp: int) -> None:
        """Write one placed batch at the end. Raises OSError, and then nothing has changed."""
        position = self.position
        handle = self.file.handle
        if handle is None or self.has_leftover or not position:
            handle = self._prepare()
        else:
            handle.was_used = True
        size = len(batch)
        try:
            if self.pwrite(handle.fd, batch, position) != size:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        except OSError:
            self.has_leftover = True
            with suppress(OSError):  # the next write tries again, and isn't made before it succeeds
                self.cut_leftover()
            raise
        offset = self.end_offset
        indexes = self.indexes
        if position >= indexes.offsets.next_position:
            indexes.note(offset, position, max_timestamp)
        elif max_timestamp > indexes.max_timestamp:
            indexes.max_timestamp = max_timestamp
        self.position = position + size
        self.end_offset = offset + entries

    def synced_to(self, end_offset: int, position: int, max_timestamp: int) -> None:
        """All up to there is on disk, and so are the names of the file and its folder."""
        self.synced_offset, self.synced_position = end_offset, position
        self.synced_max_timestamp = max_timestamp
        if self.folders_to_sync:
            self.folders_to_sync = ()
            self.folder.is_durable = True

    def rewind(self) -> None:
        """Go back to the synced end: the bytes behind it may never reach the disk. Nothing is written after this."""
        self.is_rewound = True
        self.end_offset = self.synced_offset
        self.position = self.synced_position
        self.has_leftover = True

    def cut_leftover(self) -> None:
        """Remove what stands behind the end. Raises OSError."""
        if self.file.handle is not None or self._files.exists(self.file.path):
            self._files.ftruncate(self.file.open().fd, self.position)
        self.has_leftover = False

    def _prepare(self) -> OpenFile:
        if not self.position and not self.folders_to_sync:
            self.folders_to_sync = self.folder.create()
        handle = self.file.open(create=True)
        if self.has_leftover:
            self.cut_leftover()
        return handle
