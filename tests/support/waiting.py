"""Waiting for a condition, with a bound."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

PATIENCE_S = 15.0
POLL_S = 0.002


async def until(condition: Callable[[], object]) -> None:
    """Return once ``condition`` holds. Raises TimeoutError."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            if condition():
                return
            await asyncio.sleep(POLL_S)
