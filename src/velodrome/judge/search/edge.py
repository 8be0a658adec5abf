"""Where the edge of a contestant lies: the rate up to which its demands hold, from loads near it on several boots.

    edge = Edge(100, 400)
    edge.learn(probe)               # each with its boot
    edge.interval()                 # of what a boot can carry, 95 %
    edge.next(boot)                 # the rate that tells most

A load tells more than whether it held. Of `p99 < 20ms` it tells which share of its requests came later, and one in a
hundred may. The p99 of a short load is too low more often than not, because the bursts that make the tail are rare:
half of the loads of 3 s hold at rates that break for ever. The *mean* share is right however short a load is. So the
shares are fitted, and not the verdicts: near the edge the tail of a queue is exponential in the rate that is left
(J. F. C. Kingman, «On queues in heavy traffic», JRSS B 24, 1962), so the logarithm of the share rises in a straight
line. Late requests come in bursts, so a count scatters more than a Poisson count; its variance is proportional to its
mean by a factor that is learnt as well (quasi-likelihood: R. W. M. Wedderburn, Biometrika 61, 1974; extended by J. A.
Nelder and D. Pregibon, Biometrika 74, 1987).

Where demands are no shares, a load tells whether it held, by a logistic curve around the edge.

Boots of a server differ by 5 to 10 %. Each has an edge of its own; those are normal in the logarithm around the edge
that is sought, with a spread that is learnt with it. With one boot the interval says what is presumed of the spread.
"""

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from velodrome.model.quantity import Interval
from velodrome.model.search import Probe

STEP = 0.005
"""Of the grid, in logarithms of the rate."""
BENDS = (3.0, 6.0, 12.0, 25.0, 50.0, 100.0, 200.0, 400.0)
"""How steeply the share rises: by so many per cent for one per cent of the rate; all equally likely beforehand."""
BURSTS = (1.0, 3.0, 8.0, 20.0, 50.0, 120.0)
"""How many late requests come together; all equally likely beforehand."""
SPREADS = ((0.01, 0.1), (0.02, 0.2), (0.04, 0.35), (0.08, 0.25), (0.14, 0.1))
"""Standard deviations of the boots' edges, as parts of the rate, and how likely each is beforehand."""
MOST = 8.0
"""Times what is allowed: shares above it say that a rate is too high, and no more by how much."""
BEND = 2.0
"""Times the requests that are in a server at the limit by Little's law (rate × limit), how steeply the share of late
requests rises where they wait for each other: 1 for M/M/c, 2 for M/D/c, up to 3 near an empty queue."""
BEND_SPREAD, BEND_WRONG = 0.5, 0.1
"""Of that in logarithms, and how often it says nothing: what is late for other reasons rises as it likes."""
LAPSE = 0.08
"""Verdicts that have nothing to do with the rate: one in twelve, half of them wrong."""
DESIGN = (0.0, 0.8, -0.8)
"""Of the logarithm of the share over what is allowed, where loads are made in turn: at the edge, and on either side."""
FAR = 0.15
"""But no further from the edge than so much, in logarithms."""
CONFIDENCE = 0.95

Floats = NDArray[np.float64]


def likely_to_hold(distance: Floats) -> Floats:
    """Return how likely an answer «it held» is, so many widths of the curve below the threshold.

    A logistic curve with lapses, as in psychometrics (F. A. Wichmann and N. J. Hill, Perception & Psychophysics 63,
    2001).
    """
    found: Floats = LAPSE / 2 + (1 - LAPSE) / (1.0 + np.exp(-np.clip(distance, -50.0, 50.0)))
    return found


