"""Several commands proposed at once, each with an outcome of its own, within the time that a client gives."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from walrusmq.protocol.errors import KafkaError, RequestTimedOut


async def propose_each(
    propose: Callable[[Any], Coroutine[Any, Any, Any]], commands: Sequence[Any], timeout_ms: int
) -> list[Any]:
    """Propose all, in order and without waiting in between; returns what applying each gave, or its KafkaError.

    A command whose outcome isn't known after ``timeout_ms`` gets RequestTimedOut, and may still take effect.
    """
    if not commands:
        return []
    tasks = [asyncio.create_task(propose(command)) for command in commands]
    for task in tasks:
        task.add_done_callback(_note_error)
    await asyncio.wait(tasks, timeout=timeout_ms / 1000)
    return [_outcome(task) for task in tasks]


def _outcome(task: asyncio.Task[Any]) -> Any:
    if not task.done():
        return RequestTimedOut("the metadata log hasn't confirmed this in time; it may still take effect")
    error = task.exception()
    if error is None:
        return task.result()
    if isinstance(error, KafkaError):
        return error
    raise error


def _note_error(task: asyncio.Task[Any]) -> None:
    """An error that comes when the client has its answer already is nothing for asyncio to complain about."""
    if not task.cancelled():
        task.exception()
