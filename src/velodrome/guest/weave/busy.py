"""CPU time that an endpoint burns: a loop in pure Python, as long as this interpreter needs it to be.

    python -m velodrome.guest.weave.busy        prints the nanoseconds of one turn: 11.84

The count is found once per process; requests then do constant *work*, not constant time: a handler that
watched a clock would hide a slow or crowded machine, which is what a measurement is to show. Servers that
are compared should do the same work too: who runs them asks once, in a quiet moment, and gives the answer
to all in `VELODROME_TURN_NS`; a server that is not told finds out by itself.
"""

from __future__ import annotations

import os
import time

TURN_VARIABLE = "VELODROME_TURN_NS"
"""Environment variable that may carry the nanoseconds of one turn of the loop into a server process."""

ROUND = 10_000
"""Turns of one calibration run: a fraction of a millisecond, so that some runs meet no interrupt at all."""

ROUNDS = 200
"""The fastest of so many runs counts: noise (an interrupt, a cold cache, a busy sibling core) only adds."""


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
    if not us:
        return 0
    told = os.environ.get(TURN_VARIABLE)
    return round(us / 1e6 / (float(told) / 1e9 if told else seconds_per_turn()))


if __name__ == "__main__":
    print("%.4g" % (seconds_per_turn() * 1e9))
