"""The number of connections from which on a closed loop's throughput stops rising, and the law that says why.

    found = enough_connections(lambda count: Load(count, rps=…), ConnectionSearch())
    found.ending, found.connections     # converged, Interval(28, 32, 40)

The number is doubled until throughput rises no more; the first number with 95 % of the most is then narrowed down, and
those around it are measured in further blocks, each block once around, so that a machine that slows down slows all
alike. What is compared is their ratio to the number with the most, block by block; its spread is pooled over all
numbers and the interval is Student's. More connections than enough only wait.
"""

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from velodrome.judge.statistics import beyond_f, student_t
from velodrome.model.quantity import Interval
from velodrome.model.search import ConnectionsFound, Ending, Peak, Sample, Scalability

ENOUGH = 0.95
"""Of the most: from here on throughput counts as flat."""
RISES = 1.05
"""From one number to its double: less than this is no rise."""


@dataclass(frozen=True)
class ConnectionSearch:
    """What to search, and how long."""

    first: int = 1
    most: int = 4096
    """Connections."""
    blocks: int = 4
    """At least; a second time as many where the interval is still wide."""
    ratio: float = 1.25
    """Neighbouring numbers are no further apart at the end."""


@dataclass
class _Search:
    measure: Callable[[int], Sample]
    search: ConnectionSearch
    samples: list[Sample] = field(default_factory=list)

    def run(self) -> ConnectionsFound:
        stopped = self._double()
        if stopped is not None:
            return stopped
        self._narrow()
        counts = self._around()
        for _ in range(2):
            blocks = [self._block(counts) for _ in range(self.search.blocks)]
            if sum(block is None for block in blocks) > 1:
                return self._beyond(self._spoilt())
            found = self._judge(counts)
            if found.ending is Ending.CONVERGED:
                break
        return found

    def _end(
        self, ending: Ending, because: str, count: Interval | None = None, rps: Interval | None = None
    ) -> ConnectionsFound:
        return ConnectionsFound(ending, count, rps, because, tuple(self.samples))

    def _spoilt(self) -> str:
        return next((sample.spoilt for sample in reversed(self.samples) if sample.spoilt), "")

    def _try(self, count: int) -> Sample:
        sample = self.measure(count)
        self.samples.append(sample)
        return sample

    def _double(self) -> ConnectionsFound | None:
        """Double until throughput has risen no more twice; None when it has."""
        count, best, flat = self.search.first, 0.0, 0
        while True:
            sample = self._try(count)
            if sample.spoilt:
                # The machine may have paused, and once is no limit.
                sample = self._try(count)
            if sample.spoilt:
                return self._beyond(sample.spoilt)
            flat = 0 if sample.rps > RISES * best else flat + 1
            best = max(best, sample.rps)
            if best <= 0:
                return self._end(Ending.CANNOT, "nothing was answered right")
            if flat == 2:
                return None
            if count >= self.search.most:
                # One number that rose no more is enough where no second can be tried.
                return (
                    None
                    if flat
                    else self._beyond("throughput still rises there, and more were not to be tried")
                )
            count = min(count * 2, self.search.most)

    def _beyond(self, because: str) -> ConnectionsFound:
        good = [sample for sample in self.samples if not sample.spoilt]
        if not good:
            return self._end(Ending.CANNOT, because)
        best = max(good, key=lambda sample: sample.rps)
        count, rps = float(best.connections), best.rps
        return self._end(Ending.BEYOND, because, Interval(count, count, count), Interval(rps, rps, rps))

    def _means(self) -> dict[int, float]:
        found: dict[int, list[float]] = {}
        for sample in self.samples:
            found.setdefault(sample.connections, []).append(sample.rps)
        return {count: statistics.fmean(values) for count, values in sorted(found.items())}

    def _edge(self) -> tuple[int, int]:
        """Return the last number below 95 % of the most (0: none was), and the first with it."""
        means = self._means()
        most = max(means.values())
        first = next(count for count, rps in means.items() if rps >= ENOUGH * most)
        return max((count for count in means if count < first), default=0), first

    def _narrow(self) -> None:
        below, first = self._edge()
        while below and first - below > 1 and first > self.search.ratio * below:
            if self._try(round(math.sqrt(below * first))).spoilt:
                return
            below, first = self._edge()

    def _around(self) -> list[int]:
        """Return the numbers to be compared: two on either side of the edge, and the number with the most
        throughput."""
        means = self._means()
        below, first = self._edge()
        order = list(means)
        place = order.index(first)
        near = order[max(0, place - 2) : place + 2]
        most = max(means, key=means.__getitem__)
        return sorted({*near, *([below] if below else []), most})

    def _block(self, counts: Sequence[int]) -> list[Sample] | None:
        """Measure all once, in turns from either end; None where a load was spoilt."""
        forward = len(self.samples) % 2 == 0
        found = [self._try(count) for count in (counts if forward else counts[::-1])]
        return None if any(sample.spoilt for sample in found) else found

    def _judge(self, counts: Sequence[int]) -> ConnectionsFound:
        blocks = self._blocks(counts)
        most = max(counts, key=lambda count: statistics.fmean(block[count] for block in blocks))
        ratios = {count: [math.log(block[count] / block[most]) for block in blocks] for count in counts}
        others = [count for count in counts if count != most]
        error = _error([ratios[count] for count in others])
        means = {count: statistics.fmean(values) for count, values in ratios.items()}
        edge = math.log(ENOUGH)
        maybe = [count for count in counts if count == most or means[count] + error >= edge]
        surely = [count for count in counts if count == most or means[count] - error >= edge]
        likely = [count for count in counts if means[count] >= edge]
        low, mid, high = min(maybe), min(likely), min(surely)
        rps = [block[mid] for block in blocks]
        half = student_t(len(rps) - 1) * statistics.stdev(rps) / math.sqrt(len(rps)) if len(rps) > 1 else 0.0
        mean = statistics.fmean(rps)
        intervals = Interval(low, mid, high), Interval(mean - half, mean, mean + half)
        if high <= 2 * low:
            return self._end(Ending.CONVERGED, "", *intervals)
        return self._end(Ending.SPENT, f"{len(blocks)} blocks vary too much", *intervals)

    def _blocks(self, counts: Sequence[int]) -> list[dict[int, float]]:
        """Return the whole blocks at the end of what was measured, without those that were spoilt."""
        size = len(counts)
        found: list[dict[int, float]] = []
        rest = self.samples
        while len(rest) >= size and {sample.connections for sample in rest[-size:]} == set(counts):
            if not any(sample.spoilt for sample in rest[-size:]):
                found.append({sample.connections: max(sample.rps, 1e-9) for sample in rest[-size:]})
            rest = rest[:-size]
        return found


