"""The share of requests without a right answer, before and after.

Failures come together (one pause makes a hundred time-outs), so a share of a count is less sure than the count alone
says: its variance is inflated by what the blocks show beyond it (overdispersion; McCullagh and Nelder, «Generalized
Linear Models», 1989, section 4.5), moderated by a presumed one, and never deflated. The interval of the difference is
made of Wilson's intervals of both sides (R. G. Newcombe, «Interval Estimation for the Difference between Independent
Proportions», Statistics in Medicine 17, 1998, method 10), with counts divided by that inflation.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from scipy import stats

from velodrome.judge.comparing import NOISE_DF
from velodrome.judge.confidence import CONFIDENCE
from velodrome.judge.differing.estimating import LEAST_DF
from velodrome.judge.field import failures
from velodrome.judge.figures.cell import Cell
from velodrome.judge.figures.number import Missing
from velodrome.model.interval import Interval
from velodrome.model.load import Load

PRESUMED = 2.0
"""Of failures that nothing but chance spreads over blocks it is 1; theirs come in bursts."""


@dataclass(frozen=True)
class Failing:
    """Failures of both sides."""

    before: Sequence[tuple[int, int]]
    """(failed, asked) of each block."""
    after: Sequence[tuple[int, int]]

    @property
    def shares(self) -> tuple[float, float]:
        """Failed of all asked, before and after."""
        return _share(self.before), _share(self.after)

    @property
    def any(self) -> bool:
        """Whether a request failed at all."""
        return any(self.shares)

    @property
    def enough(self) -> bool:
        """Whether there are blocks enough to tell anything of it: how failures come together is seen in them."""
        return len(self.before) + len(self.after) - 2 >= LEAST_DF

    @property
    def inflation(self) -> float:
        """By how much the variance is larger than that of independent failures."""
        df = len(self.before) + len(self.after) - 2
        own = sum(map(_pearson, (self.before, self.after)))
        return max(1.0, (NOISE_DF * PRESUMED + own) / (NOISE_DF + df))

    @property
    def alone(self) -> Interval:
        """The share after, whatever it was before."""
        return Interval(*self._wilson(self.after))

    @property
    def shown(self) -> Interval:
        """After less before, as a share of the requests."""
        (low, mid, high), (low_after, mid_after, high_after) = map(self._wilson, (self.before, self.after))
        difference = mid_after - mid
        below = math.hypot(mid_after - low_after, high - mid)
        above = math.hypot(high_after - mid_after, mid - low)
        return Interval(difference - below, difference, difference + above)

    @property
    def share(self) -> Interval:
        """The same: it is a share already."""
        return self.shown

    def more_blocks(self, _half_below: float, _level: float = 0.05) -> None:
        """Return None: how failures will come cannot be told."""

    def chance(self, share: float = 0.0) -> float:
        """Return how often shares differ so much by chance alone, if they truly differ by `share`."""
        asked = [sum(count for _, count in side) for side in (self.before, self.after)]
        pooled = sum(failed for failed, _ in (*self.before, *self.after)) / sum(asked)
        variance = self.inflation * pooled * (1 - pooled) * (1 / asked[0] + 1 / asked[1])
        if not variance:
            return 1.0
        df = NOISE_DF + len(self.before) + len(self.after) - 2
        before, after = self.shares
        return float(2 * stats.t.sf(abs(after - before - share) / math.sqrt(variance), df))

    def _wilson(self, side: Sequence[tuple[int, int]]) -> tuple[float, float, float]:
        asked = max(round(sum(count for _, count in side) / self.inflation), 1)
        failed = min(round(sum(count for count, _ in side) / self.inflation), asked)
        bounds = stats.binomtest(failed, asked).proportion_ci(CONFIDENCE, "wilson")
        return float(bounds.low), _share(side), float(bounds.high)


def failing(before: Cell, after: Cell, load: Load) -> Failing | Missing:
    """Return the failures of two cells, or why they are not told. Measurements set aside because of them count."""
    sides = []
    for cell in (before, after):
        seen = cell.seen(load)
        if isinstance(seen, Missing):
            return seen
        counts = [(max(failures(one, load), 0), one.load.requests) for one in seen if one.load.requests]
        if not counts:
            return Missing(f"nothing was asked of {cell.runner.called} under {load.label}")
        sides.append([(min(failed, asked), asked) for failed, asked in counts])
    return Failing(sides[0], sides[1])


def _share(side: Sequence[tuple[int, int]]) -> float:
    return sum(failed for failed, _ in side) / sum(asked for _, asked in side)


def _pearson(side: Sequence[tuple[int, int]]) -> float:
    """Return the squares of what blocks differ by from their side's share, over their variance by chance."""
    share = _share(side)
    if not 0 < share < 1:
        return 0.0
    return sum((failed - asked * share) ** 2 / (asked * share * (1 - share)) for failed, asked in side)
