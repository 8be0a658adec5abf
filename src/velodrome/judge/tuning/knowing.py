"""What loads say of a candidate: the highest rate it holds, or what a request costs; over several starts of its server.

    known = Rates(forecast=1_000)
    known.learn(observed)
    known.interval(0.95)

Starts of one server differ, by 5 to 10 % (which memory it got, which CPU cache lines), and loads of one start share
that difference. So what is sought is the middle over starts, each start has a deviation of its own, and how far starts
deviate is not known beforehand: it is learnt with the rest.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from velodrome.judge.search.rate import likely_to_hold
from velodrome.judge.statistics import of_logs, student_t, variance_over_hosts
from velodrome.model.quantity import Interval
from velodrome.model.tuning import Observation

Floats = NDArray[np.float64]

LEAST_BOOTS = 3
"""Starts of a server within an interval that is reported."""
RACING, REPORTED = 0.8, 0.95
"""How sure an interval is by which a race goes on, and an interval that is reported."""


class Known(Protocol):
    """What is known of one candidate; an interval is always of «the more the better»."""

    def interval(self, share: float = RACING) -> Interval:
        """Where it is with this probability."""

    @property
    def holds(self) -> bool | None:
        """Whether it has held at all, or carries the rate; None: it is not known yet."""

    @property
    def boots(self) -> int:
        """Starts of its server that gave figures."""

    def learn(self, observed: Observation) -> None:
        """Take a load in."""


# The highest rate that holds.
#
# Of each start there is a likelihood of its own threshold, from rates that held and broke (a logistic curve with
# lapses, `search.rate.likely_to_hold`). The thresholds of starts lie around the middle as a normal distribution, in
# logarithms; its width is one of `BETWEEN`, all equally likely beforehand (a hierarchical model on a grid; A. Gelman
# and others, «Bayesian Data Analysis», chapter 5).

EXPECTED = 0.9
"""Of what arithmetic allows: queues take the rest."""
DOWN, UP = 60.0, 1.6
"""Between a forecast divided by the first and times the second the highest rate is looked for."""
STEP = 1.15
"""The next rate is no further from the estimate: a forecast is seldom so wrong that more would pay."""
NO_MORE = 1.06
"""Times what an overdone server did: more it cannot do at any rate."""
FORECAST_SPREAD = 0.25
"""Of a forecast, in logarithms of the rate: as wrong as this it usually is."""
FORECAST_WRONG = 0.1
"""Share of forecasts that say nothing."""
WIDTHS = (0.003, 0.01, 0.02, 0.04, 0.08, 0.16)
"""How far around the threshold answers vary, as parts of the rate; all equally likely beforehand."""
GRID = 0.005
"""Of thresholds, in logarithms of the rate."""
BETWEEN = (0.015, 0.03, 0.05, 0.08)
"""Standard deviations of starts, in logarithms of the rate."""
TAIL = 4.0
"""Standard deviations at which a normal distribution is cut off."""


class Edge:
    """The threshold between rates that hold and rates that break, in the middle of the starts of a server."""

    def __init__(self, low: float, high: float, expected: float) -> None:
        """`expected` is where it lies if a forecast is right."""
        self.low, self.high = low, high
        points = max(3, math.ceil(math.log(high / low) / GRID) + 1)
        self._logs: Floats = np.linspace(math.log(low), math.log(high), points)
        self._prior = _peak(self._logs, math.log(expected), FORECAST_SPREAD)
        self._widths: Floats = np.array(WIDTHS)
        step = float(self._logs[1] - self._logs[0])
        self._room = math.ceil(TAIL * max(BETWEEN) / step)
        self._size = 1 << (points + 4 * self._room).bit_length()
        away = np.arange(-self._room, self._room + 1) * step
        kernels = np.exp(-0.5 * (away[None, :] / np.array(BETWEEN)[:, None]) ** 2)
        kernels /= kernels.sum(axis=1, keepdims=True)
        self._kernels = np.fft.rfft(kernels, self._size)
        self._likely: dict[int, Floats] = {}
        """Of each start: likelihood by width of the curve and threshold."""
        self._around: dict[int, Floats] = {}
        """The same of the middle, by spread of starts, width and middle."""

    def learn(self, rate: float, held: bool, boot: int) -> None:
        """Take an answer of a start in."""
        distance = (self._logs[None, :] - math.log(rate)) / self._widths[:, None]
        curve = likely_to_hold(distance)
        before = self._likely.get(boot)
        likely = curve if held else 1.0 - curve
        both = likely if before is None else before * likely
        self._likely[boot] = both / both.max()
        self._around[boot] = self._spread(self._likely[boot][None, :, :])

    def interval(self, share: float) -> Interval:
        """Return the middle of the starts with the interval that holds it with this probability."""
        known = self._probabilities().sum(axis=(0, 1))
        low, mid, high = self._quantiles(known, ((1 - share) / 2, 0.5, (1 + share) / 2))
        return Interval(low, mid, high)

    def next(self, boot: int) -> float:
        """Return the rate whose answer halves what is not known of the threshold of this start."""
        rest = self._probabilities(but=boot)
        here = self._spread(rest).sum(axis=0)
        if boot in self._likely:
            here = here * self._likely[boot]
        return self._quantiles(here.sum(axis=0), (0.5,))[0]

    def _probabilities(self, but: int | None = None) -> Floats:
        """Return the probability of spread, width and middle by all starts but one."""
        shape = (len(BETWEEN), len(self._widths), len(self._logs))
        found: Floats = np.broadcast_to(self._prior, shape).copy()
        for boot, likely in self._around.items():
            if boot != but:
                found *= likely
                found /= found.max()
        return found

    def _spread(self, values: Floats) -> Floats:
        """Return values at thresholds, spread as far as starts lie from their middle, for each spread."""
        points = values.shape[-1]
        padded = np.pad(values, ((0, 0), (0, 0), (self._room, self._room)), mode="edge")
        turned = np.fft.rfft(padded, self._size) * self._kernels[:, None, :]
        whole = np.fft.irfft(turned, self._size)
        found: Floats = np.maximum(whole[..., 2 * self._room : 2 * self._room + points], 0.0)
        return found

    def _quantiles(self, known: Floats, shares: Sequence[float]) -> list[float]:
        sums = np.cumsum(known)
        places = np.searchsorted(sums / sums[-1], shares).clip(0, len(sums) - 1)
        return [float(rate) for rate in np.exp(self._logs[places])]


class Rates:
    """The highest rate that holds."""

    def __init__(self, forecast: float, expected: float | None = None) -> None:
        """`expected` is where it is looked for; None: a little under the forecast."""
        self._expected = expected or EXPECTED * forecast
        self._range = (forecast / DOWN, forecast * UP)
        if expected:
            self._range = (min(self._range[0], expected / UP), max(self._range[1], expected * UP))
        self._answers: list[tuple[float, bool, int]] = []
        self._edge = Edge(*self._range, self._expected)
        self._intervals: dict[float, Interval] = {}

    def interval(self, share: float = RACING) -> Interval:
        """Where it is with this probability."""
        if share not in self._intervals:
            self._intervals[share] = self._edge.interval(share)
        return self._intervals[share]

    @property
    def holds(self) -> bool | None:
        """Whether any rate has held."""
        held = [held for _, held, _ in self._answers]
        return any(held) if held else None

    @property
    def boots(self) -> int:
        """Starts of its server that gave figures."""
        return len({boot for _, _, boot in self._answers})

    @property
    def highest_held(self) -> float:
        """The highest rate that held; 0: none."""
        return max((rate for rate, held, _ in self._answers if held), default=0.0)

    def learn(self, observed: Observation) -> None:
        """Take a rate in that held or broke."""
        if observed.held is None or not observed.ask.rate:
            return
        self._learn(_learnt(observed), observed.held, observed.boot)

    def next(self, boot: int) -> float:
        """Return the rate whose answer tells most of a start; for a start that is yet to come, give a number that no
        start has."""
        mid = self.interval().mid
        return min(max(self._edge.next(boot), mid / STEP), mid * STEP)

    def _learn(self, rate: float, held: bool, boot: int) -> None:
        self._answers.append((rate, held, boot))
        self._edge.learn(rate, held, boot)
        self._intervals.clear()
        low, high = self._range
        found = self.interval(REPORTED)
        if found.high >= high * 0.9 or found.low <= low * 1.1:
            # The forecast was wrong: look further out, around what did hold where that is more.
            self._range = (low / 8, high * 8) if found.low <= low * 1.1 else (low, high * 8)
            self._edge = Edge(*self._range, max(self._expected, self.highest_held))
            for answer in self._answers:
                self._edge.learn(*answer)
            self._intervals.clear()


# The highest rate of a finalist, from server sessions that began after it was chosen.
#
# Whoever is best of many was lucky too: by the loads it was chosen by, it does more than it can (the winner's curse).
# So what is reported of it is of other loads alone, on starts of their own. Each start gives its threshold by itself;
# what is reported is Student's interval of their mean, which covers however far starts differ and whatever the noise
# of one is, since that is in how far they differ.

AROUND, CURVES = 0.12, (0.01, 0.02, 0.04)
"""How far from what is expected the threshold of one start may well be, in logarithms, and how far around it answers
vary: both as `benchmarks/tune_intervals.py` shows intervals to cover with."""
ENOUGH = 3
"""Answers of a start that say where its threshold is."""
CLOSE = 0.1
"""From the middle of the other starts, in logarithms, the threshold of one is first looked for."""
FINE = 0.01
"""Thresholds of starts are equal by chance, as they are found by the same steps: they are not known better than so."""
ROOM = 4.0
"""Times what is expected, upwards and downwards, a threshold is looked for."""


@dataclass
class _Start:
    """What one start of a finalist's server says."""

    host: str
    boot: int
    likely: Floats
    """Likelihood by width of the curve and threshold."""
    answers: int = 1