def _error(ratios: Sequence[Sequence[float]]) -> float:
    """Return half the width of the interval of a mean ratio, its variance pooled over all numbers."""
    blocks = len(ratios[0]) if ratios else 0
    if blocks < 2:
        return math.inf
    freedom = len(ratios) * (blocks - 1)
    variance = sum(statistics.variance(values) for values in ratios) / len(ratios)
    return student_t(freedom) * math.sqrt(variance / blocks)


def enough_connections(measure: Callable[[int], Sample], search: ConnectionSearch) -> ConnectionsFound:
    """Search the number of connections at which throughput stops rising. What `measure` raises ends the search."""
    return _Search(measure, search).run()


# The Universal Scalability Law, fitted to throughput against connections, with bootstrap intervals.
#
#     X(N) = λN ÷ (1 + σ(N − 1) + κN(N − 1))
#
# λ is what a single connection gets, σ what waits for a turn (contention), κ what each costs each other (coherency);
# without κ it is Amdahl's law. Throughput is highest at √((1 − σ) ÷ κ) (N. J. Gunther, «Guerrilla Capacity Planning»,
# Springer 2007, chapters 4 to 6).
#
# Divided through, N ÷ X is a polynomial in (N − 1) and N(N − 1), so that the best parameters need no start value and no
# bounds: least squares on relative errors, since noise of throughput is a part of it. Estimates of σ and κ may come out
# below 0 for that reason, and must: bounds would hide that an interval reaches 0. Intervals come from resampled
# residuals (Davison and Hinkley, «Bootstrap Methods and their Application», Cambridge 1997, algorithm 6.1), made longer
# by 1 ÷ √(1 − leverage), and from the estimates studentised, because thirty points know their own noise badly (section
# 6.2.4).

