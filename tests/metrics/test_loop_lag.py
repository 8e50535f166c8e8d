"""The lag of the loop, and how long a peak is remembered."""

from __future__ import annotations

import asyncio
import time

from walrusmq.metrics.loop_lag import TICK_SECONDS, WINDOW_SECONDS, LoopLag


def hold_the_loop(seconds: float) -> None:
    """Keep the running loop from its timers."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        continue


async def let_timers_run() -> None:
    """Two rounds of the loop: the first puts due timers behind what was ready, the second has run them."""
    await asyncio.sleep(0)
    await asyncio.sleep(0)


def test_a_late_tick_is_the_last_and_the_largest_lag() -> None:
    lag = LoopLag()
    lag.observe(10.0, 10.5)
    lag.observe(11.0, 11.125)
    assert lag.last_seconds == 0.125
    assert lag.max_seconds == 0.5


def test_a_tick_that_comes_early_by_the_clocks_resolution_has_no_lag() -> None:
    lag = LoopLag()
    lag.observe(10.0, 9.999)
    assert lag.last_seconds == 0.0


def test_a_peak_is_remembered_for_one_window_and_forgotten_after_two() -> None:
    lag = LoopLag()
    lag.observe(0.0, 0.0)
    lag.observe(1.0, 1.5)
    lag.observe(WINDOW_SECONDS + 1, WINDOW_SECONDS + 1)
    assert lag.max_seconds == 0.5
    lag.observe(2 * WINDOW_SECONDS + 2, 2 * WINDOW_SECONDS + 2)
    assert lag.max_seconds == 0.0


def test_a_blocked_loop_shows_as_lag() -> None:
    async def measure() -> float:
        lag = LoopLag()
        lag.start()
        hold_the_loop(TICK_SECONDS + 0.2)
        await let_timers_run()
        lag.stop()
        return lag.max_seconds

    assert asyncio.run(measure()) >= 0.2


def test_a_stopped_probe_ticks_no_more() -> None:
    async def measure() -> float:
        lag = LoopLag()
        lag.start()
        lag.stop()
        hold_the_loop(TICK_SECONDS + 0.2)
        await let_timers_run()
        return lag.max_seconds

    assert asyncio.run(measure()) == 0.0
