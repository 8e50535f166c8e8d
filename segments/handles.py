"""Open files, at most so many at a time: 10,000 partitions live with 1,024 descriptors.

A `LogFile` is a path that is opened when somebody needs it. The pool closes the ones that weren't used lately; one that
is pinned (a stretch of it is on its way to a socket, or a sync of it is under way) stays open until the last pin is
gone, even where the file was unlinked meanwhile. All calls but `OpenFile.fd` are made on the event loop's thread.
"""

from __future__ import annotations

from walrusmq.segments.files import Files


class OpenFile:
    """One descriptor. It closes when the pool has let go of it and no pin is left."""

    __slots__ = ("_files", "_is_dropped", "_pins", "fd", "was_used")

    def __init__(self, files: Files, fd: int) -> None:
        self._files = files
        self._pins = 0
        self._is_dropped = False
        self.fd = fd
        """The descriptor; -1 once it is closed."""
        self.was_used = False
        """Set by each use after the first, cleared by the pool when it looks for one to close."""

    def pin(self) -> None:
        self._pins += 1

    def unpin(self) -> None:
        self._pins -= 1
        assert self._pins >= 0, "unpinned more often than pinned"
        if self._is_dropped and not self._pins:
            self._close()

    def drop(self) -> None:
        """The pool's own hold ends."""
        self._is_dropped = True
        if not self._pins:
            self._close()

    def _close(self) -> None:
        if self.fd >= 0:
            fd, self.fd = self.fd, -1
            self._files.close(fd)

    def __del__(self) -> None:
        """A region that an error dropped unsent keeps its pin, but can't keep its descriptor."""
        if self.fd >= 0:
            self._close()


class LogFile:
    """A file of a segment by its path, open or not."""

    __slots__ = ("_pool", "handle", "path")

    def __init__(self, pool: HandlePool, path: str) -> None:
        self._pool = pool
        self.path = path
        self.handle: OpenFile | None = None
        """The open file, if it is open: what the hot path looks at first."""

    def open(self, *, create: bool = False) -> OpenFile:
        """The open file, opened if need be. Raises OSError (FileNotFoundError unless `create`)."""
        handle = self.handle
        if handle is None:
            return self._pool.open(self, create=create)
        handle.was_used = True
        return handle

    def close(self) -> None:
        """Let go of the descriptor; a later `open` gets a new one."""
        self._pool.forget(self)


class HandlePool:
    """The open files of a store, bounded by `max_open_files`. What was used since it was last looked at stays open."""

    def __init__(self, files: Files, max_open_files: int) -> None:
        assert max_open_files > 0
        self.files = files
        self.max_open_files = max_open_files
        self._open: dict[LogFile, OpenFile] = {}

    def __len__(self) -> int:
        return len(self._open)

    def open(self, file: LogFile, *, create: bool) -> OpenFile:
        while len(self._open) >= self.max_open_files:
            self._evict_one()
        handle = OpenFile(self.files, self.files.open(file.path, create=create))
        file.handle = handle
        self._open[file] = handle
        return handle

    def forget(self, file: LogFile) -> None:
        handle = self._open.pop(file, None)
        file.handle = None
        if handle is not None:
            handle.drop()

    def close(self) -> None:
        """Let go of all; pinned ones close with their last pin."""
        for file in list(self._open):
            self.forget(file)

    def _evict_one(self) -> None:
        while True:
            file, handle = next(iter(self._open.items()))
            if not handle.was_used:
                self.forget(file)
                return
            handle.was_used = False
            del self._open[file]
            self._open[file] = handle