class Confirmed:
    """The highest rate that a finalist holds, by starts that are only for that, on one host or several."""

    def __init__(self, expected: float) -> None:
        """`expected` is where it was until now."""
        self._expected = expected
        points = math.ceil(2 * math.log(ROOM) / GRID) + 1
        self._logs: Floats = math.log(expected) + np.linspace(-math.log(ROOM), math.log(ROOM), points)
        self._prior = _peak(self._logs, math.log(expected), AROUND)
        self._starts: list[_Start] = []
        self._held: list[bool] = []

    @property
    def holds(self) -> bool | None:
        """Whether any rate has held."""
        return any(self._held) if self._held else None

    def by_host(self) -> dict[str, list[float]]:
        """Return the thresholds, logarithms, of the starts of each host that gave enough figures."""
        found: dict[str, list[float]] = {}
        for start in self._starts:
            if start.answers >= ENOUGH:
                found.setdefault(start.host, []).append(self._of(start))
        return found

    def learn(self, observed: Observation) -> None:
        """Take a rate in that held or broke."""
        if observed.held is None or not observed.ask.rate:
            return
        self._held.append(observed.held)
        widths = np.array(CURVES)[:, None]
        distance = (self._logs[None, :] - math.log(_learnt(observed))) / widths
        curve = likely_to_hold(distance)
        likely = curve if observed.held else 1.0 - curve
        start = self._current(observed.host, observed.boot)
        if start is None:
            self._starts.append(_Start(observed.host, observed.boot, likely))
            return
        both = start.likely * likely
        start.likely, start.boot = both / both.max(), observed.boot
        start.answers += 1

    def next(self, boot: int, host: str = "") -> float:
        """Return the rate whose answer tells most of a start on a host; for a start that is yet to come, give a number
        that no start has."""
        current = self._current(host, boot)
        others = [self._of(start) for start in self._starts if start is not current]
        middle = math.fsum(others) / len(others) if others else math.log(self._expected)
        known = _peak(self._logs, middle, CLOSE)
        if current is not None:
            known = known * current.likely.sum(axis=0)
        return math.exp(self._median(known))

    def interval(self, share: float = REPORTED) -> Interval:
        """Where it is with this probability. Raises ValueError before there are two starts.

        By Student's distribution of the mean over starts. Where several hosts made them, hosts may differ, too: with
        the variance of hosts by mean squares (`statistics.variance_over_hosts`), if that is more.
        """
        hosts = [*self.by_host().values()]
        found = [threshold for thresholds in hosts for threshold in thresholds]
        count = len(found)
        if count < 2:
            raise ValueError("one start does not show how far starts differ")
        mean = math.fsum(found) / count
        between = math.fsum((threshold - mean) ** 2 for threshold in found) / (count - 1)
        of_mean = max(between, FINE**2, variance_over_hosts([np.array(own) for own in hosts])) / count
        return of_logs(mean, student_t(count - 1, share) * math.sqrt(of_mean))

    def _current(self, host: str, boot: int) -> _Start | None:
        """Return the start that a load on a host belongs to; None: it begins one.

        An overloaded server may be started again in the midst: what it says then completes the start.
        """
        last = next((start for start in reversed(self._starts) if start.host == host), None)
        return last if last is not None and (last.boot == boot or last.answers < ENOUGH) else None

    def _of(self, start: _Start) -> float:
        """Return the threshold of one start, a logarithm, by its own answers."""
        return self._median(self._prior * start.likely.sum(axis=0))

    def _median(self, known: Floats) -> float:
        sums = np.cumsum(known)
        return float(self._logs[int(np.searchsorted(sums / sums[-1], 0.5))])


