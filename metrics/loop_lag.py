"""How late an event loop runs its timers: the delay that every request on that loop suffers too."""

from __future__ import annotations

import asyncio

TICK_SECONDS = 0.25
"""Four wake-ups a second cost an idle node nothing that shows, and find a stall of a few ms with fair odds."""
WINDOW_SECONDS = 60.0
"""The longest usual scrape interval: a peak is shown for at least that long, however many scrapers there are."""


class LoopLag:
    """A repeating timer that notes how far behind its time it was run."""

    __slots__ = ("_due", "_loop", "_previous_max", "_timer", "_window_end", "_window_max", "last_seconds")

    def __init__(self) -> None:
        self.last_seconds = 0.0
        """The lag of the last tick."""
        self._window_max = 0.0
        self._previous_max = 0.0
        self._window_end = 0.0
        self._due = 0.0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Begin to tick on the running loop."""
        self._loop = asyncio.get_running_loop()
        now = self._loop.time()
        self._window_end = now + WINDOW_SECONDS
        self._schedule(now)

    def stop(self) -> None:
        """Tick no more; the last values stay."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    @property
    def max_seconds(self) -> float:
        """The largest lag of this window and of the one before."""
        return max(self._window_max, self._previous_max)

    def observe(self, due: float, now: float) -> None:
        """Note that what was due at ``due`` ran at ``now``, both in the loop's seconds."""
        self.last_seconds = max(0.0, now - due)
        if now >= self._window_end:
            self._previous_max = self._window_max if now < self._window_end + WINDOW_SECONDS else 0.0
            self._window_max = 0.0
            self._window_end = now + WINDOW_SECONDS
        self._window_max = max(self._window_max, self.last_seconds)

    def _tick(self) -> None:
        assert self._loop is not None
        now = self._loop.time()
        self.observe(self._due, now)
        self._schedule(now)

    def _schedule(self, now: float) -> None:
        assert self._loop is not None
        self._due = now + TICK_SECONDS
        self._timer = self._loop.call_at(self._due, self._tick)
