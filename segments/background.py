"""The thread for work on files that may take long: removing them, writing indexes and checkpoints, rebuilding.

One thread per store, made at the first use, takes one piece after the other; the commit thread never waits for it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

logger = logging.getLogger("walrusmq.segments")

T = TypeVar("T")


class Background:
    """Called on the event loop's thread."""

    def __init__(self) -> None:
        self._executor: ThreadPoolExecutor | None = None

    def run(self, work: Callable[[], T]) -> asyncio.Future[T]:
        """Have `work` done after what was given before; the future has its result or its exception."""
        if self._executor is None:
            from concurrent.futures import ThreadPoolExecutor

            self._executor = ThreadPoolExecutor(1, thread_name_prefix="walrus-files")
        return asyncio.get_running_loop().run_in_executor(self._executor, work)

    def start(self, what: str, work: Callable[[], None]) -> None:
        """As `run`, for work that nobody waits for: when it fails, the log says so."""

        def ended(future: asyncio.Future[None]) -> None:
            if not future.cancelled() and (error := future.exception()) is not None:
                logger.warning("%s failed: %s", what, error)

        self.run(work).add_done_callback(ended)

    async def stop(self) -> None:
        """End the thread once all that was given is done."""
        if self._executor is not None:
            await self.run(lambda: None)
            executor, self._executor = self._executor, None
            executor.shutdown(wait=True)
