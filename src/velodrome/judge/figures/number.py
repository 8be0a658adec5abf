"""A number of a cell, before it is compared: block by block, once with what is known of it, or missing."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from scipy import stats

from velodrome.judge.comparing import NOISE
from velodrome.judge.confidence import CONFIDENCE
from velodrome.model.interval import Interval


class Side(StrEnum):
    """Where the true number lies, seen from the one measured."""

    AT_LEAST = "at least"
    AT_MOST = "at most"


@dataclass(frozen=True)
class Limit:
    """A number is where the measuring ended, not where the server did."""

    side: Side
    cure: str
    """What would let it reach further."""

    @property
    def flipped(self) -> "Limit":
        """Return the same of one over the number."""
        return replace(self, side=Side.AT_MOST if self.side is Side.AT_LEAST else Side.AT_LEAST)


@dataclass(frozen=True)
class Series:
    """A number in each block, all above 0; compared block by block."""

    values: Mapping[int, float]
    grain: float = 0.0
    """Standard deviation, as a share of the value, that counting alone, or a grid, gives it."""
    noise: float = NOISE
    """Standard deviation of the log ratio of two equal servers, where repeats cannot tell it."""
    limit: Limit | None = None


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
