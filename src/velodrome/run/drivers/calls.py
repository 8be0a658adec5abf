"""What follows from requests that a generator tells one by one: percentiles, histogram, and each second."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from velodrome.model.measurement import UNTOLD, Latency, LoadSecond
from velodrome.run.drivers import hdr_text

LONGEST_SERIES_S = 86_400
"""A day: clocks that tell more are wrong."""


@dataclass(frozen=True, eq=False)
class Calls:
    """One place each, in any order."""

    ended_ns: NDArray[np.int64]
    """By any clock."""
    took_ns: NDArray[np.int64]
    right: NDArray[np.bool_]
    """Whether it was answered right."""
    timed: NDArray[np.bool_]
    """Whether its time counts as a latency: it was answered, or given up at that age."""

    def __post_init__(self) -> None:
        """Raise ValueError for times that no clock tells."""
        if len(self.took_ns) and (self.took_ns.min() < 0 or self.ended_ns.min() < 0):
            raise ValueError("a request took less than no time")

    def latency(self) -> Latency:
        """Return exact percentiles: the time within which so many of 100 were answered."""
        times = np.sort(self.took_ns[self.timed])
        if not len(times):
            return UNTOLD

        def at(percentile: float) -> float:
            # Rounded first: 99.9 / 100 × 1000 is 999.0000000000001, and the thousandth is not asked for.
            rank = max(1, math.ceil(round(percentile / 100 * len(times), 6)))
            return float(times[rank - 1]) / 1e6

        mean = float(times.mean()) / 1e6
        return Latency(mean, at(50), at(75), at(90), at(95), at(99), at(99.9), at(100))

    def histogram(self) -> str:
        """Return the histogram of latencies as text."""
        return hdr_text.encode(self.took_ns[self.timed])

    def series(self, span_s: float) -> tuple[LoadSecond, ...]:
        """Return each second of the load, from when the first request began."""
        if not len(self.took_ns):
            return ()
        began = self.ended_ns - self.took_ns
        ended_ns = self.ended_ns - began.min()
        began = began - began.min()
        if ended_ns.max() > (span_s + LONGEST_SERIES_S) * 1e9:
            raise ValueError("its requests lie days apart")
        found = []
        for second in range(math.ceil(span_s)):
            here = (ended_ns >= second * 10**9) & (ended_ns < (second + 1) * 10**9)
            until = (second + 1) * 10**9
            times = np.sort(self.took_ns[here & self.timed])
            right = int((here & self.right).sum())
            found.append(
                LoadSecond(
                    at_s=float(second),
                    requests=int(here.sum()),
                    ok=right,
                    errors=int(here.sum()) - right,
                    in_flight=int(((began < until) & (ended_ns >= until)).sum()),
                    p50_ms=_rank(times, 0.5),
                    p99_ms=_rank(times, 0.99),
                    max_ms=_rank(times, 1.0),
                )
            )
        return tuple(found)


def _rank(times: NDArray[np.int64], share: float) -> float | None:
    return float(times[max(1, math.ceil(share * len(times))) - 1]) / 1e6 if len(times) else None
