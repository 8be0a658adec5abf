"""The race among settings: who is measured next, how long, and when it is enough.

    tuned = tune(measure, grid, Wanted(Goal.CAPACITY, cpus=2))

Each stack is looked at shortly, which gives the app's own CPU and wait a request; arithmetic then says what each
candidate can do at most. In the first lap each that may still win is asked once or twice, the most promising first, at
a rate a little above what the leader does: most of them break there and are out. In the following laps the strongest
of those left and the leader are measured in turn, longer each time, until nobody's interval reaches clearly above the
leader's; none is out before its interval says so. That is successive halving (K. Jamieson and A. Talwalkar,
«Non-stochastic Best Arm Identification and Hyperparameter Optimization», AISTATS 2016) with the stopping rule of LUCB
(S. Kalyanakrishnan and others, «PAC Subset Selection in Stochastic Multi-armed Bandits», ICML 2012).
"""

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from velodrome.judge.search.holding import ALONE_S
from velodrome.judge.search.rate import Threshold
from velodrome.judge.statistics import student_t
from velodrome.judge.tuning.forecasting import crowd, enough, forecast, looked, seen_with_few
from velodrome.model import quantity
from velodrome.model.quantity import Interval
from velodrome.model.tuning import (
    Ask,
    Candidate,
    Entry,
    Fate,
    Forecast,
    Goal,
    Looked,
    Told,
    Tuned,
    TuneEnding,
    Wanted,
)

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


# --- One candidate in a race among settings: its forecast, what is known of it, and why it is out, if it is.

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


# --- What is told at the end of a race among settings: who is best, who is next, and what became of the others.

CHEAPER, NEARLY = 0.8, 0.98
"""A candidate with so much of the leader's memory that does so much of what the leader does is preferred."""

VARIES = 1.3
"""Between the ends of the best one's interval: wider, and nothing is settled."""


@dataclass(frozen=True)
class Finish:
    """All there is at the end."""

    goal: Goal
    arms: Sequence[Arm]
    lost: Sequence[Entry]
    """Candidates of stacks that could not be looked at."""
    looks: Mapping[str, Looked]
    trials: int
    candidates: int

    def tuned(self, leader: Arm | None, spent: str, late: str = "") -> Tuned:
        """Return what came of the race; `spent` says what ended it while others might still be better.

        `late` says it where there was no time to try all of them.
        """
        best = self._preferred(leader)
        second = next(iter(behind(self.arms, best)), None)
        entries = [*(self._entry(one, best, second) for one in self.arms), *self.lost]
        rank = list(Fate)
        entries.sort(key=lambda one: (rank.index(one.fate), -self._worth(one)))
        if best is None:
            ending, why = self._nobody()
            if late and ending is TuneEnding.NEVER:
                ending, why = TuneEnding.CANNOT, f"after {late} no rate had held: {why}"
        else:
            why = f"after {spent} others may be as good" if spent else _unsure(best)
            ending = TuneEnding.SPENT if why else TuneEnding.SETTLED
        return Tuned(self.goal, ending, why, tuple(entries), dict(self.looks), self.trials, self.candidates)

    def _worth(self, entry: Entry) -> float:
        if entry.value is None:
            return entry.forecast.rps / 1e12 if entry.forecast else 0.0
        return entry.value.mid if self.goal is Goal.CAPACITY else 1 / entry.value.mid

    def _preferred(self, leader: Arm | None) -> Arm | None:
        """Return the leader, or who does nearly as much with clearly less memory."""
        if leader is None or leader.memory_bytes is None or self.goal is Goal.MEMORY:
            return leader
        limit = CHEAPER * leader.memory_bytes
        nearly = [
            one
            for one in self.arms
            if one.running
            and one.plain is None
            and one.known.holds
            and one.mid >= NEARLY * leader.mid
            and one.lower >= NEARLY * leader.lower
            and one.memory_bytes is not None
            and one.memory_bytes <= limit
        ]
        return min(nearly, key=lambda one: one.memory_bytes or 0, default=leader)

    def _entry(self, one: Arm, best: Arm | None, second: Arm | None) -> Entry:
        if one is best or one is second:
            return one.entry(Fate.BEST if one is best else Fate.RUNNER_UP, "")
        if one.out is not None:
            return one.entry(one.out, one.why)
        if one.trials:
            lower = best is not None and one.known.interval.high < best.lower
            return one.entry(Fate.BEHIND if lower else Fate.EVEN, one.broke)
        if best is not None and one.upper <= best.mid:
            return one.entry(Fate.BY_ARITHMETIC, one.forecast.arithmetic)
        alike = next((other for other in self.arms if other.trials and one.is_like(other)), None)
        why = f"by arithmetic no better than {alike.candidate.label}" if alike else one.forecast.arithmetic
        return one.entry(Fate.ALIKE if alike else Fate.UNTRIED, why)

    def _nobody(self) -> tuple[TuneEnding, str]:
        """Return why there is no best."""
        tried = [one for one in self.arms if one.trials and one.broke]
        if tried:
            closest = max(tried, key=lambda one: one.forecast.rps)
            return TuneEnding.NEVER, f"{closest.candidate.label}: {closest.why or closest.broke}"
        reasons = [*(one.why for one in self.arms if one.why), *(one.why for one in self.lost)]
        fates = {*(one.out for one in self.arms), *(one.fate for one in self.lost)}
        impossible = not fates.isdisjoint({Fate.BY_ARITHMETIC, Fate.TOO_BIG, Fate.CANNOT})
        ending = TuneEnding.NEVER if impossible else TuneEnding.CANNOT
        return ending, reasons[0] if reasons else "there was nothing to try"


