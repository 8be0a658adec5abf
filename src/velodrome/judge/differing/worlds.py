"""How large a difference looks by chance alone: a bootstrap of worlds in which nothing changed.

Each world has a true noise of its own, drawn around the presumed one, because that is not known exactly; its blocks are
drawn from what is left of this machine's blocks (residuals, both signs), or are normal where these are too few. In
each the same statistic is taken as of the measurements: the mean difference over its standard error (bootstrap-t:
Efron and Tibshirani, «An Introduction to the Bootstrap», 1993, chapters 12 and 16).
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from velodrome.judge.comparing import NOISE_DF

WORLDS = 25_000
"""The smallest chance that can be told is one over these: enough for a thousand figures looked at together."""
_AT_ONCE = 2_000_000
"""Numbers drawn at once."""


@dataclass(frozen=True)
class Design:
    """How many blocks there are of both sides, and what is known of their noise beside them."""

    before: int
    after: int
    drift: float = 0.0
    """What the machine drifted by between two runs, over the presumed noise; 0: interleaved in one, block by block."""
    prior_df: float = NOISE_DF
    """Degrees of freedom of the presumed noise; 0: these blocks alone tell it."""

    @property
    def paired(self) -> bool:
        """Whether blocks are compared one by one."""
        return not self.drift

    @property
    def own_df(self) -> int:
        """Degrees of freedom that the blocks themselves give their noise."""
        return self.before - 1 if self.paired else self.before + self.after - 2


def by_chance(t: float, design: Design, shape: tuple[float, ...] = ()) -> float:
    """Return in which share of worlds without a difference the statistic is at least as far from 0 as `t`.

    With a shape of the noise, the larger of that by the shape and that by normal noise.
    """
    found = (
        (1 + WORLDS - int(np.searchsorted(_statistics(design, one), abs(t)))) / (WORLDS + 1)
        for one in {(), shape}
    )
    return min(1.0, max(found))


def critical(chance: float, design: Design, shape: tuple[float, ...] = ()) -> float:
    """Return how many standard errors a difference reaches by chance in a share of worlds."""
    return max(float(np.quantile(_statistics(design, one), 1 - chance)) for one in {(), shape})


@lru_cache(maxsize=128)
def _statistics(design: Design, shape: tuple[float, ...]) -> NDArray[np.float64]:
    """Return the statistic's distance from 0 in every world, sorted."""
    draw = np.random.default_rng(20_071)
    blocks = design.before if design.paired else design.before + design.after
    at_once = max(1, _AT_ONCE // blocks)
    parts = [_drawn(design, shape, min(at_once, WORLDS - done), draw) for done in range(0, WORLDS, at_once)]
    return np.sort(np.concatenate(parts))


def _drawn(
    design: Design, shape: tuple[float, ...], worlds: int, draw: np.random.Generator
) -> NDArray[np.float64]:
    prior = design.prior_df

    def values(blocks: int) -> NDArray[np.float64]:
        size = (worlds, blocks)
        return draw.choice(np.array(shape), size) if shape else draw.standard_normal(size)

    def true_noise(df: float = prior) -> NDArray[np.float64]:
        return np.sqrt(df / draw.chisquare(df, worlds)) if df else np.ones(worlds)

    if design.paired:
        ratios = values(design.before) * true_noise()[:, None]
        spread = _moderated(_squares(ratios), design, 1.0)
        return _over(ratios.mean(axis=1), np.sqrt(spread / design.before))
    # One value has half the variance of a ratio of two; the drift is told as a multiple of the noise of a ratio.
    noise = true_noise()[:, None] * np.sqrt(0.5)
    before, after = values(design.before) * noise, values(design.after) * noise
    drift = design.drift * draw.standard_normal(worlds) * true_noise(NOISE_DF)
    spread = _moderated(_squares(before) + _squares(after), design, 0.5)
    error = np.sqrt(spread * (1 / design.before + 1 / design.after) + design.drift**2)
    return _over(after.mean(axis=1) - before.mean(axis=1) + drift, error)


def _over(difference: NDArray[np.float64], error: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return how far from 0, in standard errors; blocks that agree to the last digit are as far as can be."""
    found = np.full(difference.shape, np.inf)
    np.divide(np.abs(difference), error, out=found, where=error > 0)
    return found


def _squares(values: NDArray[np.float64]) -> NDArray[np.float64]:
    squares: NDArray[np.float64] = ((values - values.mean(axis=1, keepdims=True)) ** 2).sum(axis=1)
    return squares


def _moderated(squares: NDArray[np.float64], design: Design, presumed: float) -> NDArray[np.float64]:
    """Return the variance as `estimating` takes it: the presumed one and the blocks' own, each by its weight."""
    return (design.prior_df * presumed + squares) / (design.prior_df + design.own_df)