def _peak(logs: Floats, middle: float, spread: float) -> Floats:
    """Return how likely each is before anything was seen: a peak in the middle, on a floor for a forecast that is
    wrong.
    """
    peak = np.exp(-np.abs(logs - middle) / spread)
    found: Floats = peak / peak.sum() * (1 - FORECAST_WRONG) + FORECAST_WRONG / len(logs)
    return found


def _learnt(observed: Observation) -> float:
    """Return the rate that a load says held or broke: what an overdone server did, where it is less than requested."""
    if not observed.held and observed.overdone and observed.throughput_rps > 0:
        return min(observed.ask.rate, observed.throughput_rps * NO_MORE)
    return observed.ask.rate


# The cost of a request at one rate.
#
# The mean over starts, in logarithms, each start by the mean of its loads. Before there are enough starts, how far they
# differ is taken from what candidates of this race differ by from start to start (`Spread`), and from what is known of
# machines before there is any. With `LEAST_BOOTS` and more, what is reported is Student's interval of these means
# alone: it covers whatever the noise is.

UNMEASURED = 3.0
"""Times a forecast of cost, upwards and downwards: an interval of what was not measured."""
SPREAD_WORTH = 4
"""Starts that what is known beforehand is worth."""


class Spread:
    """By what starts of one server differ in cost, learnt from all candidates of a race."""

    def __init__(self, usual: float) -> None:
        """`usual` is the standard deviation, as a part of the cost, that is known beforehand."""
        self._usual = usual
        self._squares: dict[int, tuple[float, int]] = {}

    def note(self, whose: int, squares: float, freedom: int) -> None:
        """Take in what one candidate shows: squares of the deviations of its starts, and their degrees of freedom."""
        self._squares[whose] = (squares, freedom)

    @property
    def freedom(self) -> float:
        """Degrees of freedom of `variance`."""
        return SPREAD_WORTH + sum(freedom for _, freedom in self._squares.values())

    @property
    def variance(self) -> float:
        """Of a start."""
        squares = SPREAD_WORTH * self._usual**2 + sum(squares for squares, _ in self._squares.values())
        return squares / self.freedom