def _unsure(best: Arm) -> str:
    """Return why the best one's own figure is not to be relied on; empty: it is."""
    if best.capped:
        return best.capped
    if best.known.interval.high > VARIES * best.known.interval.low:
        return "from load to load the best one holds different rates: this machine is too restless for the condition"
    return ""


def behind(arms: Sequence[Arm], best: Arm | None, *, held: bool = True) -> list[Arm]:
    """Return those that are next, best first: of other stacks before those of its own.

    `held`: only those that have held a rate; others were asked for what the leader does, and broke.
    """
    others = [one for one in arms if one.running and one is not best and (one.known.holds or not held)]
    stack = best.candidate.contestant.stack if best else ""
    return sorted(others, key=lambda one: (one.candidate.contestant.stack == stack, -one.mid))


# --- The race among settings: who is measured next, how long, and when it is enough.

INDIFFERENT = 0.03
"""Better by less than this is not better: repeats on a small machine differ by it."""
FIRST = 0.8
"""Of a forecast, the rate that is asked first while nobody leads."""
UNSEEN = 1.6
"""Times what a look lets expect of a stack, an open loop may show: none is out before it was asked once."""
LOW = 0.05
"""Of a forecast, the rate that must hold if any does."""
LOOK_S = 1.0
SETTLED = 1.08
"""The ends of the leader's interval are no further apart at the end, if the budget allows."""
SETTLING, KEPT = 10, 6
"""Loads that the two best may take for that, each; and how many are kept for it."""
LEAST_ASKED = 3
"""While no rate has held, so many loads at a rate are made however late it is: without them there is no answer."""
UNSEEN_WHY = "its stack was not looked at: the time (--budget) or the loads were spent"


Measure = Callable[[Candidate, Ask], Told]


