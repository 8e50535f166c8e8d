"""Batches that are prepared on a thread before they are appended, and those that must not overtake them.

Of each partition one batch is in work, and what follows waits behind it in order. Partitions are served beside each
other.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from walrusmq.protocol.errors import KafkaError, NotLeaderOrFollower
from walrusmq.segments.preparation import needs_preparation, out_of_time, prepared

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

    from walrusmq.segments.log_config import LogConfig
    from walrusmq.segments.partition import Partition

T = TypeVar("T")

logger = logging.getLogger("walrusmq.segments")

MAX_PREPARING_BYTES_PER_PARTITION = 1 << 25
MAX_PREPARING_BYTES = 1 << 27
"""What may wait for one partition, and for all: past it producers are told to come again (nothing was written)."""
MAX_THREADS = 4
"""Codecs run beside each other; each thread may hold a batch and what it unpacks to."""

Prepared = Callable[["memoryview | KafkaError"], None]
"""Gets the batch as it is to be appended, or why it is refused."""


class _Item(NamedTuple):
    batch: memoryview
    config: LogConfig | None
    """The settings to prepare it by; None: it only waits for those before it."""
    done: Prepared


class PreparedAppends:
    """One per store. Called on the event loop's thread; only what `preparation` has runs elsewhere."""

    def __init__(self, now_ms: Callable[[], int]) -> None:
        self._now_ms = now_ms
        self._waiting: dict[Partition, deque[_Item]] = {}
        self._waiting_bytes_of: dict[Partition, int] = {}
        self._executor: ThreadPoolExecutor | None = None
        self._settled: asyncio.Future[None] | None = None
        self.waiting_bytes = 0

    def __contains__(self, partition: Partition) -> bool:
        """Whether anything of the partition waits or is in work."""
        return partition in self._waiting

    def takes(self, partition: Partition, batch: memoryview) -> bool:
        """Whether the batch must come this way: to be prepared, or not to overtake one that is."""
        return partition in self._waiting or needs_preparation(batch, partition.config)

    def add(self, partition: Partition, batch: memoryview, done: Prepared) -> None:
        """Have a copy of `batch` prepared by the partition's present settings; `done` is called in a later turn.

        Raises NotLeaderOrFollower when too much waits already.
        """
        self._reserve(partition, len(batch))
        config = partition.config if needs_preparation(batch, partition.config) else None
        is_first = partition not in self._waiting
        self._waiting.setdefault(partition, deque()).append(_Item(memoryview(bytearray(batch)), config, done))
        if is_first:
            partition.prepares = True
            self._go_on(partition)

    def explain(
        self, partition: Partition, batch: memoryview, error: KafkaError, done: Callable[[KafkaError], None]
    ) -> None:
        """Have `done` called with what is wrong with the records of a batch that `error` refuses for their timestamps.

        Raises `error` itself where too much waits already.
        """
        if self.waiting_bytes + len(batch) > MAX_PREPARING_BYTES:
            raise error
        copy = memoryview(bytearray(batch))
        self.waiting_bytes += len(copy)

        def explained(outcome: KafkaError) -> None:
            self.waiting_bytes -= len(copy)
            done(outcome)

        self._run(partial(out_of_time, copy, partition.config, self._now_ms()), explained)

    async def stop(self) -> None:
        """Let everything that waits be handed on, and end the threads."""
        if self._waiting:
            self._settled = asyncio.get_running_loop().create_future()
            await self._settled
        if self._executor is not None:
            executor, self._executor = self._executor, None
            executor.shutdown(wait=True)

    # --- inside

    def _reserve(self, partition: Partition, size: int) -> None:
        of_partition = self._waiting_bytes_of.get(partition, 0) + size
        if of_partition > MAX_PREPARING_BYTES_PER_PARTITION or self.waiting_bytes + size > MAX_PREPARING_BYTES:
            raise NotLeaderOrFollower(f"too much of {partition} waits to be unpacked")
        self._waiting_bytes_of[partition] = of_partition
        self.waiting_bytes += size

    def _go_on(self, partition: Partition) -> None:
        """Begin with the batch that is next, after handing on those that need nothing."""
        waiting = self._waiting[partition]
        while waiting:
            batch, config, _ = waiting[0]
            if config is not None:
                self._run(partial(prepared, batch, config, self._now_ms()), partial(self._is_ready, partition))
                return
            self._hand_on(partition, batch)
        del self._waiting[partition]
        del self._waiting_bytes_of[partition]
        partition.prepares = partition.config.looks_inside
        if not self._waiting and self._settled is not None:
            self._settled.set_result(None)

    def _is_ready(self, partition: Partition, outcome: memoryview | KafkaError) -> None:
        self._hand_on(partition, outcome)
        self._go_on(partition)

    def _hand_on(self, partition: Partition, outcome: memoryview | KafkaError) -> None:
        batch, _, done = self._waiting[partition].popleft()
        self._waiting_bytes_of[partition] -= len(batch)
        self.waiting_bytes -= len(batch)
        done(outcome)

    def _run(self, work: Callable[[], T], done: Callable[[T | KafkaError], None]) -> None:
        """Do `work` on a thread; `done` gets its result or its error in a later turn of the loop."""
        if self._executor is None:
            from concurrent.futures import ThreadPoolExecutor

            threads = min(MAX_THREADS, os.cpu_count() or 1)
            self._executor = ThreadPoolExecutor(threads, thread_name_prefix="walrus-codecs")
        loop = asyncio.get_running_loop()

        def ended(future: Future[T]) -> None:
            outcome = _outcome(future)
            loop.call_soon_threadsafe(done, outcome)

        self._executor.submit(work).add_done_callback(ended)


def _outcome(future: Future[T]) -> T | KafkaError:
    error = future.exception()
    if error is None:
        return future.result()
    if isinstance(error, KafkaError):
        return error
    logger.error("a batch couldn't be prepared, in an unexpected way", exc_info=error)
    return KafkaError(f"the batch couldn't be unpacked or packed: {type(error).__name__}: {error}")
