"""The difference of one figure: after over before, as a log ratio with its standard error.

Paired by block where both were interleaved in one run: what blocks share cancels. Unpaired where they are two stored
runs: the machine drifted between them by nobody knows how much, and no number of blocks tells it; it is presumed to
have drifted by as much as two equal servers differ, and this stays however many blocks there are.

The noise is what the blocks show, moderated by the presumed one (Smyth 2004, see `docs/method.md`), which is scaled up
where this machine is more restless than presumed in most of its figures (`Restlessness`), and never down.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from velodrome.judge.comparing import NOISE_DF
from velodrome.judge.confidence import CONFIDENCE
from velodrome.judge.differing import worlds
from velodrome.judge.differing.worlds import Design
from velodrome.judge.figures.number import Series
from velodrome.judge.residuals import shape
from velodrome.judge.settling import MOST_BLOCKS
from velodrome.model.interval import Interval

_LARGEST = 100.0
"""A log ratio; no number is so much larger than another."""
LEAST_DF = 3
"""Degrees of freedom that the blocks themselves must give before anything is told of a figure: four blocks of a race.

Some servers are fast or slow from start to start (threads that share the interpreter's lock: by 40 %), whatever is
presumed of them: of two or three blocks all may look alike by chance.
"""
_FEWEST_TO_TELL = 3
"""Figures that are needed before the machine is called more restless than presumed."""


@dataclass(frozen=True)
class Two:
    """One figure in the blocks of both sides."""

    before: Series
    after: Series
    drift: float = 0.0
    """What the machine is presumed to drift by between two runs, over the noise; 0: both are of one, interleaved."""

    @property
    def paired(self) -> bool:
        """Whether blocks are compared one by one."""
        return not self.drift

    @property
    def noise(self) -> float:
        """Presumed standard deviation of the log ratio in one block."""
        return max(self.before.noise, self.after.noise)

    @property
    def grain(self) -> float:
        """The variance that counting alone adds to it."""
        return self.before.grain**2 + self.after.grain**2

    @cached_property
    def ratios(self) -> NDArray[np.float64]:
        """Log ratios of the blocks that both have; of runs that are not paired, none."""
        mine, theirs = self.after.values, self.before.values
        shared = [block for block in sorted(mine) if block in theirs] if self.paired else []
        return np.array([math.log(mine[block] / theirs[block]) for block in shared])

    @cached_property
    def design(self) -> Design:
        """How many blocks there are to compare."""
        if self.paired:
            return Design(len(self.ratios), len(self.ratios))
        return Design(len(self.before.values), len(self.after.values), self.drift)

    @cached_property
    def middle(self) -> float:
        """The log ratio."""
        if self.paired:
            return float(self.ratios.mean())
        return float(_logs(self.after.values).mean() - _logs(self.before.values).mean())

    @cached_property
    def residuals(self) -> NDArray[np.float64]:
        """What is left of each ratio after the mean; of unpaired runs of each value, as large as of a ratio."""
        if self.paired:
            return _left(self.ratios)
        both = [_left(_logs(side.values)) for side in (self.before, self.after)]
        return np.concatenate(both) * math.sqrt(2)

    @cached_property
    def own(self) -> float:
        """The variance of a block's log ratio, by these blocks alone; 0 where one block cannot tell."""
        df = self.design.own_df
        return float((self.residuals**2).sum()) / df if df > 0 else 0.0


@dataclass(frozen=True)
class Estimate:
    """How far after is from before, and how sure that is."""

    two: Two
    spread: float
    """Standard deviation of a block's log ratio, moderated."""
    drift: float
    """Standard deviation of what the machine did between two runs; 0 within one."""
    design: Design
    shape: tuple[float, ...] = ()
    bundle: int = 1
    """So many blocks make one value."""

    @property
    def error(self) -> float:
        """Standard error of the log ratio."""
        return self._error(self.design)

    def _error(self, design: Design) -> float:
        if design.paired:
            return self.spread / math.sqrt(design.before)
        blocks = (1 / design.before + 1 / design.after) / 2
        return math.sqrt(self.spread**2 * blocks + self.drift**2)

    @cached_property
    def shown(self) -> Interval:
        """After over before, with the interval of this figure alone."""
        half = worlds.critical(1 - CONFIDENCE, self.design, self.shape) * self.error
        half = min(half, _LARGEST)
        middle = self.two.middle
        return Interval(math.exp(middle - half), math.exp(middle), math.exp(middle + half))

    @property
    def share(self) -> Interval:
        """By which share after is more than before."""
        return Interval(self.shown.low - 1, self.shown.mid - 1, self.shown.high - 1)

    def chance(self, share: float = 0.0) -> float:
        """Return how often blocks differ so much by chance alone, if after truly is so much more than before."""
        distance = self.two.middle - math.log1p(share)
        return worlds.by_chance(distance / self.error, self.design, self.shape)

    @property
    def enough(self) -> bool:
        """Whether there are blocks enough to tell anything of it."""
        return self.design.own_df >= LEAST_DF

    def more_blocks(self, half_below: float, level: float = 1 - CONFIDENCE) -> int | None:
        """Return how many more blocks narrow half the interval, as a log ratio, so far; None: too many for anybody."""
        if self.drift:
            return None
        least = max(self.design.before, LEAST_DF + 1)
        for blocks in range(least, MOST_BLOCKS // self.bundle + 1):
            if self._half_width(blocks, level) < half_below:
                return max(blocks - self.design.before, 1) * self.bundle
        return None

    def _half_width(self, blocks: int, level: float) -> float:
        """Return what half the interval would be with so many blocks on both sides; noise taken as normal."""
        design = Design(blocks, blocks, prior_df=self.design.prior_df)
        df = max(design.prior_df + design.own_df, 1)
        return float(stats.t.ppf(1 - level / 2, df)) * self._error(design)


@dataclass(frozen=True)
class Restlessness:
    """How this machine's noise is to the presumed one, by all figures of a diff together."""

    factor: float
    """Of variances; at least 1."""
    shape: tuple[float, ...]
    """Of what is left of all blocks; empty where they are too few."""

    @staticmethod
    def of(figures: Sequence[Two]) -> "Restlessness":
        """Return it; the median, so that one figure that runs wild does not blur all others."""
        told = [one for one in figures if one.design.own_df > 1]
        if len(told) < _FEWEST_TO_TELL:
            return Restlessness(1.0, ())
        df = float(np.median([one.design.own_df for one in told]))
        middle = float(np.median([one.own / _presumed(one) for one in told]))
        factor = max(1.0, middle * df / float(stats.chi2.ppf(0.5, df)))
        scaled = [one.residuals / math.sqrt(_moderated(one, factor)) for one in told]
        return Restlessness(factor, shape(scaled))


def estimate(two: Two, machine: Restlessness, bundle: int = 1) -> Estimate:
    """Return the difference of a figure on this machine. There is at least one block to compare."""
    presumed, design = _presumed(two) * machine.factor, two.design
    variance = _moderated(two, machine.factor)
    own_df = design.own_df
    if own_df > 1 and two.own > presumed * float(stats.f.ppf(CONFIDENCE, own_df, NOISE_DF)):
        # Clearly noisier than presumed: what is presumed says nothing about this figure.
        design = Design(design.before, design.after, design.drift, 0.0)
        variance = two.own
    drift = two.drift * math.sqrt(presumed)
    return Estimate(two, math.sqrt(variance), drift, design, machine.shape, bundle)


def _presumed(two: Two) -> float:
    return two.noise**2 + two.grain


def _moderated(two: Two, factor: float) -> float:
    own_df = two.design.own_df
    return float((NOISE_DF * _presumed(two) * factor + own_df * two.own) / (NOISE_DF + own_df))


def _logs(values: Mapping[int, float]) -> NDArray[np.float64]:
    logs: NDArray[np.float64] = np.log(np.array(list(values.values())))
    return logs


def _left(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return what is left of values after their mean."""
    left: NDArray[np.float64] = values - values.mean()
    return left
