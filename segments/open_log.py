"""The log file of a partition's open segment: where it ends, how far that end is synced, and the write that moves it."""

from __future__ import annotations

import errno
import os

from walrusmq.segments.facts import OpenSegment
from walrusmq.segments.files import Files
from walrusmq.segments.handles import LogFile, OpenFile
from walrusmq.segments.indexes import SegmentIndexes
from walrusmq.segments.partition_folder import PartitionFolder


class OpenLog:
    """Batches back to back. The file is made by the first write; ends and positions only ever grow until a failed sync."""

    __slots__ = (
        "_files",
        "_folder",
        "end_offset",
        "facts",
        "file",
        "folders_to_sync",
        "has_leftover",
        "indexes",
        "position",
        "started_ms",
        "sync_error",
        "synced_offset",
        "synced_position",
    )

    def __init__(self, facts: OpenSegment, folder: PartitionFolder, file: LogFile, files: Files) -> None:
        self.facts = facts
        self.file = file
        self._files = files
        self._folder = folder
        self.indexes = SegmentIndexes(facts.first_offset)
        self.end_offset = facts.first_offset
        """The offset that the next batch gets."""
        self.position = 0
        """Where the next batch goes."""
        self.synced_offset = facts.first_offset
        self.synced_position = 0
        self.started_ms = -1
        """When the first batch came; -1 while there is none."""
        self.folders_to_sync: tuple[str, ...] = ()
        """Folders whose entries must be on disk before any batch counts as synced."""
        self.has_leftover = False
        """Whether a failed write may have left bytes behind the end."""
        self.sync_error: OSError | None = None
        """Why this file is never synced again: set once, on the commit thread."""

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
            written = self._files.pwrite(handle.fd, batch, position)
        except OSError:
            self.has_leftover = True
            raise
        if written != size:
            self.has_leftover = True
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        offset = self.end_offset
        self.indexes.note(offset, position, max_timestamp)
        self.position = position + size
        self.end_offset = offset + entries

    def rewind(self) -> None:
        """Go back to the synced end: the bytes behind it may never reach the disk."""
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
            self.folders_to_sync = self._folder.create()
        handle = self.file.open(create=True)
        if self.has_leftover:
            self.cut_leftover()
        return handle
