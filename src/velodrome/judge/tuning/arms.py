"""One candidate in a race among settings: its forecast, what is known of it, and why it is out, if it is."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from velodrome.judge.tuning.knowing import Costs, Known, Rates
from velodrome.model import quantity
from velodrome.model.interval import Interval
from velodrome.model.tuning import Candidate, Entry, Fate, Forecast, Goal, Looked, Told

SLACK = 1.3
"""A forecast is from one short look and may be wrong by so much before arithmetic alone puts anybody out."""
SPOILT = 3
"""So many loads that say nothing of a candidate are enough."""
AMPLE = 1.5
"""So many times the requests in it at its forecast's rate: more slots or threads change nothing by arithmetic."""
ALIKE = 1.05


@dataclass
class Arm:
    """One candidate, and all that is known of it."""

    candidate: Candidate
    forecast: Forecast
    known: Known
    memory_limit: int | None = None
    trials: int = 0
    spoilt: int = 0
    memory_bytes: int | None = None
    grew_bytes: float | None = None
    out: Fate | None = None
    why: str = ""
    broke: str = ""
    """What broke last."""
    capped: str = ""
    """Why no more can be told of it: the generator was the limit, again and again."""
    plain: "Arm | None" = None
    """The one that this differs from in what decides nothing while a server keeps up, such as a backlog."""
    texts: Mapping[str, str] = field(default_factory=dict)
    """Its knobs that are no counts: the loop."""

    @property
    def upper(self) -> float:
        """No more than this can be expected of it."""
        if isinstance(self.known, Costs):
            return self.known.interval.high
        measured = self.known.holds is not None
        return min(self.known.interval.high, self.forecast.rps * (SLACK if not measured else SLACK**2))

    @property
    def lower(self) -> float:
        """At least this."""
        return self.known.interval.low

    @property
    def mid(self) -> float:
        """The estimate."""
        return self.known.interval.mid

    @property
    def running(self) -> bool:
        """Whether it has been measured and is not out."""
        return self.out is None and self.trials > 0

    def put_out(self, fate: Fate, why: str) -> None:
        """Never ask it again."""
        self.out, self.why = fate, why

    def take(self, told: Told, goal: Goal) -> None:
        """Take a load in."""
        self.trials += 1
        if told.failed:
            self.put_out(Fate.FAILED, told.failed)
            return
        if told.spoilt or (told.ask.rate and told.held is None):
            self.spoilt += 1
            if self.spoilt >= SPOILT:
                self.capped = told.spoilt or told.why
                if not self.known.holds:
                    self.put_out(Fate.FAILED, self.capped)
            return
        self._weigh(told)
        self.known.learn(told)
        self.broke = told.why or self.broke
        if isinstance(self.known, Costs):
            cost = told.cpu_us if goal is Goal.CPU else told.memory_bytes
            if told.held and cost:
                self.known.pay(cost)
            if self.known.holds is False and self.known.broken > 1:
                self.put_out(Fate.CANNOT, self.broke)

    def _weigh(self, told: Told) -> None:
        """Look at its memory: one that leaks has not always had so much."""
        self.grew_bytes = told.grew_bytes or self.grew_bytes
        if told.memory_bytes is None:
            return
        least_or_most = min if self.grew_bytes else max
        self.memory_bytes = least_or_most(self.memory_bytes or told.memory_bytes, told.memory_bytes)
        if self.memory_limit is not None and self.memory_bytes > self.memory_limit:
            had, limit = quantity.memory(self.memory_bytes), quantity.memory(self.memory_limit)
            self.put_out(Fate.TOO_BIG, f"it had {had}, and the limit is {limit}")

    def is_like(self, other: "Arm") -> bool:
        """Whether arithmetic makes no difference between it and one that was measured and has slots to spare."""
        mine, theirs = self.candidate, other.candidate
        ample = theirs.slots is None or theirs.slots >= AMPLE * other.forecast.needs
        return (
            mine.contestant.stack == theirs.contestant.stack
            and self.texts == other.texts
            and ample
            and self.forecast.rps <= ALIKE * other.forecast.rps
        )

    def entry(self, fate: Fate, why: str) -> Entry:
        """Return what is told of it at the end."""
        value: Interval | None = None
        if self.trials and isinstance(self.known, Rates) and self.known.holds:
            value = self.known.interval
        elif isinstance(self.known, Costs) and self.known.holds:
            value = self.known.cost
        return Entry(
            self.candidate,
            fate,
            why,
            self.trials,
            value,
            self.memory_bytes,
            self.grew_bytes,
            self.forecast,
        )


def arm(candidate: Candidate, forecast: Forecast, look: Looked, goal: Goal, memory: int | None) -> Arm:
    """Return a candidate that has not been measured yet."""
    known: Known
    match goal:
        case Goal.CAPACITY:
            known = Rates(forecast.rps)
        case Goal.CPU:
            known = Costs(look.costs_us(candidate.slots_each))
        case _:
            known = Costs(forecast.memory_bytes or look.memory_bytes or 1.0)
    texts = {knob: value for knob, value in candidate.contestant.knobs.items() if isinstance(value, str)}
    return Arm(candidate, forecast, known, memory, texts=texts)