REPEATS = 2_000
LEAST_NUMBERS = 4
"""Different numbers of connections; three parameters go through three of them whatever they are."""
SEED = 20_070_101
"""The same measurements give the same intervals."""
_LACK = 0.05
"""Level of the test for lack of fit."""

Floats = NDArray[np.float64]


_A, _B, _C, _NOTHING = np.eye(3)[0], np.eye(3)[1], np.eye(3)[2], np.zeros(3)
_RATIOS = ((_A, _NOTHING), (_B, _A), (_C, _A), (_C, _A - _B))
"""Of the coefficients: 1 ÷ λ, σ, κ, and κ ÷ (1 − σ), which is one over the square of the peak's place."""


@dataclass(frozen=True)
class _Fit:
    """N ÷ X = a + b(N − 1) + cN(N − 1)."""

    coefficients: Floats
    spread: float
    """Of the relative residuals."""
    residuals: Floats
    inverse: Floats
    """Times the square of the spread: the coefficients' covariance."""


@dataclass(frozen=True)
class _Drawn:
    """Fits to residuals drawn anew, a row each."""

    coefficients: Floats
    spread: Floats
    inverse: Floats


def scalability(samples: Sequence[Sample]) -> Scalability | None:
    """Return the law of those samples that say something of the server; None for too few different numbers."""
    valid = [sample for sample in samples if not sample.spoilt and sample.rps > 0]
    if len({sample.connections for sample in valid}) < LEAST_NUMBERS:
        return None
    counts = np.array([float(sample.connections) for sample in valid])
    rates = np.array([sample.rps for sample in valid])
    found = _fit(counts, rates)
    law = _curve(found.coefficients, counts)
    if not np.all(law > 0):
        return None
    drawn = _bootstrap(counts, law, found, np.random.default_rng(SEED))
    service, contention, coherency, bend = (_interval(found, drawn, *ratio) for ratio in _RATIOS)
    peak, at, best = _peak(found, drawn, coherency, bend, float(counts.max()))
    return Scalability(
        rate=Interval(1 / service.high, 1 / service.mid, 1 / max(service.low, 1e-12)),
        contention=contention,
        coherency=coherency,
        peak=peak,
        peak_connections=at,
        peak_rps=best,
        misfit=_misfit(counts, rates, found.coefficients),
        fits=_fits(counts, rates, found),
        points=len(valid),
    )


def _terms(counts: Floats) -> Floats:
    return np.stack([np.ones_like(counts), counts - 1, counts * (counts - 1)], axis=1)


def _curve(coefficients: Floats, counts: Floats) -> Floats:
    """Return throughput by the law."""
    found: Floats = counts / (_terms(counts) @ coefficients)
    return found


def _fit(counts: Floats, rates: Floats) -> _Fit:
    """Least squares of X ÷ X̂ − 1: the terms of N ÷ X̂, weighted by X ÷ N, against 1; weights from the law, once over."""
    weights = rates / counts
    for _ in range(3):
        design = _terms(counts) * weights[:, None]
        wanted = weights * counts / rates
        coefficients, *_ = np.linalg.lstsq(design, wanted, rcond=None)
        law = _terms(counts) @ coefficients
        # Weights by single measurements would follow their noise; by the law they do not.
        weights = 1 / np.maximum(law, 1e-12 * np.abs(law).max())
    residuals = wanted - design @ coefficients
    spread = math.sqrt(float(residuals @ residuals) / max(len(counts) - 3, 1))
    inverse = np.linalg.pinv(design.T @ design)
    return _Fit(coefficients.astype(np.float64), spread, residuals, inverse.astype(np.float64))


def _bootstrap(counts: Floats, law: Floats, found: _Fit, random: np.random.Generator) -> _Drawn:
    """Fit the law to itself with residuals drawn anew, again and again; all at once, because weights stay."""
    design = _terms(counts) * (law / counts)[:, None]
    solve = np.linalg.pinv(design)
    leverage = np.clip(np.einsum("ij,ji->i", design, solve), 0, 0.95)
    residuals = found.residuals / np.sqrt(1 - leverage)
    residuals -= residuals.mean()
    wanted = 1 + random.choice(residuals, size=(REPEATS, len(counts)))
    coefficients = wanted @ solve.T
    rest = wanted - coefficients @ design.T
    spread = np.sqrt((rest**2).sum(axis=1) / max(len(counts) - 3, 1))
    return _Drawn(coefficients, spread, solve @ solve.T)


