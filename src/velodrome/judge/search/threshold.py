"""Where a yes turns into a no, from noisy answers: what is known of a threshold, and where to ask next.

A rate holds with a probability that falls from one to zero around the threshold θ: a logistic curve over the rate's
logarithm, as steep as the machine is quiet. A few answers are wrong whatever the rate (a neighbour woke up). Bayes'
rule over a grid of thresholds and steepnesses gives what is known after some answers; the next rate is the one of a few
candidates after whose answer least is expected to remain unknown. These are the adaptive methods of psychophysics,
where the observer is as noisy as a server: Watson and Pelli, «QUEST: a Bayesian adaptive psychometric method»,
Perception & Psychophysics 33, 1983; Kontsevich and Tyler, «Bayesian adaptive estimation of psychometric slope and
threshold», Vision Research 39, 1999.
"""

import math

import numpy as np
from numpy.typing import NDArray

from velodrome.model.interval import Interval

LAPSE = 0.08
"""Answers that have nothing to do with the rate: one in twelve, half of them wrong."""
WIDTHS = (0.003, 0.01, 0.02, 0.04, 0.08, 0.16)
"""How far around the threshold answers vary, as parts of the rate; all equally likely beforehand."""
STEP = 0.0025
"""Of the grid, in logarithms of the rate: a quarter of a percent."""
MOST_POINTS = 1_500
CANDIDATES = (0.05, 0.2, 0.35, 0.5, 0.65, 0.8, 0.95)
"""Quantiles of what is known, at which the next question may be asked."""

FORECAST_SPREAD = 0.25
"""Of a forecast, in logarithms of the rate: as wrong as this it usually is."""
FORECAST_WRONG = 0.1
"""Share of forecasts that say nothing."""

Floats = NDArray[np.float64]


class Threshold:
    """What is known of a threshold between two rates."""

    def __init__(self, low: float, high: float, expected: float | None = None) -> None:
        """`expected` is where it lies if a forecast is right; None: it is as likely anywhere."""
        self.low, self.high = low, high
        points = max(3, min(MOST_POINTS, math.ceil(math.log(high / low) / STEP) + 1))
        self._rates: Floats = np.linspace(math.log(low), math.log(high), points)
        self._widths: Floats = np.array(WIDTHS)
        likely = np.ones(points) if expected is None else _around(self._rates, math.log(expected))
        self._known: Floats = np.repeat(likely[:, None], len(WIDTHS), axis=1)
        self._known /= self._known.sum()

    def learn(self, rate: float, held: bool) -> None:
        """Take an answer in."""
        likely = self._holds(math.log(rate))
        self._known = self._known * (likely if held else 1.0 - likely)
        self._known /= self._known.sum()

    def interval(self, share: float = 0.95) -> Interval:
        """Return the threshold with the interval that holds it with the probability `share`."""
        low, mid, high = self._quantiles(((1 - share) / 2, 0.5, (1 + share) / 2))
        return Interval(low, mid, high)

    def next(self) -> float:
        """Return the rate to ask at."""
        found = sorted(set(self._quantiles(CANDIDATES)))
        return min(found, key=self._unknown_after)

    def _holds(self, rate: float) -> Floats:
        """Return the probability that a rate (its logarithm) holds, for every threshold and width."""
        distance = (self._rates[:, None] - rate) / self._widths[None, :]
        curve: Floats = 1.0 / (1.0 + np.exp(-np.clip(distance, -50.0, 50.0)))
        return LAPSE / 2 + (1 - LAPSE) * curve

    def _quantiles(self, shares: tuple[float, ...]) -> list[float]:
        sums = np.cumsum(self._known.sum(axis=1))
        places = np.searchsorted(sums, shares).clip(0, len(sums) - 1)
        return [float(rate) for rate in np.exp(self._rates[places])]

    def _unknown_after(self, rate: float) -> float:
        """Return the entropy of the threshold that is expected to remain after asking at a rate."""
        likely = self._holds(math.log(rate))
        yes = self._known * likely
        no = self._known - yes
        return float(_entropy(yes) + _entropy(no))


def _around(rates: Floats, expected: float) -> Floats:
    """Return a peak at what is expected, on a floor for the forecast that is wrong."""
    peak = np.exp(-np.abs(rates - expected) / FORECAST_SPREAD)
    found: Floats = peak / peak.sum() * (1 - FORECAST_WRONG) + FORECAST_WRONG / len(rates)
    return found


def _entropy(joint: Floats) -> float:
    """Return an answer's probability times the entropy of the threshold given it."""
    marginal = joint.sum(axis=1)
    total = float(marginal.sum())
    if total <= 0:
        return 0.0
    positive = marginal[marginal > 0]
    return float(-(positive * np.log(positive / total)).sum())
