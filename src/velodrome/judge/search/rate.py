"""The highest rate at which a condition holds.

    found = highest_rate(lambda rate: Probe(rate, held=rate < 970), RateSearch(first=100))
    found.ending, found.interval        # converged, Interval(951, 968, 985)
    found.claim                         # what was proven at the lower end of it, where `prove` was given

First the rate is doubled while it holds, or halved until it does. Then all loads are near the edge (`Edge`), on
several boots where the server can be booted again, until the interval is narrow. What is claimed is its lower end, and
it is proven: by a longer load at that rate, on a boot of its own. A proof that fails lowers the claim.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from velodrome.model.quantity import Interval
from velodrome.model.search import Claim, Ending, Probe, RateFound

EDGE_STEP = 0.005
"""Of the grid, in logarithms of the rate."""
BENDS = (3.0, 6.0, 12.0, 25.0, 50.0, 100.0, 200.0, 400.0)
"""How steeply the share rises: by so many per cent for one per cent of the rate; all equally likely beforehand."""
BURSTS = (1.0, 3.0, 8.0, 20.0, 50.0, 120.0)
"""How many late requests come together; all equally likely beforehand."""
SPREADS = ((0.01, 0.07), (0.02, 0.13), (0.04, 0.35), (0.08, 0.32), (0.14, 0.13))
"""Standard deviations of the boots' speed, and how likely each is beforehand. Boots differ by 5 to 10 %; a few that
happen to lie close together must not persuade the search of less (`benchmarks/queues.py`)."""
MOST = 8.0
"""Times what is allowed: shares above it say that a rate is too high, and no more by how much."""
BEND = 1.4
"""Times the requests that are in a server at the limit by Little's law (rate × limit), how steeply the share of late
requests rises where they wait for each other: 1 for M/M/c, 2 for M/D/c (up to 3 near an empty queue); between them."""
BEND_SPREAD, BEND_WRONG = 0.5, 0.1
"""Of that in logarithms, and how often it says nothing: what is late for other reasons rises as it likes."""
LAPSE = 0.08
"""Verdicts that have nothing to do with the rate: one in twelve, half of them wrong."""
DESIGN = (0.0, 0.8, -0.8)
"""Of the logarithm of the share over what is allowed, where loads are made in turn: at the edge, and on either side."""
FARTHEST = 0.15
"""But no further from the edge than so much, in logarithms."""
CONFIDENCE = 0.95
BEYOND = 6.0
"""Standard deviations of a normal distribution that matter."""
ROUNDING = 1e-15
"""Of the largest value, what a Fourier transform leaves where there is nothing."""

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
        points = max(3, math.ceil(math.log(high / low) / EDGE_STEP) + 1)
        self._rates: Floats = np.linspace(math.log(low), math.log(high), points)
        self._bends: Floats = np.array(BENDS)
        self._bursts: Floats = np.array(BURSTS)
        self._boots: dict[int, Floats] = {}
        """Of each boot the logarithm of the likelihood, by edge, bend and burst."""
        self._loads: dict[int, int] = {}
        self._before: Floats = np.full(len(BENDS), 1 / len(BENDS))
        """How likely each bend is beforehand."""
        self._kept: dict[tuple[int, float], Floats] = {}
        self._tail = 0.0
        """Minus the logarithm of the share of requests that may be late; 0: it is no latency that is limited."""

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
        tail = -math.log(min((strain.share for strain in probe.strains if strain.share), default=1.0))
        if tail != self._tail:
            self._tail = tail
            self._kept.clear()

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
        return middle * math.exp(min(max(aim, -FARTHEST), FARTHEST))

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
            before = self._blurred(self._of_all(spread, boot).reshape(shape), spread)
            known += likely * (before * mine).sum(axis=2)
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
            found = np.log(self._blurred(np.exp(known - known.max()), spread))
            self._kept[boot, spread] = found.reshape(len(self._rates), -1)
        return self._kept[boot, spread]

    def _blurred(self, likely: Floats, spread: float) -> Floats:
        """Return how likely edges are, by bend and burst, of boots whose speed differs by a spread from others.

        Where a latency is limited, a server that is 1 % faster carries more than 1 % more, because the limit is also
        more of its service times. The share of late requests falls about exponentially with these, so 1 % of speed is
        1 + tail / bend % of the rate: 1.85 % for M/M/1 with a p99 of ten service times, about 1 % where many slots
        serve one queue.
        """
        points, step = len(self._rates), float(self._rates[1] - self._rates[0])
        spreads = spread * (1 + self._tail / self._bends)
        # A convolution with normal densities: their Fourier transforms are known.
        padded = 1 << math.ceil(math.log2(points + BEYOND * spreads.max() / step))
        normal = np.exp(-0.5 * (2 * math.pi * np.fft.rfftfreq(padded, step)[:, None] * spreads) ** 2)
        found = np.fft.irfft(np.fft.rfft(likely, padded, axis=0) * normal[:, :, None], padded, axis=0)[
            :points
        ]
        floored: Floats = np.maximum(found, ROUNDING * found.max())
        return floored

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
        places = np.interp(np.array(shares) * sums[-1], sums, self._rates + 0.5 * EDGE_STEP)
        return [float(rate) for rate in np.exp(places)]


def _bend(bends: Floats, expected: float) -> Floats:
    """Return how likely each is, around what is expected, on a floor for the expectation that is wrong."""
    peak = np.exp(-0.5 * (np.log(bends / max(expected, bends[0])) / BEND_SPREAD) ** 2)
    found: Floats = (1 - BEND_WRONG) * peak / max(float(peak.sum()), 1e-300) + BEND_WRONG / len(bends)
    return found


FIRST = 0.5
"""Of what a closed loop got, the rate that is tried first: it surely holds, if any near does."""
ROOM = 1.8
"""The edge is looked for so many times beyond what was tried: the first answers may have been wrong."""
FAR = 2.5
"""Rates that many times the edge or more say nothing of where exactly it is."""
LEAST_TRIALS = 2
"""A rate that ends the search by itself, the lowest or the highest, is tried so often."""
PROOFS = 4
"""So many rates are tried to be proven at most, each lower than the last."""
LOWER = 0.93
"""After a proof that failed, the next rate is no more than this part of it."""


@dataclass(frozen=True)
class RateSearch:
    """What to search, and how long."""

    first: float
    lowest: float = 1.0
    highest: float = 1e7
    tolerance: float = 0.1
    """Half the interval is to be no wider than this part of the rate."""
    most: int = 40
    """Loads, proofs not counted."""
    boots: int = 3
    """At least, where the server can be booted again."""
    loads: int = 4
    """Near the edge, on each boot."""


@dataclass(frozen=True)
class Measuring:
    """How loads are made."""

    look: Callable[[float], Probe]
    """A short load: is a rate far too high, or far too low?"""
    near: Callable[[float], Probe]
    """A load near the edge."""
    reboot: Callable[[], None] | None = None
    """Boot the server again before the next load; None: it is somebody else's."""
    prove: Callable[[float], Probe | None] | None = None
    """A long load at the rate that is to be claimed; it returns None where there is no more time for that. None:
    nothing is claimed."""
    stopped: Callable[[], str] = lambda: ""
    """Says why no further load can be made, as a clause («too little was left of its budget»); empty: one can be made.
    Called before each."""


