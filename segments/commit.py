"""The one thread that makes appended batches durable: each round syncs what has gathered, then reports it all at once.

The loop hands over where each log ended at that moment; the thread syncs after that, so what it reports was on disk.
While one round runs, the next gathers: thousands of waiting batches share a sync.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from queue import Empty, SimpleQueue
from time import perf_counter

from walrusmq.segments.files import Files
from walrusmq.segments.handles import OpenFile
from walrusmq.segments.open_log import OpenLog
from walrusmq.segments.partition_folder import UNSYNCED
from walrusmq.segments.store_counters import StoreCounters

logger = logging.getLogger("walrusmq.segments")

MAX_PINNED = 256
"""Descriptors that waiting syncs hold beside the pool's; past it the thread opens a file by its path."""


class LogSync:
    """One log to sync, up to where it ended when the loop handed it over."""

    __slots__ = ("done", "end_offset", "error", "folders", "handle", "log", "max_timestamp", "position")

    def __init__(self, log: OpenLog, handle: OpenFile | None, done: SyncDone) -> None:
        self.log = log
        self.handle = handle
        self.done = done
        self.end_offset = log.end_offset
        self.position = log.position
        self.max_timestamp = log.indexes.max_timestamp
        self.folders = log.folders_to_sync
        self.error: OSError | None = None


SyncDone = Callable[[LogSync], None]
_Handed = tuple[LogSync, bool]


