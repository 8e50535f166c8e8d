"""Appends off the event loop while the disk is slow: one stalled write must not hold up heartbeats and other clients.

After a write that took longer than `SLOW_WRITE_S` all partitions of the store append here for a while: a batch is
checked and placed on the loop, written on the thread, and only then counted as appended, on the loop again. Each
partition has one write under way, and what follows waits behind it in order, so an append that fails leaves nothing
behind, as one on the loop. The first write of a log still makes its file on the loop.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from time import perf_counter
from typing import TYPE_CHECKING

from walrusmq.protocol.errors import KafkaError, KafkaStorageError, NotLeaderOrFollower
from walrusmq.protocol.records.header import HEADER_BYTES
from walrusmq.segments.files import Buffer, Files

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

    from walrusmq.segments.handles import OpenFile
    from walrusmq.segments.partition import Appended, Partition
    from walrusmq.segments.store_counters import StoreCounters

logger = logging.getLogger("walrusmq.segments")

SLOW_WRITE_S = 0.05
"""A write that held the event loop for longer is counted: heartbeats and other clients waited for it."""
CALM_S = 10.0
"""So long no write must have been slow before the loop writes by itself again."""
MAX_ASIDE_BYTES_PER_PARTITION = 1 << 25
MAX_ASIDE_BYTES = 1 << 27
"""What may wait for one partition, and for all: past it producers are told to come again (nothing was written)."""
MAX_ASIDE_BATCHES_PER_PARTITION = 10_000
MAX_ASIDE_BATCHES = 50_000
"""And as many batches, which cost memory besides their bytes."""

AppendedAside = Callable[["Appended | KafkaError", memoryview], None]
"""Gets what `Partition.append` would have returned or raised, and the batch."""


class _Placed(BaseException):
    """Takes the place of the write in `Partition.append`: all before it is done, and nothing has changed yet."""


class _Write:
    """One batch, from its checks on the loop to its append on the loop."""

    __slots__ = (
        "_files", "batch", "descriptor", "done", "future", "now_ms", "partition", "placed", "position", "seconds",
        "sent", "was_taken",
    )  # fmt: skip

    def __init__(self, files: Files, partition: Partition, batch: memoryview, done: AppendedAside, now_ms: int) -> None:
        self._files = files
        self.partition = partition
        self.batch = batch
        self.done = done
        self.now_ms = now_ms
        self.descriptor = -1
        self.position = -1
        self.sent = bytes(batch[:HEADER_BYTES])
        """The header as the producer sent it."""
        self.placed = b""
        """The header as it goes to the disk."""
        self.future: Future[int] | None = None
        self.seconds = 0.0
        self.was_taken = False

    def place(self, fd: int, batch: Buffer, position: int) -> int:
        """Stands for `pwrite` while the batch is checked and placed: notes where it goes."""
        self.descriptor, self.position = fd, position
        self.placed = bytes(batch[:HEADER_BYTES])
        raise _Placed

    def run(self) -> int:
        """On the thread: write the batch where it was placed. Raises OSError."""
        started = perf_counter()
        try:
            return self._files.pwrite(self.descriptor, self.batch, self.position)
        finally:
            self.seconds = perf_counter() - started

    def take(self, fd: int, batch: Buffer, position: int) -> int:
        """Stands for `pwrite` when the batch is appended: gives what the thread's write has, or raises its OSError."""
        assert self.future is not None
        self.was_taken = True
        if position != self.position or batch[:HEADER_BYTES] != self.placed:  # new settings place it in another way
            return self._files.pwrite(fd, batch, position)
        return self.future.result()