class Edge:
    """What is known of the edge between two rates."""

    def __init__(self, low: float, high: float) -> None:
        self.low, self.high = low, high
        points = max(3, math.ceil(math.log(high / low) / STEP) + 1)
        self._rates: Floats = np.linspace(math.log(low), math.log(high), points)
        self._bends: Floats = np.array(BENDS)
        self._bursts: Floats = np.array(BURSTS)
        self._boots: dict[int, Floats] = {}
        """Of each boot the logarithm of the likelihood, by edge, bend and burst."""
        self._loads: dict[int, int] = {}
        self._before: Floats = np.full(len(BENDS), 1 / len(BENDS))
        """How likely each bend is beforehand."""
        self._kept: dict[tuple[int, float], Floats] = {}

    def learn(self, probe: Probe) -> None:
        """Take a load in; if it is undecided, or does not count, it adds nothing."""
        if probe.held is None or probe.spoilt:
            return
        shape = len(self._rates), len(self._bends), len(self._bursts)
        known = self._boots.setdefault(probe.boot, np.zeros(shape))
        known += self._likelihood(probe)
        for spread, _ in SPREADS:
            self._kept.pop((probe.boot, spread), None)
        self._loads[probe.boot] = self._loads.get(probe.boot, 0) + 1
        if within := [strain.limit_ms for strain in probe.strains if strain.limit_ms]:
            self._before = _bend(self._bends, BEND * probe.rate * max(within) / 1000)

    def interval(self, confidence: float = CONFIDENCE) -> Interval:
        """Return the edge of boots in general, with the interval that holds it."""
        known = np.zeros(len(self._rates))
        for spread, likely in SPREADS:
            known += likely * self._of_all(spread, None).sum(axis=1)
        low, mid, high = self._quantiles(known, ((1 - confidence) / 2, 0.5, (1 + confidence) / 2))
        return Interval(low, mid, high)

    def of_boot(self, boot: int, confidence: float = CONFIDENCE) -> Interval:
        """Return the edge of one boot, with the interval that holds it."""
        known = self._here(boot).sum(axis=1)
        low, mid, high = self._quantiles(known, ((1 - confidence) / 2, 0.5, (1 + confidence) / 2))
        return Interval(low, mid, high)

    def next(self, boot: int) -> float:
        """Return the rate at which the next load of a boot tells most."""
        known = self._here(boot)
        (middle,) = self._quantiles(known.sum(axis=1), (0.5,))
        bends = known.sum(axis=0)
        bend = float(np.exp((np.log(self._bends) * bends).sum() / bends.sum()))
        aim = DESIGN[self._loads.get(boot, 0) % len(DESIGN)] / bend
        return middle * math.exp(min(max(aim, -FAR), FAR))

    def _here(self, boot: int) -> Floats:
        """Return how likely each edge of a boot is, by bend: by its own loads and by those of the others."""
        own = self._boots.get(boot)
        shape = len(self._rates), len(self._bends), len(self._bursts)
        mine = np.ones(shape) if own is None else np.exp(own - own.max())
        if self._boots.keys() <= {boot}:
            # Nobody else says anything, however boots spread.
            alone: Floats = mine.sum(axis=2) * self._before
            return alone
        known = np.zeros(shape[:2])
        for spread, likely in SPREADS:
            before = self._kernel(spread) @ self._of_all(spread, boot)
            known += likely * (before.reshape(shape) * mine).sum(axis=2)
        return known

    def _of_all(self, spread: float, without: int | None) -> Floats:
        """Return how likely each edge is, by bend and burst, if boots spread so; a boot may be left out."""
        # What all spreads have in common does not matter, but what is divided by must be the same for all of them.
        common = self._together(SPREADS[len(SPREADS) // 2][0], without).max()
        likely: Floats = np.exp(self._together(spread, without) - common)
        return likely * np.repeat(self._before, len(self._bursts))

    def _together(self, spread: float, without: int | None) -> Floats:
        """Return the logarithm of it, beside a constant."""
        found = np.zeros((len(self._rates), len(self._bends) * len(self._bursts)))
        for boot in self._boots:
            if boot != without:
                found += self._of_boot(boot, spread)
        return found

    def _of_boot(self, boot: int, spread: float) -> Floats:
        """Return what the loads of a boot say of the edge of boots in general; kept until there is another load."""
        if (boot, spread) not in self._kept:
            known = self._boots[boot]
            likely = np.exp(known - known.max()).reshape(len(self._rates), -1)
            self._kept[boot, spread] = np.log(self._kernel(spread) @ likely + 1e-300)
        return self._kept[boot, spread]

    def _kernel(self, spread: float) -> Floats:
        return _kernel(len(self._rates), float(self._rates[1] - self._rates[0]), spread)

    def _likelihood(self, probe: Probe) -> Floats:
        """Return the logarithm of how likely a load is, by edge, bend and burst."""
        distance = (math.log(probe.rate) - self._rates)[:, None] * self._bends[None, :]
        if not probe.strains:
            likely = likely_to_hold(-distance)
            outcome: Floats = np.log(likely if probe.held else 1.0 - likely)
            return np.repeat(outcome[:, :, None], len(self._bursts), axis=2)
        worst = max(probe.strains, key=lambda strain: strain.times)
        allowed = worst.allowed
        found = allowed * (MOST if probe.overdone else min(worst.times, MOST))
        expected = allowed * np.exp(np.clip(distance, -50.0, math.log(MOST)))
        if found <= 0:
            return -expected[:, :, None] / self._bursts
        deviance = 2 * (found * np.log(found / expected) - (found - expected))
        return -deviance[:, :, None] / (2 * self._bursts) - 0.5 * np.log(self._bursts)

    def _quantiles(self, known: Floats, shares: Sequence[float]) -> list[float]:
        sums = np.cumsum(known)
        places = np.interp(np.array(shares) * sums[-1], sums, self._rates + 0.5 * STEP)
        return [float(rate) for rate in np.exp(places)]


def _bend(bends: Floats, expected: float) -> Floats:
    """Return how likely each is, around what is expected, on a floor for the expectation that is wrong."""
    peak = np.exp(-0.5 * (np.log(bends / max(expected, bends[0])) / BEND_SPREAD) ** 2)
    found: Floats = (1 - BEND_WRONG) * peak / max(float(peak.sum()), 1e-300) + BEND_WRONG / len(bends)
    return found


@lru_cache(maxsize=64)
def _kernel(points: int, step: float, spread: float) -> Floats:
    """Return how likely each edge of a boot (column) is where that of boots in general is the row."""
    places = np.arange(points) * step
    found: Floats = np.exp(-0.5 * ((places[:, None] - places[None, :]) / spread) ** 2)
    found /= spread
    return found
