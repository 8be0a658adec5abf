"""CPU time that an endpoint burns: a loop in pure Python, as long as this interpreter needs it to be.

The count is found once per process; requests then do constant *work*, not constant time: a handler that
watched a clock would hide a slow or crowded machine, which is what a measurement is to show.
"""

from __future__ import annotations

import time

ROUND = 40_000
"""Turns of one calibration run: about 1 ms, long beside the clock's grain, short beside a time slice."""

ROUNDS = 25
"""The fastest of so many runs counts: noise (another thread, an interrupt, a cold cache) only ever adds."""


def _turn(count: int) -> float:
    """Return the seconds of this thread's CPU time that the loop of a handler takes for `count` turns."""
    started = time.thread_time()
    for _ in range(count):
        pass
    return time.thread_time() - started


def seconds_per_turn() -> float:
    """Return the CPU seconds of one turn of the loop on this interpreter and machine, now."""
    _turn(ROUND)  # lets an adaptive interpreter specialise the loop
    return min(_turn(ROUND) for _ in range(ROUNDS)) / ROUND


def calibrated(us: float) -> int:
    """Return how many turns of the loop keep the CPU busy for `us` microseconds."""
    return round(us / 1e6 / seconds_per_turn()) if us else 0
