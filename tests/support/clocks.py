"""A clock whose calendar a test moves, while waits go on in real time."""

from __future__ import annotations

import time


class MovedClock:
    """A node's clock: ``now_ms`` stands until it is moved, ``monotonic`` is the machine's."""

    def __init__(self, now_ms: int = 1_700_000_000_000) -> None:
        self.ms = now_ms

    def now_ms(self) -> int:
        return self.ms

    monotonic = staticmethod(time.monotonic)
