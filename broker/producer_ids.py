"""Producer ids for InitProducerId: taken from blocks that the metadata log gives out, so that none comes twice."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

#: Ids of a block, as in Kafka: one proposal for a thousand producers. What a node hasn't used at its stop is lost.
BLOCK_SIZE = 1000

#: Gets a number of ids; returns the first of as many that nobody has had.
Allocate = Callable[[int], Coroutine[Any, Any, int]]


class ProducerIds:
    """The block that a node hands out now. Used on one event loop."""

    __slots__ = ("_end", "_lock", "_next")

    def __init__(self) -> None:
        self._next = 0
        self._end = 0
        self._lock = asyncio.Lock()

    def take(self) -> int | None:
        """An id of the present block; None if it is used up."""
        if self._next == self._end:
            return None
        self._next += 1
        return self._next - 1

    async def next(self, allocate: Allocate) -> int:
        """An id, from a new block if it must be. Raises the KafkaError by which the block was refused."""
        while True:
            producer_id = self.take()
            if producer_id is not None:
                return producer_id
            async with self._lock:
                if self._next == self._end:
                    first = await allocate(BLOCK_SIZE)
                    self._next, self._end = first, first + BLOCK_SIZE
