"""Tells while a rate is being tried that it is too high: the backlog rises, and not by chance.

Backlog is what fell due and is not answered. A server that keeps up has one that goes up and down; one that is asked
for more than it can do has one that rises by the difference, every second, long before anything times out. So the slope
of the last half of what was seen is fitted by least squares, and a rate is too high where even the lower end of the
slope's interval is a good part of the rate (the idea of GuideLLM's over-saturation detector, which watches concurrency
and the time to the first token). Neighbouring values of a queue are like each other, which makes a fit look surer than
it is: the interval is widened by the effective number of values, n (1 − r) ÷ (1 + r), with r the correlation of
neighbouring residuals (Bayley and Hammersley, «The "effective" number of independent observations in an autocorrelated
time series», JRSS Supplement 8, 1946).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

LOST = 0.05
"""Too high: the server falls behind by at least this part of the rate."""
LEAST_SECONDS = 1.0
"""Seen before anything is said."""
LEAST_VALUES = 6
SURE = 3.0
"""Standard errors below the slope: a rate is looked at again and again, so that one in a thousand must do."""
STANDING = 0.25
"""And the backlog must be worth at least so many seconds of the rate: a small queue may fill quickly and stay."""


@dataclass(frozen=True)
class Slope:
    """Requests a second by which a backlog rises, and its standard error."""

    per_s: float
    error: float


def slope(values: Sequence[tuple[float, float]]) -> Slope | None:
    """Return how (seconds, backlog) rises; None for too few values."""
    count = len(values)
    if count < LEAST_VALUES:
        return None
    mean_t = sum(at for at, _ in values) / count
    mean_b = sum(backlog for _, backlog in values) / count
    spread = sum((at - mean_t) ** 2 for at, _ in values)
    if spread <= 0:
        return None
    per_s = sum((at - mean_t) * (backlog - mean_b) for at, backlog in values) / spread
    rest = [backlog - mean_b - per_s * (at - mean_t) for at, backlog in values]
    squares = sum(one * one for one in rest)
    alike = sum(a * b for a, b in pairwise(rest)) / squares if squares else 0.0
    alike = min(max(alike, 0.0), 0.9)
    effective = max(count * (1 - alike) / (1 + alike), 3.0)
    error = math.sqrt(squares / (effective - 2) / spread) * math.sqrt(count / effective)
    return Slope(per_s, error)


def rises(values: Sequence[tuple[float, float]], rate: float) -> Slope | None:
    """Return the slope of a backlog that shows `rate` to be too high, else None. `values`: (seconds, backlog)."""
    if not values or values[-1][0] - values[0][0] < LEAST_SECONDS:
        return None
    middle = (values[0][0] + values[-1][0]) / 2
    found = slope([one for one in values if one[0] >= middle])
    if found is None or values[-1][1] < STANDING * rate:
        return None
    return found if found.per_s - SURE * found.error > LOST * rate else None