def _interval(found: _Fit, drawn: _Drawn, over: Floats, under: Floats) -> Interval:
    """Return the studentised interval of a ratio of sums of coefficients."""
    mid, error = _ratio(found.coefficients, found.spread, found.inverse, over, under)
    again, errors = _ratio(drawn.coefficients, drawn.spread, drawn.inverse, over, under)
    far = (again - mid) / np.maximum(errors, 1e-300)
    low, high = np.quantile(far, (0.025, 0.975))
    return Interval(float(mid - high * error), float(mid), float(mid - low * error))


def _ratio(
    coefficients: Floats, spread: Floats | float, inverse: Floats, over: Floats, under: Floats
) -> tuple[Floats, Floats]:
    """Return a ratio of sums of coefficients, and its standard error by the delta method."""
    # `under` of nothing is 1: the ratio is then the sum itself.
    below = coefficients @ under if under.any() else np.ones(coefficients.shape[:-1])
    value = (coefficients @ over) / below
    slope = (over - value[..., None] * under) / below[..., None]
    squares = np.einsum("...i,ij,...j->...", slope, inverse, slope)
    return value, spread * np.sqrt(np.maximum(squares, 0.0))


def _peak(
    found: _Fit, drawn: _Drawn, coherency: Interval, bend: Interval, tried: float
) -> tuple[Peak, Interval | None, Interval | None]:
    """Return where the law is highest, and how high; `bend` is κ ÷ (1 − σ)."""
    mid = _top(found.coefficients)
    if mid is None or bend.high <= 0:
        return Peak.NONE, None, None
    at = Interval(
        bend.high**-0.5, bend.mid**-0.5, math.inf if min(bend.low, coherency.low) <= 0 else bend.low**-0.5
    )
    if coherency.low <= 0:
        return Peak.NONE, at, None
    heights = [top[1] for top in map(_top, drawn.coefficients) if top is not None]
    low, high = (float(value) for value in np.quantile(heights, (0.025, 0.975)))
    best = Interval(min(low, mid[1]), mid[1], max(high, mid[1]))
    return (Peak.FOUND if mid[0] <= tried else Peak.BEYOND), at, best


def _top(coefficients: Floats) -> tuple[float, float] | None:
    """Return N and X at the top: a + b(N − 1) + cN(N − 1) over N is least at √((a − b) ÷ c)."""
    a, b, c = (float(coefficient) for coefficient in coefficients)
    if c <= 0 or a <= b:
        return None
    at = math.sqrt((a - b) / c)
    return at, at / (a + b * (at - 1) + c * at * (at - 1))


def _means(counts: Floats, rates: Floats) -> dict[float, Floats]:
    return {float(count): rates[counts == count] for count in np.unique(counts)}


def _misfit(counts: Floats, rates: Floats, coefficients: Floats) -> float:
    far = [
        abs(float(values.mean() / _curve(coefficients, np.array([count]))[0]) - 1)
        for count, values in _means(counts, rates).items()
    ]
    return max(far)


def _fits(counts: Floats, rates: Floats, found: _Fit) -> bool:
    """F-test for lack of fit: what the means lie off the law by, against what repeats lie off their means by.

    Draper and Smith, «Applied Regression Analysis», 3rd edition, Wiley 1998, section 2.1. Without repeats nothing
    contradicts the law.
    """
    groups = _means(counts, rates)
    repeats = len(rates) - len(groups)
    lacking = len(groups) - 3
    if repeats < 1 or lacking < 1:
        return True
    pure = sum(float(((values / values.mean() - 1) ** 2).sum()) for values in groups.values())
    off = float(found.residuals @ found.residuals) - pure
    if pure <= 0:
        return off <= 1e-9
    ratio = max(off, 0.0) / lacking / (pure / repeats)
    return beyond_f(ratio, lacking, repeats) >= _LACK
