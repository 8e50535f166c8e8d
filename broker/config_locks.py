"""A change of configs is planned by what stands there, so no other may come between plan and change."""

from __future__ import annotations

import asyncio
from weakref import WeakValueDictionary


class ConfigLocks:
    """A lock for each resource that is being changed. Used on the event loop."""

    def __init__(self) -> None:
        self._locks: WeakValueDictionary[tuple[int, str], asyncio.Lock] = WeakValueDictionary()

    def __len__(self) -> int:
        return len(self._locks)

    def of(self, resource_type: int, resource_name: str) -> asyncio.Lock:
        """The resource's lock: the same one as long as anybody holds it or waits for it."""
        key = resource_type, resource_name
        lock = self._locks.get(key)
        if lock is None:
            lock = self._locks[key] = asyncio.Lock()
        return lock
