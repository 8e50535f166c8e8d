"""The two clocks of a node. A Node is given one, so that a test can move time."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """Wall time for what is stored and told, steady time for what is waited for."""

    def now_ms(self) -> int:
        """Milliseconds since 1970, as clients and records see them."""
        ...

    def monotonic(self) -> float:
        """Seconds that never go back."""
        ...


class SystemClock:
    """The machine's own clocks."""

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    monotonic = staticmethod(time.monotonic)
