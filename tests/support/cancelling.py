"""Cancels a coroutine at a suspension that is chosen, not at a time that is guessed."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Generator
from types import coroutine
from typing import Any, TypeVar

T = TypeVar("T")


@coroutine
def cancelled_at(suspension: int, work: Coroutine[Any, Any, T]) -> Generator[Any, None, T]:
    """Await ``work``, whose ``suspension``-th wait (from 1) the running task's cancellation meets; else its result."""
    steps = work.__await__()
    count = 0
    go_on = steps.__next__
    while True:
        try:
            awaited = go_on()
        except StopIteration as end:
            return end.value
        count += 1
        task = asyncio.current_task()
        if count == suspension and task is not None:
            task.cancel()
        try:
            yield awaited
            go_on = steps.__next__
        except BaseException as error:
            thrown = error
            go_on = lambda: steps.throw(thrown)  # noqa: E731, B023