@dataclass
class _Search:
    measuring: Measuring
    limits: RateSearch
    probes: list[Probe] = field(default_factory=list)
    ceiling: float = 0.0
    """From here on the generator is the limit; 0: not met yet."""
    edge: Edge | None = None
    spoilt: int = 0
    """Loads near the edge that decided nothing."""
    fresh: bool = False
    """Whether the server was booted again and has not been loaded since."""

    def run(self) -> RateFound:
        ended = self._bracket()
        found = ended if ended is not None else self._narrow()
        prove = self.measuring.prove
        if prove is None or found.interval is None or found.ending not in PROVABLE:
            return found
        return replace(found, claim=self._prove(found.interval.low, prove))

    def _try(self, rate: float, measure: Callable[[float], Probe]) -> Probe:
        probe = measure(rate)
        self.probes.append(probe)
        return probe

    def _spent(self) -> bool:
        return len(self.probes) >= self.limits.most

    def _end(self, ending: Ending, because: str, interval: Interval | None = None) -> RateFound:
        boots = len({probe.boot for probe in self._conclusive()})
        return RateFound(ending, interval, because, tuple(self.probes), boots)

    def _conclusive(self) -> list[Probe]:
        return [probe for probe in self.probes if probe.held is not None and not probe.spoilt]

    def _bracket(self) -> RateFound | None:
        """Double or halve until one rate held and a higher one did not; None when that is so."""
        rate = min(max(self.limits.first, self.limits.lowest), self.limits.highest)
        while not self._spent():
            if why := self.measuring.stopped():
                return self._end(Ending.CANNOT, f"{why} before it was found where it begins to break")
            probe = self._try(rate, self.measuring.look)
            if probe.everywhere:
                return self._end(Ending.NEVER, probe.why)
            if probe.held is None and not probe.spoilt:
                if self._tried(rate) >= LEAST_TRIALS:
                    return self._end(Ending.CANNOT, probe.why)
                continue
            if probe.spoilt and self._tried(rate) < LEAST_TRIALS:
                # The machine may have paused, and once is no limit.
                continue
            if probe.spoilt:
                self.ceiling = min(self.ceiling or rate, rate)
            held = [earlier.rate for earlier in self._conclusive() if earlier.held]
            broken = [earlier.rate for earlier in self._conclusive() if not earlier.held]
            if held and broken and max(held) < max(broken):
                return None
            following = self._following(held, broken)
            if following is None:
                return self._at_the_end(held)
            rate = following
        return self._end(
            Ending.CANNOT, f"{len(self.probes)} trials were not enough to find where it begins to break"
        )

    def _tried(self, rate: float) -> int:
        return sum(probe.rate == rate for probe in self.probes)

    def _following(self, held: list[float], broken: list[float]) -> float | None:
        """Return the rate to try next, None when there is none beyond those tried."""
        if held:
            best = max(held)
            above = min(self.ceiling or self.limits.highest, self.limits.highest)
            if not self.ceiling and best < above:
                return min(best * 2, above)
            middle = math.sqrt(best * above)
            if self.ceiling and above / best > 1 + self.limits.tolerance / 2:
                return middle
            return best if self._tried(best) < LEAST_TRIALS else None
        worst = min([*broken, *([self.ceiling] if self.ceiling else [])])
        if worst > self.limits.lowest:
            return max(worst / 2, self.limits.lowest)
        return self.limits.lowest if self._tried(self.limits.lowest) < LEAST_TRIALS else None

    def _at_the_end(self, held: list[float]) -> RateFound:
        """Return what is known when nothing more can be tried on one side."""
        if held:
            best = max(held)
            why = (
                next((probe.spoilt for probe in reversed(self.probes) if probe.spoilt), "")
                or "no higher rate was to be tried"
            )
            return self._end(Ending.BEYOND, why, Interval(best, best, best))
        last = self.probes[-1]
        if last.spoilt:
            return self._end(Ending.CANNOT, last.spoilt)
        return self._end(Ending.NEVER, last.why)

    def _narrow(self) -> RateFound:
        """Load near the edge, so often on each boot, until the interval is narrow."""
        self.edge = self._edge_so_far()
        reboot = self.measuring.reboot
        boots = 1
        while True:
            for _ in range(self.limits.loads):
                if why := self.measuring.stopped():
                    reason = f"{why} after {len(self.probes)} loads on {_boots(boots)}"
                    return self._end(Ending.SPENT, reason, self._interval())
                if (ended := self._near()) is not None:
                    return ended
            found = self._interval()
            wide = math.log(found.high / found.low) / 2 > math.log(1 + self.limits.tolerance)
            if not wide and (reboot is None or boots >= self.limits.boots):
                return self._end(Ending.CONVERGED, "", found)
            if len(self.probes) + self.limits.loads > self.limits.most and (
                reboot is None or boots >= self.limits.boots
            ):
                why = f"{len(self.probes)} loads on {_boots(boots)} were spent: they vary too much"
                return self._end(Ending.SPENT, why, found)
            if reboot is not None:
                reboot()
                self.fresh = True
                boots += 1

    def _near(self) -> RateFound | None:
        """Make one load near the edge; return what ended the search, None: nothing did."""
        assert self.edge is not None
        rate = self.edge.next(self._boot())
        if self.ceiling and rate >= self.ceiling:
            rate = math.sqrt(self.ceiling * max(self.edge.low, 0.9 * self.ceiling))
        probe = self._try(min(max(rate, self.limits.lowest), self.limits.highest), self.measuring.near)
        self.fresh = False
        if probe.everywhere:
            return self._end(Ending.NEVER, probe.why)
        if probe.spoilt or probe.held is None:
            self.spoilt += 1
            if self.spoilt > LEAST_TRIALS + 1:
                return self._end(Ending.CANNOT, probe.spoilt or probe.why, self._interval())
            return None
        self.edge.learn(probe)
        found = self._interval()
        if found.high >= self.edge.high * 0.95 or found.low <= self.edge.low * 1.05:
            self.edge = self._edge_so_far()
        return None

    def _interval(self) -> Interval:
        """Return what is known of boots in general; of a server that cannot be booted again, of its only boot."""
        assert self.edge is not None
        return self.edge.interval() if self.measuring.reboot is not None else self.edge.of_boot(self._boot())

    def _boot(self) -> int:
        """Return the boot that the next load is on, as far as is known."""
        return -1 if self.fresh else self.probes[-1].boot

    def _edge_so_far(self) -> Edge:
        """Return what all loads say so far; those far from the edge only that it lies between them."""
        conclusive = self._conclusive()
        highest = max(probe.rate for probe in conclusive if probe.held)
        lowest = min(probe.rate for probe in conclusive if not probe.held)
        # An answer may have been wrong: then the two overlap.
        low, high = sorted((highest, lowest))
        known = Edge(
            max(low / ROOM, self.limits.lowest / 2), max(min(high * ROOM, self.limits.highest * 2), low * 1.1)
        )
        for probe in conclusive:
            if low / FAR < probe.rate < high * FAR:
                known.learn(probe)
        return known

    def _prove(self, claim: float, prove: Callable[[float], Probe | None]) -> Claim | None:
        """Load at the rate that is to be claimed, each time on a fresh boot, and lower it where that does not hold.

        None: there was no time for a single proof.
        """
        proofs: list[Probe] = []
        rate = claim
        while len(proofs) < PROOFS:
            if self.measuring.reboot is not None:
                self.measuring.reboot()
            probe = prove(rate)
            if probe is None:
                return Claim(proofs[-1].rate, False, tuple(proofs)) if proofs else None
            proofs.append(probe)
            if probe.held:
                return Claim(rate, True, tuple(proofs))
            if probe.spoilt or probe.held is None:
                continue
            lower = rate * LOWER
            if self.edge is not None:
                self.edge.learn(probe)
                lower = min(lower, self._interval().low)
            rate = max(lower, self.limits.lowest)
        return Claim(rate, False, tuple(proofs))


PROVABLE = (Ending.CONVERGED, Ending.SPENT, Ending.BEYOND)
"""Endings with a rate that can be claimed."""


def _boots(number: int) -> str:
    return f"{number} boot{'' if number == 1 else 's'}"


def highest_rate(measure: Measuring | Callable[[float], Probe], limits: RateSearch) -> RateFound:
    """Search the highest rate at which the loads of `measure` hold. Whatever it raises ends the search."""
    measuring = measure if isinstance(measure, Measuring) else Measuring(measure, measure)
    return _Search(measuring, limits).run()
