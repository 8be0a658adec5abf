"""Compares contestants block by block: ratios with intervals that hold for all of them at once.

The method and its sources are told in `docs/method.md`, «Comparing». In short: values are compared as logs,
within blocks; the spread of a pair is what it shows itself, moderated by what the other contestants show and
by what two equal servers are known to differ by; and the width of an interval comes from a bootstrap of the
whole comparison, the choice of the best included, because the best of ten equal ones always looks better.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from velodrome.judge.confidence import CONFIDENCE
from velodrome.judge.residuals import shape
from velodrome.model.interval import Interval

NOISE = 0.037
"""Standard deviation, from block to block, of the ratio of two equal servers (docs/method.md, 24 blocks)."""
NOISE_DF = 4.0
"""How many degrees of freedom that knowledge is given: about as much as five blocks of one's own."""
SHARED_DF = 8.0
"""How many the spread of the other contestants is given at most: contestants need not be equally noisy."""
_WORLDS = 4000


@dataclass(frozen=True)
class Sample:
    """One contestant: its value in each valid block, all above 0."""

    label: str
    values: Mapping[int, float]
    grain: float = 0.0
    """Standard deviation, as a share of the value, that counting whole requests alone gives it."""


@dataclass(frozen=True)
class Pair:
    """One contestant over another."""

    ratio: Interval
    spread: float
    """Standard deviation of the log ratio from block to block, moderated."""
    blocks: int

    @property
    def settled(self) -> bool:
        """Whether the interval leaves out equality."""
        return self.ratio.low > 1 or self.ratio.high < 1


@dataclass
class Comparison:
    """All contestants of one question in one quantity. At least one, each with at least one block."""

    samples: Sequence[Sample]
    noise: float = NOISE
    _logs: dict[str, dict[int, float]] = field(init=False)
    _own: dict[str, float] = field(init=False)
    _shape: tuple[float, ...] = field(init=False)

    def __post_init__(self) -> None:
        self._logs = {
            sample.label: {block: math.log(value) for block, value in sample.values.items()}
            for sample in self.samples
        }
        self._grains = {sample.label: sample.grain for sample in self.samples}
        residuals = _residuals(self._logs)
        self._own = {label: float(np.mean(found**2)) for label, found in residuals.items() if found.size > 1}
        self._shape = shape(residuals.values())

    def alone(self, label: str) -> Interval:
        """Return the value of one contestant over its blocks, with the interval its own spread deserves."""
        logs = np.array(list(self._logs[label].values()))
        noise = (self.noise**2) / 2 + self._grains[label] ** 2
        variance = _moderated([(NOISE_DF, noise), (len(logs) - 1.0, _variance(logs))])
        half = critical(1, len(logs), NOISE_DF) * math.sqrt(variance / len(logs))
        return _interval(float(logs.mean()), half)

    def pair(self, label: str, other: str) -> Pair | None:
        """Return `label` over `other`, over the blocks both have; None when they share none."""
        mine, theirs = self._logs[label], self._logs[other]
        ratios = np.array([mine[block] - theirs[block] for block in mine if block in theirs])
        if not ratios.size:
            return None
        shared_df, shared = self._shared(label, other)
        grain = self._grains[label] ** 2 + self._grains[other] ** 2
        prior_df = NOISE_DF + shared_df
        prior = _moderated([(NOISE_DF, self.noise**2), (shared_df, shared)])
        own_df, own = ratios.size - 1.0, _variance(ratios)
        variance = _moderated([(prior_df, prior + grain), (own_df, own)])
        if own_df and own > (prior + grain) * float(stats.f.ppf(CONFIDENCE, own_df, prior_df)):
            # Clearly noisier than the field: what the others show says nothing about this pair.
            variance = own
        width = critical(len(self.samples), ratios.size, prior_df, self._shape)
        half = width * math.sqrt(variance / ratios.size)
        return Pair(_interval(float(ratios.mean()), half), math.sqrt(variance), ratios.size)

    def half_width(self, pair: Pair, blocks: int) -> float:
        """Return what half the interval of a pair, as a log ratio, would be with that many blocks."""
        return critical(len(self.samples), blocks, NOISE_DF + SHARED_DF) * pair.spread / math.sqrt(blocks)

    def _shared(self, label: str, other: str) -> tuple[float, float]:
        """Return degrees of freedom and variance that the rest of the field lends to a pair.

        The median, so that one contestant that runs wild does not widen the intervals of all others; it is
        divided by the median of its own distribution to be unbiased.
        """
        rest = [own for name, own in self._own.items() if name not in (label, other)]
        if len(rest) < 3:
            return 0.0, 0.0
        df = float(np.median([len(logs) for logs in self._logs.values()])) - 1
        if df < 1:
            return 0.0, 0.0
        return min(SHARED_DF, df * len(rest)), 2 * float(np.median(rest)) * df / float(
            stats.chi2.ppf(0.5, df)
        )


