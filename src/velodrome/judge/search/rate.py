"""The highest rate at which a condition holds.

    found = highest_rate(lambda rate: Probe(rate, held=rate < 970), RateSearch(first=100))
    found.ending, found.interval        # converged, Interval(951, 968, 985)

First the rate is doubled while it holds, or halved until it does; then all trials are near the edge (`Threshold`),
where the same rates come up again as often as the noise demands. Sought is the rate of which half of the trials hold:
below the interval nearly all do, above it nearly none.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from velodrome.model.quantity import Interval
from velodrome.model.search import Ending, Probe, RateFound

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


# --- The highest rate at which a condition holds.

FIRST = 0.5
"""Of what a closed loop got, the rate that is tried first: it surely holds, if any near does."""
ROOM = 4.0
"""The edge is looked for so many times beyond what was tried: the first answers may have been wrong."""
NEAR = 3
"""So many trials on either side of the edge must have said so before it is believed, none further from it than"""
NEARBY = 2.0
"""times the tolerance."""
LEAST_TRIALS = 2
"""A rate that ends the search by itself, the lowest or the highest, is tried so often."""


@dataclass(frozen=True)
class RateSearch:
    """What to search, and how long."""

    first: float
    lowest: float = 1.0
    highest: float = 1e7
    tolerance: float = 0.05
    """The interval is to be no wider than this part of the rate."""
    most: int = 40
    """Trials."""


@dataclass
class _Search:
    measure: Callable[[float], Probe]
    asked: RateSearch
    probes: list[Probe] = field(default_factory=list)
    ceiling: float = 0.0
    """From here on the generator is the limit; 0: not met yet."""

    def run(self) -> RateFound:
        ended = self._bracket()
        return ended if ended is not None else self._narrow()

    def _try(self, rate: float) -> Probe:
        probe = self.measure(rate)
        self.probes.append(probe)
        return probe

    def _spent(self) -> bool:
        return len(self.probes) >= self.asked.most

    def _ended(self, ending: Ending, because: str, interval: Interval | None = None) -> RateFound:
        return RateFound(ending, interval, because, tuple(self.probes))

    def _told(self) -> list[Probe]:
        return [probe for probe in self.probes if probe.held is not None and not probe.spoilt]

    def _bracket(self) -> RateFound | None:
        """Double or halve until one rate held and a higher one did not; None when that is so."""
        rate = min(max(self.asked.first, self.asked.lowest), self.asked.highest)
        while not self._spent():
            probe = self._try(rate)
            if probe.everywhere:
                return self._ended(Ending.NEVER, probe.why)
            if probe.held is None and not probe.spoilt:
                if self._tried(rate) >= LEAST_TRIALS:
                    return self._ended(Ending.CANNOT, probe.why)
                continue
            if probe.spoilt and self._tried(rate) < LEAST_TRIALS:
                # The machine may have paused, and once is no limit.
                continue
            if probe.spoilt:
                self.ceiling = min(self.ceiling or rate, rate)
            held = [one.rate for one in self._told() if one.held]
            broken = [one.rate for one in self._told() if not one.held]
            if held and broken and max(held) < max(broken):
                return None
            following = self._following(held, broken)
            if following is None:
                return self._edge(held)
            rate = following
        return self._ended(
            Ending.CANNOT, f"{len(self.probes)} trials were not enough to find where it begins to break"
        )

    def _tried(self, rate: float) -> int:
        return sum(one.rate == rate for one in self.probes)

    def _following(self, held: list[float], broken: list[float]) -> float | None:
        """Return the rate to try next, None when there is none beyond those tried."""
        if held:
            best = max(held)
            above = min(self.ceiling or self.asked.highest, self.asked.highest)
            if not self.ceiling and best < above:
                return min(best * 2, above)
            middle = math.sqrt(best * above)
            if self.ceiling and above / best > 1 + self.asked.tolerance:
                return middle
            return best if self._tried(best) < LEAST_TRIALS else None
        worst = min([*broken, *([self.ceiling] if self.ceiling else [])])
        if worst > self.asked.lowest:
            return max(worst / 2, self.asked.lowest)
        return self.asked.lowest if self._tried(self.asked.lowest) < LEAST_TRIALS else None

    def _edge(self, held: list[float]) -> RateFound:
        """Return what is known when nothing more can be tried on one side."""
        if held:
            best = max(held)
            why = (
                next((one.spoilt for one in reversed(self.probes) if one.spoilt), "")
                or "no higher rate was to be tried"
            )
            return self._ended(Ending.BEYOND, why, Interval(best, best, best))
        last = self.probes[-1]
        if last.spoilt:
            return self._ended(Ending.CANNOT, last.spoilt)
        return self._ended(Ending.NEVER, last.why)

    def _narrow(self) -> RateFound:
        known = self._known()
        spoilt = 0
        while True:
            found = known.interval()
            if found.high <= found.low * (1 + self.asked.tolerance) and self._is_backed(found.mid):
                return self._ended(Ending.CONVERGED, "", found)
            if self._spent():
                return self._ended(
                    Ending.SPENT, f"{len(self.probes)} trials were spent: they vary too much", found
                )
            probe = self._try(known.next())
            if probe.everywhere:
                return self._ended(Ending.NEVER, probe.why)
            if probe.spoilt or probe.held is None:
                spoilt += 1
                if spoilt > LEAST_TRIALS + 1:
                    return self._ended(Ending.CANNOT, probe.spoilt or probe.why, found)
                continue
            known.learn(probe.rate, probe.held)
            if found.high >= known.high * 0.9 or found.low <= known.low * 1.1:
                known = self._known()

    def _is_backed(self, edge: float) -> bool:
        """Whether enough trials close by, on either side, were as the edge says."""
        room = 1 + NEARBY * self.asked.tolerance
        below = sum(bool(one.held) for one in self._told() if edge / room <= one.rate <= edge)
        above = sum(not one.held for one in self._told() if edge <= one.rate <= edge * room)
        return min(below, above) >= NEAR

    def _known(self) -> Threshold:
        told = self._told()
        rates = [probe.rate for probe in told]
        low, high = (
            max(min(rates) / ROOM, self.asked.lowest / 2),
            min(max(rates) * ROOM, self.asked.highest * 2),
        )
        known = Threshold(low, high)
        for probe in told:
            known.learn(probe.rate, bool(probe.held))
        return known


def highest_rate(measure: Callable[[float], Probe], asked: RateSearch) -> RateFound:
    """Search the highest rate at which the trials of `measure` hold. Whatever `measure` raises ends the search."""
    return _Search(measure, asked).run()
