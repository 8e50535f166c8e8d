"""Who waits for a batch to be on disk: plain callbacks in the order of the batches, because there may be thousands."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

from walrusmq.protocol.errors import KafkaError

Acknowledged = Callable[[KafkaError | None], None]


def settles(outcome: asyncio.Future[KafkaError | None]) -> Acknowledged:
    """A callback that gives a future its result, unless whoever waited for that has gone."""

    def settle(error: KafkaError | None) -> None:
        if not outcome.done():
            outcome.set_result(error)

    return settle


class Acknowledgements:
    """Callbacks by the end offset that they wait for. Called on the event loop's thread, in order."""

    __slots__ = ("_waiting",)

    def __init__(self) -> None:
        self._waiting: deque[tuple[int, Acknowledged]] | None = None  # an empty deque takes 0.7 KB

    def __len__(self) -> int:
        return len(self._waiting or ())

    def add(self, end_offset: int, callback: Acknowledged) -> None:
        """Have `callback` called once the log is synced up to `end_offset`, after those added before."""
        if self._waiting is None:
            self._waiting = deque()
        self._waiting.append((end_offset, callback))

    def release(self, synced_offset: int) -> None:
        """The log is synced up to there."""
        waiting = self._waiting
        while waiting and waiting[0][0] <= synced_offset:
            waiting.popleft()[1](None)

    def fail(self, error: KafkaError) -> None:
        """None of them will ever be acknowledged."""
        waiting, self._waiting = self._waiting, None
        for _, callback in waiting or ():
            callback(error)
