"""The thread for files."""

from __future__ import annotations

import logging
import threading

import pytest
from support.segment_stores import in_loop

from walrusmq.segments.background import Background


def broken() -> None:
    raise OSError("no such luck")


@in_loop
async def test_work_is_done_in_order_on_one_thread() -> None:
    background = Background()
    done: list[tuple[int, str]] = []
    futures = [
        background.run(lambda number=number: done.append((number, threading.current_thread().name)))
        for number in range(10)
    ]
    for future in futures:
        await future
    assert [number for number, _ in done] == list(range(10))
    assert len({name for _, name in done}) == 1
    await background.stop()


@in_loop
async def test_results_and_errors_come_back() -> None:
    background = Background()
    assert await background.run(lambda: 42) == 42
    with pytest.raises(OSError, match="no such luck"):
        await background.run(broken)
    await background.stop()


@in_loop
async def test_work_that_nobody_waits_for_fails_into_the_log(caplog: pytest.LogCaptureFixture) -> None:
    background = Background()
    with caplog.at_level(logging.WARNING, logger="walrusmq.segments"):
        background.start("removing something", broken)
        await background.stop()
    assert caplog.messages == ["removing something failed: no such luck"]


@in_loop
async def test_a_stop_waits_for_all_work_and_leaves_no_thread() -> None:
    threads = threading.active_count()
    background = Background()
    await background.stop()
    done: list[int] = []
    for number in range(50):
        background.start("counting", lambda number=number: done.append(number))  # type: ignore[misc]
    await background.stop()
    assert done == list(range(50))
    assert threading.active_count() == threads
