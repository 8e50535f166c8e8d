"""Ending a task that runs until it is told to stop."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any


async def end_task(task: asyncio.Task[Any] | None) -> None:
    """Cancel a task, if there is one, and return once it has ended. Raises what it ended with, if anything else."""
    if task is not None:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
