"""What is known of one candidate after some loads: an interval of what the goal asks for.

`Rates` of the highest rate that holds, by Bayes' rule (`judge/search/threshold.py`) from rates that held and broke;
where one broke because the server could not keep up, what it did instead is all it can do. `Costs` of the CPU a request
costs or of the memory it takes at one rate, by Student's interval of the logarithms; of few loads their spread is taken
to be what repeats differ by on a small machine.
"""

import math
from typing import Protocol

from velodrome.judge.confidence import student_t
from velodrome.judge.search.threshold import Threshold
from velodrome.model.interval import Interval
from velodrome.model.tuning import Told

EXPECTED = 0.9
"""Of what arithmetic allows: queues take the rest."""
DOWN, UP = 60.0, 1.6
"""Between a forecast divided by the one and times the other the highest rate is looked for."""
STEP = 1.15
"""What is asked next is no further from the estimate: a forecast is seldom so wrong that more would pay."""
NO_MORE = 1.06
"""Times what an overdone server did: more it cannot do at any rate."""
SPREAD, SPREAD_WORTH = 0.04, 4
"""What repeats differ by, and how many of them that is worth."""
UNMEASURED = 3.0
"""Times a forecast of cost, upwards and downwards: an interval of what was not measured."""


class Known(Protocol):
    """What is known of one candidate; `interval` is always of «the more the better»."""

    @property
    def interval(self) -> Interval:
        """With 95 %."""

    @property
    def holds(self) -> bool | None:
        """Whether it has held at all, or carries the rate; None: it is not told yet."""

    def learn(self, told: Told) -> None:
        """Take a load in."""


class Rates:
    """The highest rate that holds."""

    def __init__(self, forecast: float) -> None:
        self._forecast = forecast
        self._range = (forecast / DOWN, forecast * UP)
        self._answers: list[tuple[float, bool]] = []
        self._threshold = Threshold(*self._range, expected=EXPECTED * forecast)
        self._interval: Interval | None = None

    @property
    def interval(self) -> Interval:
        """With 95 %."""
        if self._interval is None:
            self._interval = self._threshold.interval()
        return self._interval

    @property
    def holds(self) -> bool | None:
        """Whether any rate has held."""
        held = [held for _, held in self._answers]
        return any(held) if held else None

    @property
    def highest_held(self) -> float:
        """The highest rate that held; 0: none."""
        return max((rate for rate, held in self._answers if held), default=0.0)

    def learn(self, told: Told) -> None:
        """Take a rate in that held or broke."""
        if told.held is None or not told.ask.rate:
            return
        self._learn(told.ask.rate, told.held)
        if not told.held and told.overdone and 0 < told.throughput_rps * NO_MORE < told.ask.rate:
            self._learn(told.throughput_rps * NO_MORE, False)

    def next(self) -> float:
        """Return the rate whose answer tells most."""
        mid = self.interval.mid
        return min(max(self._threshold.next(), mid / STEP), mid * STEP)

    def _learn(self, rate: float, held: bool) -> None:
        self._answers.append((rate, held))
        self._threshold.learn(rate, held)
        self._interval = None
        low, high = self._range
        found = self.interval
        if found.high >= high * 0.9 or found.low <= low * 1.1:
            # The forecast was wrong: look further out, around what did hold where that is more.
            self._range = (low / 8, high * 8) if found.low <= low * 1.1 else (low, high * 8)
            self._threshold = Threshold(
                *self._range, expected=max(EXPECTED * self._forecast, self.highest_held)
            )
            for one in self._answers:
                self._threshold.learn(*one)
            self._interval = None


class Costs:
    """What a request costs at one rate; its interval is of one over the cost, so that more is better."""

    def __init__(self, forecast: float) -> None:
        self._forecast = forecast
        self._logs: list[float] = []
        self._held: list[bool] = []

    @property
    def interval(self) -> Interval:
        """With 95 %; of one over the cost."""
        cost = self.cost
        return Interval(1 / cost.high, 1 / cost.mid, 1 / cost.low)

    @property
    def cost(self) -> Interval:
        """With 95 %."""
        count = len(self._logs)
        if not count:
            return Interval(self._forecast / UNMEASURED, self._forecast, self._forecast * UNMEASURED)
        mean = math.fsum(self._logs) / count
        squares = math.fsum((one - mean) ** 2 for one in self._logs)
        freedom = SPREAD_WORTH + count - 1
        spread = math.sqrt((SPREAD_WORTH * SPREAD**2 + squares) / freedom)
        half = student_t(freedom) * spread / math.sqrt(count)
        return Interval(math.exp(mean - half), math.exp(mean), math.exp(mean + half))

    @property
    def holds(self) -> bool | None:
        """Whether it carries the rate: more loads held than broke."""
        if not self._held:
            return None
        return sum(self._held) > len(self._held) / 2

    @property
    def broken(self) -> int:
        """Loads that broke."""
        return self._held.count(False)

    def learn(self, told: Told) -> None:
        """Take in whether the rate held."""
        if told.held is not None:
            self._held.append(told.held)

    def pay(self, cost: float) -> None:
        """Take in what it cost while it held."""
        self._logs.append(math.log(max(cost, 1e-12)))