@dataclass
class _Race:
    measure: Measure
    grid: list[Candidate]
    wanted: Wanted
    goes_on: Callable[[], bool]
    refine: Callable[[Candidate], Sequence[Candidate]]
    looks_on: Callable[[], bool]
    arms: list[Arm] = field(default_factory=list)
    lost: list[Entry] = field(default_factory=list)
    """Candidates of stacks that could not be looked at."""
    looks: dict[str, Looked] = field(default_factory=dict)
    trials: int = 0
    asked: int = 0
    """Of these, loads at a rate."""
    late: bool = False
    """Whether there was no time to look at every stack."""

    def run(self) -> Tuned:
        unseen = list(dict.fromkeys(one.contestant.stack for one in self.grid))
        while unseen and (not self.looks or self.looks_on()):
            self._look(unseen.pop(0))
        self._first_lap()
        self._laps()
        while unseen and not self._spent(KEPT):
            # Those raced already left more time than was kept for them.
            self._look(unseen.pop(0))
            self._first_lap()
            self._laps()
        self.late = bool(unseen)
        self._lose(unseen, Fate.UNTRIED, UNSEEN_WHY)
        self._refine()
        spent = self._ended() if self._settle() or self.late else ""
        told = Finish(self.wanted.goal, self.arms, self.lost, self.looks, self.trials, len(self.grid))
        untried = self.late or any(one.out is None for one in self.arms)
        late = self._ended() if untried and self._is_out_of_time() else ""
        return told.tuned(self._leader, spent, late)

    # --- looking and asking

    def _look(self, stack: str) -> None:
        """Load the smallest of a stack twice, alone and by many; by many with fewer slots too, if they may do."""
        candidates = [one for one in self.grid if one.contestant.stack == stack]
        one = min(candidates, key=lambda each: (each.processes, -(each.slots or 0)))
        alone = self._measured(one, Ask(ALONE_S, connections=1))
        loaded = alone
        if alone.everywhere:
            self._lose([stack], Fate.CANNOT, alone.why)
            return
        if not (alone.failed or alone.spoilt):
            loaded = self._measured(one, Ask(LOOK_S, connections=crowd(one, alone)))
        look = looked(one, alone, loaded, self.wanted.cpus)
        if look is None or loaded.failed:
            self._lose([stack], Fate.FAILED, loaded.failed or loaded.spoilt or "it answered nothing right")
            return
        if (few := enough(candidates, look)) is not None:
            look = seen_with_few(look, few, self._measured(few, Ask(LOOK_S, connections=crowd(few, alone))))
        self.looks[stack] = look
        for each in candidates:
            self._enter(each, look)

    def _lose(self, stacks: Sequence[str], fate: Fate, why: str) -> None:
        lost = [one for one in self.grid if one.contestant.stack in stacks]
        self.lost += [Entry(one, fate, why, 0, None, None, None, None) for one in lost]

    def _enter(self, candidate: Candidate, look: Looked) -> Arm:
        found = forecast(candidate, look, self.wanted.cpus)
        limit = self.wanted.memory_bytes
        entered = arm(candidate, found, look, self.wanted.goal, limit)
        self.arms.append(entered)
        if limit is not None and found.memory_bytes is not None and found.memory_bytes > limit:
            about = quantity.memory(found.memory_bytes)
            entered.put_out(Fate.TOO_BIG, f"at least {about} for {candidate.processes} processes")
        elif found.rps * SLACK < self.wanted.rate:
            entered.put_out(Fate.BY_ARITHMETIC, f"it cannot carry the rate: {found.arithmetic}")
        return entered

    def _measured(self, candidate: Candidate, ask: Ask) -> Told:
        self.trials += 1
        self.asked += bool(ask.rate)
        return self.measure(candidate, ask)

    def _spent(self, spare: int = 0) -> bool:
        late = not self.goes_on() and (self._leader is not None or self.asked >= LEAST_ASKED)
        return late or self.trials + spare >= self.wanted.most

    def _is_out_of_time(self) -> bool:
        return self.late or not self.goes_on()

    def _ended(self) -> str:
        """Return what it was that was spent."""
        if self._is_out_of_time():
            return f"{self.trials} loads in the time there was (more, --budget, may settle it)"
        return f"{self.trials} loads, all that may be made (fewer stacks, --stack, need fewer),"

    def _promise(self, one: Arm) -> tuple[float, int, int]:
        """Sort the most promising first; of those alike the smallest, which costs least."""
        slots = one.candidate.slots or 0
        if self.wanted.goal is Goal.CAPACITY:
            return -float(f"{one.forecast.rps:.2g}"), one.candidate.processes, slots
        return -float(f"{one.mid:.2g}"), one.candidate.processes, slots

    @property
    def _leader(self) -> Arm | None:
        running = [one for one in self.arms if one.running and one.known.holds]
        best = max(running, key=lambda one: one.mid, default=None)
        plain = best.plain if best is not None else None
        if best is None or plain is None or plain.out is not None:
            return best
        # What it differs in decides nothing, unless it clearly does.
        return best if best.lower > plain.known.interval.high else plain

    def _contends(self, one: Arm) -> bool:
        """Whether it may be clearly better than the leader."""
        leader = self._leader
        if one.out is not None or one is leader or one.capped:
            return False
        stack = one.candidate.contestant.stack
        seen = any(other.trials for other in self.arms if other.candidate.contestant.stack == stack)
        upper = one.upper if seen else one.upper * UNSEEN
        return leader is None or upper > leader.mid * (1 + INDIFFERENT)

    def _ask(self, one: Arm) -> Ask:
        steps = self.wanted.seconds
        seconds = steps[min(one.trials // 2, len(steps) - 1)]
        if not isinstance(one.known, Rates):
            return Ask(seconds, rate=self.wanted.rate)
        leader = self._leader
        if leader is None:
            return Ask(seconds, rate=one.forecast.rps * (LOW if one.known.holds is False else FIRST))
        above = leader.mid * (1 + INDIFFERENT)
        if one is leader or one.lower > above:
            return Ask(seconds, rate=one.known.next())
        return Ask(seconds, rate=above)

    def _visit(self, one: Arm, loads: int) -> None:
        """Measure a candidate, whose server then runs, so many times, unless it is out before."""
        for _ in range(loads):
            if one.out is not None or self._spent():
                return
            ask = self._ask(one)
            told = self._measured(one.candidate, ask)
            one.take(told, self.wanted.goal)
            if told.everywhere:
                stack = one.candidate.contestant.stack
                for other in (other for other in self.arms if other.candidate.contestant.stack == stack):
                    other.put_out(Fate.CANNOT, told.why)
                return
            low = ask.rate < FIRST * one.forecast.rps and isinstance(one.known, Rates)
            if self._leader is None and low and one.known.holds is False and one.out is None:
                one.put_out(Fate.CANNOT, f"even at {quantity.rate(ask.rate)} {one.broke}")
            if one is not self._leader and not self._contends(one):
                return

    # --- laps

    def _first_lap(self) -> None:
        measured = [one for one in self.arms if one.trials]
        self.arms.sort(key=self._promise)
        for one in [each for each in self.arms if not each.trials]:
            if self._spent(KEPT):
                return
            if one.out is not None or not self._contends(one):
                continue
            if any(one.is_like(other) for other in measured):
                continue
            self._visit(one, 3 if self._leader is None else 2)
            if one.trials:
                measured.append(one)

    def _laps(self) -> None:
        """Measure the strongest that is left, and the leader, until nobody is."""
        while not self._spent(KEPT):
            left = [one for one in self._rivals() if self._contends(one)]
            if not left:
                return
            self._visit(max(left, key=lambda one: one.upper), 2)
            leader = self._leader
            if leader is not None and not leader.capped and not self._is_narrow(leader):
                self._visit(leader, 1)

    def _refine(self) -> None:
        """Try the leader's neighbours in what decides nothing while a server keeps up, and go on with those."""
        leader = self._leader
        if leader is None:
            return
        look = self.looks[leader.candidate.contestant.stack]
        near = [self._enter(one, look) for one in self.refine(leader.candidate)]
        self.grid += [one.candidate for one in near]
        for one in near:
            one.plain = leader
            if self._spent(KEPT):
                return
            self._visit(one, 2)

    @staticmethod
    def _is_narrow(one: Arm) -> bool:
        return one.known.interval.high <= SETTLED * one.known.interval.low

    def _rivals(self) -> Iterator[Arm]:
        """Yield who may be measured: who was, and whoever is like one that is as good as the leader."""
        leader = self._leader
        good = [one for one in self.arms if one.running and (leader is None or one.upper >= leader.lower)]
        for one in self.arms:
            if one.trials or any(one.is_like(other) for other in good):
                yield one

    def _settle(self) -> bool:
        """Narrow the intervals of the two that are told; whoever may be better again by that is measured again.

        Returns whether the race ended before that was done.
        """
        loads: Counter[str] = Counter()
        while True:
            self._laps()
            leader = self._leader
            wide = (
                one
                for one in (leader, *behind(self.arms, leader, held=False)[:1])
                if one is not None and self._is_wide(one) and loads[one.candidate.label] < SETTLING
            )
            one = next(wide, None)
            if one is None or self._spent():
                return any(self._contends(rival) for rival in self._rivals())
            loads[one.candidate.label] += 1
            ask = self._ask(one)
            if isinstance(one.known, Rates):
                ask = Ask(ask.seconds, rate=one.known.next())
            one.take(self._measured(one.candidate, ask), self.wanted.goal)

    def _is_wide(self, one: Arm) -> bool:
        return one.out is None and not one.capped and not (one.known.holds and self._is_narrow(one))


def tune(
    measure: Measure,
    grid: Sequence[Candidate],
    wanted: Wanted,
    goes_on: Callable[[], bool] = lambda: True,
    refine: Callable[[Candidate], Sequence[Candidate]] = lambda _: (),
    *,
    looks_on: Callable[[], bool] = lambda: True,
) -> Tuned:
    """Search the best of a grid; `goes_on` says whether there is time, `refine` who else to try once somebody leads.

    `looks_on` says whether there is time to look at one stack more; they are looked at in the order of the grid, and
    the first that can be is in any case. Whatever `measure` raises ends the search.
    """
    return _Race(measure, list(grid), wanted, goes_on, refine, looks_on).run()
