"""Deadlines for many waits at once: entering and leaving one costs a dict operation, no timer each."""

from __future__ import annotations

from collections.abc import Callable

#: Deadlines are kept to this grain; a wait may last so much longer than was asked.
GRAIN_S = 0.1


class Deadlines:
    """Buckets of waits by the grain in which they end. ``expire`` is called every grain by the node."""

    __slots__ = ("_buckets",)

    def __init__(self) -> None:
        self._buckets: dict[int, dict[object, Callable[[], None]]] = {}

    def add(self, owner: object, at_s: float, expired: Callable[[], None]) -> int:
        """Have ``expired`` called once ``at_s`` (monotonic seconds) has passed; returns the bucket for ``remove``."""
        bucket = int(at_s / GRAIN_S) + 1
        waits = self._buckets.get(bucket)
        if waits is None:
            waits = self._buckets[bucket] = {}
        waits[owner] = expired
        return bucket

    def remove(self, owner: object, bucket: int) -> None:
        """The wait of ``owner`` has ended by itself."""
        waits = self._buckets.get(bucket)
        if waits is not None:
            waits.pop(owner, None)
            if not waits:
                del self._buckets[bucket]

    def expire(self, now_s: float) -> None:
        """Call back every wait whose deadline has passed."""
        if not self._buckets:
            return
        now = int(now_s / GRAIN_S)
        for bucket in sorted(b for b in self._buckets if b <= now):
            for expired in self._buckets.pop(bucket).values():
                expired()

    def expire_all(self) -> None:
        """Call back every wait: the node is stopping."""
        while self._buckets:
            _, waits = self._buckets.popitem()
            for expired in waits.values():
                expired()