class CommitThread:
    """Syncs logs for their partitions. Everything but `_run` and what it calls happens on the event loop's thread."""

    def __init__(self, files: Files, interval_ms: int, counters: StoreCounters) -> None:
        self._files = files
        self._interval_s = interval_ms / 1000
        self._counters = counters
        self._queue: SimpleQueue[_Handed | None] = SimpleQueue()
        self._wanted: dict[OpenLog, SyncDone] = {}
        self._dirty: dict[OpenLog, SyncDone] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._timers: dict[OpenLog, asyncio.TimerHandle] = {}
        self._pinned = 0
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._ended: asyncio.Future[None] | None = None

    def request(self, log: OpenLog, done: SyncDone) -> None:
        """Sync soon: what is appended in this turn of the loop shares the sync. `done` is called on the loop."""
        wanted = self._wanted
        if log not in wanted:
            if not wanted:
                self._running_loop().call_soon(self._hand_over)
            wanted[log] = done

    def request_later(self, log: OpenLog, done: SyncDone) -> None:
        """Sync within `fsync.interval.ms`, behind whatever is urgent."""
        dirty = self._dirty
        if log not in dirty:
            if not dirty:
                self._timer = self._running_loop().call_later(self._interval_s, self._hand_over_dirty)
            dirty[log] = done

    def request_within(self, log: OpenLog, done: SyncDone, delay_ms: int) -> None:
        """Sync when `flush.ms` have passed since the first of these calls that no sync has answered."""
        if log not in self._timers:
            self._timers[log] = self._running_loop().call_later(delay_ms / 1000, self._due, log, done)

    def forget(self, log: OpenLog) -> None:
        """The log goes away: don't begin another sync of it."""
        self._wanted.pop(log, None)
        self._dirty.pop(log, None)
        timer = self._timers.pop(log, None)
        if timer is not None:
            timer.cancel()

    async def stop(self) -> None:
        """End the thread once what was handed over is synced and reported."""
        if self._timer is not None:
            self._timer.cancel()
        for timer in self._timers.values():
            timer.cancel()
        self._hand_over()
        thread = self._thread
        if thread is None:
            return
        self._ended = self._running_loop().create_future()
        self._queue.put(None)
        await self._ended
        thread.join()
        self._thread = None

    def _running_loop(self) -> asyncio.AbstractEventLoop:
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
        return self._loop

    def _hand_over(self) -> None:
        wanted, self._wanted = self._wanted, {}
        self._put(wanted, is_urgent=True)

    def _hand_over_dirty(self) -> None:
        dirty, self._dirty = self._dirty, {}
        self._put(dirty, is_urgent=False)

    def _due(self, log: OpenLog, done: SyncDone) -> None:
        del self._timers[log]
        self._put({log: done}, is_urgent=False)

    def _put(self, logs: dict[OpenLog, SyncDone], *, is_urgent: bool) -> None:
        if logs and self._thread is None:
            self._thread = threading.Thread(target=self._run, name="walrus-commit", daemon=True)
            self._thread.start()
        for log, done in logs.items():
            handle = log.file.handle if self._pinned < MAX_PINNED else None
            if handle is not None:
                handle.pin()
                self._pinned += 1
            self._queue.put((LogSync(log, handle, done), is_urgent))

    def _report(self, finished: list[LogSync]) -> None:
        """On the loop: what one round has synced, or failed to."""
        for sync in finished:
            if sync.handle is not None:
                sync.handle.unpin()
                self._pinned -= 1
        for sync in finished:
            sync.done(sync)

    def _run(self) -> None:
        """The thread. All urgent logs that have gathered go first in each round, then one of the others."""
        assert self._loop is not None
        later: deque[LogSync] = deque()
        must_end = False
        while not must_end or later:
            gathered, has_ended = self._gather(wait=not later) if not must_end else ([], False)
            must_end = must_end or has_ended
            urgent = [sync for sync, is_urgent in gathered if is_urgent]
            later.extend(sync for sync, is_urgent in gathered if not is_urgent)
            for round_of in (urgent, [later.popleft()] if later else []):
                if round_of:
                    self._sync_all(round_of)
                    self._loop.call_soon_threadsafe(self._report, round_of)
        self._loop.call_soon_threadsafe(self._end)

    def _end(self) -> None:
        assert self._ended is not None
        self._ended.set_result(None)

    def _gather(self, *, wait: bool) -> tuple[list[_Handed], bool]:
        """What was handed over until now, and whether that is all there will be."""
        handed: list[_Handed] = []
        try:
            item = self._queue.get(block=wait)
            for _ in range(self._queue.qsize()):
                if item is None:
                    break
                handed.append(item)
                item = self._queue.get_nowait()
        except Empty:
            return handed, False
        if item is None:
            return handed, True
        handed.append(item)
        return handed, False

    def _sync_all(self, syncs: list[LogSync]) -> None:
        """Sync each log once, though it was handed over several times: the last time, it ended furthest."""
        last = {sync.log: sync for sync in syncs}
        for log, sync in last.items():
            if log.sync_error is None:
                try:
                    self._sync(sync)
                except OSError as error:
                    log.sync_error = error
                except Exception as error:
                    logger.exception("syncing %s failed in an unexpected way", log.file.path)
                    log.sync_error = OSError(errno.EIO, f"{type(error).__name__}: {error}")
                if log.sync_error is not None:
                    self._counters.failed_syncs += 1
                    self._mark(log)
        for sync in syncs:
            sync.error = sync.log.sync_error

    def _sync(self, sync: LogSync) -> None:
        started = perf_counter()
        try:
            if sync.handle is not None:
                self._files.fdatasync(sync.handle.fd)
            else:
                self._sync_by_path(sync.log.file.path)
            for folder in sync.folders:
                self._files.sync_folder(folder)
        finally:
            self._counters.syncs += 1
            self._counters.sync_seconds += perf_counter() - started

    def _mark(self, log: OpenLog) -> None:
        """Let a process that is started after a kill know of the failure; a power loss takes mark and cache alike."""
        with suppress(OSError):
            self._files.close(self._files.open(log.folder.file(log.facts.id, UNSYNCED), create=True))

    def _sync_by_path(self, path: str) -> None:
        """The pool had to close the file before its sync; Linux (since 4.17) tells of earlier write errors here too."""
        fd = self._files.open(path)
        try:
            self._files.fdatasync(fd)
        finally:
            self._files.close(fd)