@lru_cache(maxsize=512)
def critical(contestants: int, blocks: int, prior_df: float, shape: tuple[float, ...] = ()) -> float:
    """Return how many standard errors wide half an interval must be to hold for a whole field of equals.

    Draws worlds in which all contestants are equal, picks the best in each as the judge does, and takes the
    95th percentile of the largest |t| between the best and any other. Each world has its own true variance,
    drawn around the known one with `prior_df` degrees of freedom. With one contestant it is the t of its
    mean, with two that of their difference (Student's, for normal noise); with more it grows like Tukey's
    range.
    """
    draw = np.random.default_rng(20_071)
    scale = np.sqrt(prior_df / draw.chisquare(prior_df, (_WORLDS, 1, 1)))
    size = (_WORLDS, contestants, blocks)
    noise = draw.choice(np.array(shape), size) if shape else draw.standard_normal(size)
    noise = noise * scale / (1 if contestants == 1 else math.sqrt(2))
    best = noise.mean(axis=2).argmax(axis=1)
    gaps = noise if contestants == 1 else noise[np.arange(_WORLDS), best][:, None, :] - noise
    variance = gaps.var(axis=2, ddof=1) if blocks > 1 else np.zeros(gaps.shape[:2])
    moderated = (prior_df + (blocks - 1) * variance) / (prior_df + blocks - 1)
    t = np.abs(gaps.mean(axis=2)) * math.sqrt(blocks) / np.sqrt(moderated)
    return float(np.quantile(t.max(axis=1), CONFIDENCE))


def _residuals(logs: Mapping[str, Mapping[int, float]]) -> dict[str, NDArray[np.float64]]:
    """Return what is left of each value after its contestant's level and its block's: a two-way fit.

    Scaled so that their mean square is the variance of one value (the fit takes degrees of freedom away).
    """
    cells = [(label, block, value) for label, values in logs.items() for block, value in values.items()]
    labels, blocks = list(logs), sorted({block for _, block, _ in cells})
    design = np.zeros((len(cells), len(labels) + len(blocks)))
    for row, (label, block, _) in enumerate(cells):
        design[row, labels.index(label)] = 1
        design[row, len(labels) + blocks.index(block)] = 1
    values = np.array([value for _, _, value in cells])
    fit, _, rank, _ = np.linalg.lstsq(design, values, rcond=None)
    left = values - design @ fit
    df = len(cells) - int(rank)
    left = left * math.sqrt(len(cells) / df) if df > 0 else np.zeros(len(cells))
    return {
        label: np.array([left[row] for row, cell in enumerate(cells) if cell[0] == label if df > 0])
        for label in labels
    }


def _moderated(parts: Sequence[tuple[float, float]]) -> float:
    """Return the mean of variances, each weighted by its degrees of freedom (Smyth 2004, formula of s̃²)."""
    return sum(df * variance for df, variance in parts) / sum(df for df, _ in parts)


def _variance(values: NDArray[np.float64]) -> float:
    return float(values.var(ddof=1)) if values.size > 1 else 0.0


def _interval(middle: float, half: float) -> Interval:
    return Interval(math.exp(middle - half), math.exp(middle), math.exp(middle + half))