class Costs:
    """What a request costs at one rate; its interval is of the reciprocal of the cost, so that more is better."""

    def __init__(self, forecast: float, spread: Spread, *, alone: bool = False) -> None:
        """`alone`: enough starts are judged by how far they differ themselves, not by what others differ by."""
        self.forecast, self._spread, self._alone = forecast, spread, alone
        self._logs: dict[int, list[float]] = {}
        """Costs of each start."""
        self._hosts: dict[int, str] = {}
        """Of each start."""
        self._held: list[tuple[bool, int]] = []

    def interval(self, share: float = RACING) -> Interval:
        """Where the reciprocal of the cost lies, with this probability."""
        cost = self.cost(share)
        return Interval(1 / cost.high, 1 / cost.mid, 1 / cost.low)

    def by_host(self) -> dict[str, list[float]]:
        """Return the mean cost, a logarithm, of each start of a host."""
        found: dict[str, list[float]] = {}
        for boot, logs in self._logs.items():
            found.setdefault(self._hosts[boot], []).append(math.fsum(logs) / len(logs))
        return found

    def cost(self, share: float = RACING) -> Interval:
        """Where the cost is, with this probability."""
        means = [math.fsum(logs) / len(logs) for logs in self._logs.values()]
        count = len(means)
        if not count:
            return Interval(self.forecast / UNMEASURED, self.forecast, self.forecast * UNMEASURED)
        mean = math.fsum(means) / count
        own = math.fsum((value - mean) ** 2 for value in means)
        if self._alone and count >= LEAST_BOOTS:
            freedom, variance = count - 1.0, own / (count - 1)
        else:
            freedom, variance = self._spread.freedom, self._spread.variance
        half = student_t(freedom, share) * math.sqrt(variance / count)
        return of_logs(mean, half)

    @property
    def holds(self) -> bool | None:
        """Whether it carries the rate: more loads held than broke."""
        if not self._held:
            return None
        return sum(held for held, _ in self._held) > len(self._held) / 2

    @property
    def boots(self) -> int:
        """Starts of its server that gave figures."""
        return len(self._logs)

    @property
    def broken(self) -> int:
        """Loads that broke."""
        return sum(not held for held, _ in self._held)

    def learn(self, observed: Observation) -> None:
        """Take in whether the rate held."""
        if observed.held is not None:
            self._held.append((observed.held, observed.boot))

    def pay(self, cost: float, boot: int, host: str = "") -> None:
        """Take in what it cost while it held."""
        self._hosts[boot] = host
        self._logs.setdefault(boot, []).append(math.log(max(cost, 1e-12)))
        means = [math.fsum(log) / len(log) for log in self._logs.values()]
        mean = math.fsum(means) / len(means)
        self._spread.note(id(self), math.fsum((value - mean) ** 2 for value in means), len(means) - 1)
