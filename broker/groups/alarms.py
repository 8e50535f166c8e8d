"""One timer for the deadlines of all groups."""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Callable


class Alarms:
    """Calls back with a group's id and the time once its deadline has come. Used on the event loop.

    A deadline that has moved back isn't looked for: it shows when the old one comes, and is armed again then.
    """

    __slots__ = ("_armed", "_heap", "_is_stopped", "_now_ms", "_ring", "_timer", "_timer_ms")

    def __init__(self, now_ms: Callable[[], int], ring: Callable[[str, int], None]) -> None:
        self._now_ms = now_ms
        self._ring = ring
        self._heap: list[tuple[int, str]] = []
        self._armed: dict[str, int] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._timer_ms = 0
        self._is_stopped = False

    def arm(self, group_id: str, deadline_ms: int) -> None:
        """Ring for a group at this time, or earlier if that had been asked for."""
        armed_ms = self._armed.get(group_id)
        if armed_ms is not None and armed_ms <= deadline_ms:
            return
        self._armed[group_id] = deadline_ms
        heapq.heappush(self._heap, (deadline_ms, group_id))
        self._set_timer()

    def forget(self, group_id: str) -> None:
        """Don't ring for a group that is no more."""
        self._armed.pop(group_id, None)

    def stop(self) -> None:
        """Ring no more."""
        self._is_stopped = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _set_timer(self) -> None:
        if not self._heap or self._is_stopped:
            return
        first_ms = self._heap[0][0]
        if self._timer is not None:
            if self._timer_ms <= first_ms:
                return
            self._timer.cancel()
        self._timer_ms = first_ms
        delay_s = max(first_ms - self._now_ms(), 0) / 1000
        self._timer = asyncio.get_running_loop().call_later(delay_s, self._time_is_up)

    def _time_is_up(self) -> None:
        self._timer = None
        now_ms = self._now_ms()
        try:
            while self._heap and self._heap[0][0] <= now_ms:
                deadline_ms, group_id = heapq.heappop(self._heap)
                if self._armed.get(group_id) == deadline_ms:
                    del self._armed[group_id]
                    self._ring(group_id, now_ms)
        finally:
            self._set_timer()