class AsideAppends:
    """One per store. Everything but `_Write.run` happens on the event loop's thread."""

    def __init__(self, files: Files, counters: StoreCounters, now_ms: Callable[[], int]) -> None:
        self._files = files
        self._counters = counters
        self._now_ms = now_ms
        self._waiting: dict[Partition, deque[tuple[memoryview, AppendedAside]]] = {}
        self._waiting_bytes_of: dict[Partition, int] = {}
        self._under_way: dict[Partition, _Write] = {}
        self._settled: dict[Partition, list[asyncio.Future[None]]] = {}
        self._executor: ThreadPoolExecutor | None = None
        self._last_slow_s = 0.0
        self.waiting_bytes = 0
        self.waiting_batches = 0
        self.is_active = False
        """Whether any append may have to go this way: what the hot path looks at."""
        self.is_slow = False
        """Whether new appends go this way."""

    def takes(self, partition: Partition) -> bool:
        """Whether the partition's next batch must go this way, not to come before one that waits here."""
        return partition in self._waiting or (self.is_slow and partition.is_open)

    def note_slow_write(self, partition: Partition, seconds: float) -> None:
        """A write took longer than `SLOW_WRITE_S`, on the loop or on the thread."""
        self._counters.slow_writes += 1
        self._last_slow_s = perf_counter()
        if not self.is_slow:
            self.is_slow = self.is_active = True
            logger.warning(
                "a write of %s took %d ms: the disk's writes go to a thread until none is slow for %d s",
                partition,
                seconds * 1000,
                CALM_S,
            )

    def add(self, partition: Partition, batch: memoryview, done: AppendedAside) -> None:
        """Have a copy of `batch` appended after what waits; `done` is called in a later turn of the loop.

        Raises NotLeaderOrFollower when too much waits already.
        """
        size = len(batch)
        waiting = self._waiting.get(partition, ())
        waiting_bytes = self._waiting_bytes_of.get(partition, 0)
        if (
            waiting_bytes + size > MAX_ASIDE_BYTES_PER_PARTITION
            or self.waiting_bytes + size > MAX_ASIDE_BYTES
            or len(waiting) >= MAX_ASIDE_BATCHES_PER_PARTITION
            or self.waiting_batches >= MAX_ASIDE_BATCHES
        ):
            raise NotLeaderOrFollower(f"the disk of {partition} is slow and too much waits for it")
        if partition not in self._waiting:
            self._waiting[partition] = deque()
            asyncio.get_running_loop().call_soon(self._go_on, partition)
        self._waiting[partition].append((memoryview(bytearray(batch)), done))
        self._waiting_bytes_of[partition] = waiting_bytes + size
        self.waiting_bytes += size
        self.waiting_batches += 1

    def join(self, partition: Partition) -> None:
        """Wait on the loop for the write that is under way, for an append that can't go aside."""
        write = self._under_way.get(partition)
        if write is not None:
            self._finish(write)
            asyncio.get_running_loop().call_soon(self._go_on, partition)

    async def settle(self, partition: Partition) -> None:
        """Return once nothing of the partition waits or is under way."""
        if partition in self._waiting:
            settled = asyncio.get_running_loop().create_future()
            self._settled.setdefault(partition, []).append(settled)
            await settled

    async def stop(self) -> None:
        """Let everything that waits be appended, and end the thread."""
        while self._waiting:
            await self.settle(next(iter(self._waiting)))
        if self._executor is not None:
            executor, self._executor = self._executor, None
            executor.shutdown(wait=True)

    # --- inside

    def _go_on(self, partition: Partition) -> None:
        """Begin the partition's next write, where none is under way; batches that need none are done at once."""
        waiting = self._waiting.get(partition)
        while waiting and partition not in self._under_way:
            batch, done = waiting.popleft()
            size = len(batch)
            self.waiting_bytes -= size
            self._waiting_bytes_of[partition] -= size
            self.waiting_batches -= 1
            if self.is_slow and perf_counter() - self._last_slow_s > CALM_S:
                self.is_slow = False
                logger.info("no write was slow for %d s: the loop writes by itself again", CALM_S)
            write = _Write(self._files, partition, batch, done, self._now_ms())
            if self.is_slow:
                self._place(write)
            else:
                done(self._append(write), batch)
        if not waiting and waiting is not None and partition not in self._under_way:
            self._has_settled(partition)

    def _has_settled(self, partition: Partition) -> None:
        del self._waiting[partition]
        del self._waiting_bytes_of[partition]
        self.is_active = self.is_slow or bool(self._waiting)
        for settled in self._settled.pop(partition, ()):
            if not settled.done():
                settled.set_result(None)

    def _place(self, write: _Write) -> None:
        """Check and place the batch, and give it to the thread."""
        partition = write.partition
        log = partition.log
        log.pwrite = write.place
        try:
            outcome = self._append(write)
        except _Placed:
            self._hand_over(write)
            return
        finally:
            log.pwrite = self._files.pwrite
        write.done(outcome, write.batch)

    def _hand_over(self, write: _Write) -> None:
        handle = write.partition.log.file.handle
        assert handle is not None
        assert handle.fd == write.descriptor
        handle.pin()
        self._under_way[write.partition] = write
        loop = asyncio.get_running_loop()
        if self._executor is None:
            from concurrent.futures import ThreadPoolExecutor

            self._executor = ThreadPoolExecutor(1, thread_name_prefix="walrus-writes")
        write.future = self._executor.submit(write.run)
        write.future.add_done_callback(lambda _: loop.call_soon_threadsafe(self._written, write, handle))

    def _written(self, write: _Write, handle: OpenFile) -> None:
        """On the loop: the thread is done with a write."""
        handle.unpin()
        if self._under_way.get(write.partition) is write:
            self._finish(write)
            self._go_on(write.partition)

    def _finish(self, write: _Write) -> None:
        """Append what the thread has written, or writes still: then wait for it.

        Where the segment has stopped meanwhile, the batch belongs to it all the same: its seal waits for it.
        """
        partition = write.partition
        log = partition.log
        assert write.future is not None
        write.future.exception()
        write.batch[: len(write.sent)] = write.sent
        del self._under_way[partition]
        if write.seconds > SLOW_WRITE_S:
            self.note_slow_write(partition, write.seconds)
        has_stopped = not partition.is_open
        partition.is_open = not (partition.is_gone or log.is_rewound)
        log.pwrite = write.take
        try:
            outcome = self._append(write)
        finally:
            log.pwrite = self._files.pwrite
            if has_stopped:
                partition.is_open = False
        if not write.was_taken:
            log.has_leftover = True
        write.done(outcome, write.batch)

    def _append(self, write: _Write) -> Appended | KafkaError:
        """Append as on the loop, with what stands for the log's `pwrite` now."""
        try:
            return write.partition.append(write.batch, write.now_ms)
        except KafkaError as error:
            return error
        except Exception as error:
            logger.exception("an append to %s failed in an unexpected way", write.partition)
            return KafkaStorageError(f"{write.partition} couldn't be written: {type(error).__name__}: {error}")
