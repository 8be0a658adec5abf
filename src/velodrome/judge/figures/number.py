"""A number of a cell, before it is compared: block by block, once with what is known of it, or missing."""

from collections.abc import Mapping
from dataclasses import dataclass

from scipy import stats

from velodrome.judge.comparing import NOISE
from velodrome.model.interval import Interval

CONFIDENCE = 0.95


@dataclass(frozen=True)
class Series:
    """A number in each block, all above 0; compared block by block."""

    values: Mapping[int, float]
    grain: float = 0.0
    """Standard deviation, as a share of the value, that counting alone, or a grid, gives it."""
    noise: float = NOISE
    """Standard deviation of the log ratio of two equal servers, where repeats cannot tell it."""
    limit: str = ""
    """`at least` or `at most`: the number is where what was tried ended, not where the server did."""


@dataclass(frozen=True)
class Known:
    """A number that blocks do not pair: a share of a count, a fact, a profile."""

    interval: Interval


@dataclass(frozen=True)
class Missing:
    """Why there is no number."""

    reason: str


Number = Series | Known | Missing


def share(count: int, of: int) -> Known | Missing:
    """Return a share with its interval by Wilson's score (E. B. Wilson, JASA 22, 1927): right near 0 and 1 too."""
    if of <= 0:
        return Missing("nothing was asked")
    bounds = stats.binomtest(count, of).proportion_ci(CONFIDENCE, "wilson")
    return Known(Interval(float(bounds.low), count / of, float(bounds.high)))


def counted(values: list[float]) -> Known | Missing:
    """Return a count of events over blocks: its mean, and the fewest and most seen in a block."""
    if not values:
        return Missing("no block tells it")
    return Known(Interval(min(values), sum(values) / len(values), max(values)))
