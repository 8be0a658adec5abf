"""The race among settings: who is measured next, how long, and when it is enough.

    field = Field(grid, Wanted(Goal.CAPACITY, cpus=2))
    race(measure, field, goes_on, refine)
    drive(confirming(whole(field)), measure)
    tuned = field.result(not goes_on())

Each stack is looked at shortly, which gives the app's own CPU and wait a request; arithmetic then says what each
candidate can do at most. In the first lap each that may still win is measured once or twice, the most promising first,
at a rate a little above what the leader does: most of them break there and are out. In the following laps the strongest
of those left and the leader are measured in turn, each visit on a server that is started for it and warmed up, longer
each time, until nobody's interval reaches clearly above the leader. The leader is who does most by the lower end of its
interval, so that nobody leads because of a few lucky loads. That is successive halving (K. Jamieson and A. Talwalkar,
«Non-stochastic Best Arm Identification and Hyperparameter Optimization», AISTATS 2016) with the stopping rule of LUCB
(S. Kalyanakrishnan and others, «PAC Subset Selection in Stochastic Multi-armed Bandits», ICML 2012).

At the end the leader and the next are confirmed: measured in turn on starts of their own. Only these loads are in the
intervals that are reported of the two, because those they were chosen by flatter (`knowing.py`).

Several hosts may make the loads of one race (`Share`, `hosts.py`): each measures what no other does just now.

Whatever is known is made of loads alone (`Field.take`): loads that are stored, taken in again in their order, come to
the same.
"""

from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from statistics import median

from velodrome.judge.search.holding import ALONE_S
from velodrome.judge.tuning.forecasting import crowd, enough, forecast, look_of, with_fewer_slots
from velodrome.judge.tuning.knowing import (
    LEAST_BOOTS,
    RACING,
    REPORTED,
    Confirmed,
    Costs,
    Known,
    Rates,
    Spread,
)
from velodrome.judge.words import list_names
from velodrome.model import quantity
from velodrome.model.measurement import Purpose
from velodrome.model.quantity import Interval
from velodrome.model.trial import Contestant
from velodrome.model.tuning import (
    Ask,
    Candidate,
    Entry,
    Fate,
    Forecast,
    Goal,
    Looked,
    Observation,
    Tuned,
    TuneEnding,
    Wanted,
)

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
    """By the loads of the race."""
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
    """Why no more can be learnt of it: the generator was the limit, again and again."""
    plain: "Arm | None" = None
    """The arm that this differs from in what decides nothing while a server keeps up, such as a backlog."""
    texts: Mapping[str, str] = field(default_factory=dict)
    """Its knobs that are no counts: the loop."""
    confirmed: Confirmed | Costs | None = None
    """By the loads that were made after it was chosen; None: there are none."""
    spread: Spread | None = None
    """By what starts differ in cost, of all candidates together; None: the goal is capacity."""

    @property
    def upper(self) -> float:
        """No more than this can be expected of it."""
        if isinstance(self.known, Costs):
            return self.known.interval().high
        measured = self.known.holds is not None
        return min(self.known.interval().high, self.forecast.rps * (SLACK if not measured else SLACK**2))

    @property
    def lower(self) -> float:
        """At least this."""
        return self.known.interval().low

    @property
    def mid(self) -> float:
        """The estimate."""
        return self.known.interval().mid

    @property
    def running(self) -> bool:
        """Whether it has been measured and is not out."""
        return self.out is None and self.trials > 0

    def put_out(self, fate: Fate, why: str) -> None:
        """Never ask it again."""
        self.out, self.why = fate, why

    def take(self, observed: Observation, goal: Goal) -> None:
        """Take a load in."""
        self.trials += 1
        if observed.failed:
            self.put_out(Fate.FAILED, observed.failed)
            return
        if observed.spoilt or (observed.ask.rate and observed.held is None):
            self.spoilt += 1
            if self.spoilt >= SPOILT:
                self.capped = observed.spoilt or observed.why
                if not self.known.holds:
                    self.put_out(Fate.FAILED, self.capped)
            return
        self._weigh(observed)
        known = self._confirming() if observed.ask.purpose is Purpose.CONFIRM else self.known
        known.learn(observed)
        self.broke = observed.why or self.broke
        if isinstance(known, Costs):
            cost = observed.cpu_us if goal is Goal.CPU else observed.memory_bytes
            if observed.held and cost:
                known.pay(cost, observed.boot, observed.host)
            if known.holds is False and known.broken > 1:
                self.put_out(Fate.CANNOT, self.broke)

    def _confirming(self) -> Confirmed | Costs:
        if self.confirmed is None:
            if isinstance(self.known, Costs) and self.spread is not None:
                self.confirmed = Costs(self.known.cost().mid, self.spread, alone=True)
            else:
                self.confirmed = Confirmed(self.mid)
        return self.confirmed

    @property
    def ever_held(self) -> bool:
        """Whether any rate has held, or it carries the rate that is wanted."""
        return bool(self.known.holds or (self.confirmed is not None and self.confirmed.holds))

    def starts_on(self, host: str) -> int:
        """Starts of its server on a host that confirm it."""
        return len(self.confirmed.by_host().get(host, ())) if self.confirmed is not None else 0

    @property
    def is_vague(self) -> bool:
        """Whether the interval that its starts come to is wide, so that little could be claimed."""
        reported = self.reported
        return self.starts >= LEAST_BOOTS and reported.low < CLOSE * reported.mid

    @property
    def starts(self) -> int:
        """Starts of its server that confirm it."""
        return sum(map(len, self.confirmed.by_host().values())) if self.confirmed is not None else 0

    @property
    def reported(self) -> Interval:
        """What is reported of it, more being better: of the loads that confirm it, where they are enough."""
        if self.confirmed is not None and self.starts >= LEAST_BOOTS:
            return self.confirmed.interval(REPORTED)
        return self.known.interval(REPORTED)

    def _weigh(self, observed: Observation) -> None:
        """Look at its memory: a server that leaks has not always had so much."""
        self.grew_bytes = observed.grew_bytes or self.grew_bytes
        if observed.memory_bytes is None:
            return
        least_or_most = min if self.grew_bytes else max
        self.memory_bytes = least_or_most(self.memory_bytes or observed.memory_bytes, observed.memory_bytes)
        if self.memory_limit is not None and self.memory_bytes > self.memory_limit:
            had, limit = quantity.memory(self.memory_bytes), quantity.memory(self.memory_limit)
            self.put_out(Fate.TOO_BIG, f"it had {had}, and the limit is {limit}")

    def is_like(self, other: "Arm") -> bool:
        """Whether arithmetic makes no difference between it and an arm that was measured and has slots to spare."""
        mine, theirs = self.candidate, other.candidate
        ample = theirs.slots is None or theirs.slots >= AMPLE * other.forecast.needs
        return (
            mine.contestant.stack == theirs.contestant.stack
            and self.texts == other.texts
            and ample
            and self.forecast.rps <= ALIKE * other.forecast.rps
        )

    def entry(self, fate: Fate, why: str) -> Entry:
        """Return what is reported of it at the end."""
        value: Interval | None = None
        if self.trials and self.ever_held:
            found = self.reported
            cost = isinstance(self.known, Costs)
            value = Interval(1 / found.high, 1 / found.mid, 1 / found.low) if cost else found
        boots = self.starts if self.starts >= LEAST_BOOTS else self.known.boots
        return Entry(
            self.candidate,
            fate,
            why,
            self.trials,
            value,
            self.memory_bytes,
            self.grew_bytes,
            self.forecast,
            boots,
        )


def new_arm(candidate: Candidate, forecast: Forecast, look: Looked, wanted: Wanted, spread: Spread) -> Arm:
    """Return a candidate that has not been measured yet."""
    known: Known
    match wanted.goal:
        case Goal.CAPACITY:
            known = Rates(forecast.rps)
        case Goal.CPU:
            known = Costs(look.costs_us(candidate.slots_each), spread)
        case _:
            known = Costs(forecast.memory_bytes or look.memory_bytes or 1.0, spread)
    texts = {knob: value for knob, value in candidate.contestant.knobs.items() if isinstance(value, str)}
    return Arm(candidate, forecast, known, wanted.memory_bytes, texts=texts, spread=spread)


CHEAPER, NEARLY = 0.8, 0.98
"""A candidate with so much of the leader's memory that does so much of what the leader does is preferred; and the first
of two finalists that does so much of what the second does."""
VARIES = 1.5
"""Between the ends of the interval of the best: wider, and nothing is settled."""
INDIFFERENT = 0.03
"""Better by less than this is not better: repeats on a small machine differ by it."""
WITHIN = 0.1
"""Where time ran out, nobody else may be better by more than this, or nothing is settled. Of 480 simulated searches of
five and ten minutes (`benchmarks/tune_settling.py`) 380 are settled so, and 214 where nobody may be better by
`INDIFFERENT`; four of the 380 chose a setting that is more than 10 % behind the best."""
FIRST = 0.8
"""Of a forecast, the rate that is tried first while nobody leads."""
UNSEEN = 1.6
"""Times what a look lets expect of a stack, an open loop may show: none is out before it was tried once."""
UNLIKE = 1.5
"""Times what a look lets expect a request may cost less, once others show what looks are off by."""
LOW, LOW_AT_MOST = 0.05, 0.2
"""Of a forecast, the rate that must hold if any does; and up to where it rises for percentiles that need requests."""
LOOK_S = 1.0
UNSEEN_WHY = "its stack was not looked at: the time (--budget) or the loads were spent"
USUAL = {Goal.CPU: 0.06, Goal.MEMORY: 0.03}
"""What starts of one server differ by in cost on a machine that nothing is known of yet (docs/method.md)."""
MORE_BOOTS = 5
"""Starts of the best that confirm it, if the budget allows; `LEAST_BOOTS` of the next."""
CLOSE, MOST_BOOTS = 0.88, 8
"""Until the lower end of its interval, which is claimed, is so much of the estimate; but no more starts than these.
Where starts differ by 10 %, one claim of seven is below 0.85 after five starts, and none after these; the interval
covers as often."""


@dataclass
class _Sight:
    """The look at one stack on one host, as far as it has come."""

    alone: Observation | None = None
    look: Looked | None = None
    done: bool = False


class Field:
    """All candidates of a search, and what its loads say of them."""

    def __init__(self, grid: Sequence[Candidate], wanted: Wanted) -> None:
        self.grid, self.wanted = list(grid), wanted
        self.arms: list[Arm] = []
        self.lost: list[Entry] = []
        """Candidates of stacks that could not be looked at."""
        self.looks: dict[str, Looked] = {}
        self.trials = self.loads = self.raced = 0
        """Loads; of these, at a rate; and those before anybody was confirmed."""
        self.busy: Counter[str] = Counter()
        """How many hosts look at a stack just now, by its name, or measure a candidate, by its label."""
        self._sights: dict[tuple[str, str], _Sight] = {}
        """By host and stack."""
        self._confirming: Counter[str] = Counter()
        """By candidate, starts that confirm it and have not ended."""
        self._spread = Spread(USUAL.get(wanted.goal, 0.0))

    # --- taking loads in

    def take(self, candidate: Candidate, observed: Observation) -> None:
        """Take a load in. Raises KeyError for a rate of a stack that was not looked at."""
        self.trials += 1
        self.raced += observed.ask.purpose is not Purpose.CONFIRM
        if observed.ask.connections:
            self._see(candidate, observed)
            return
        self.loads += 1
        arm = self.arm_of(candidate)
        arm.take(observed, self.wanted.goal)
        if observed.everywhere:
            stack = candidate.contestant.stack
            for other in (sibling for sibling in self.arms if sibling.candidate.contestant.stack == stack):
                other.put_out(Fate.CANNOT, observed.why)
            return
        low = observed.held is False and observed.ask.rate < FIRST * arm.forecast.rps
        rates = isinstance(arm.known, Rates) and arm.known.holds is False
        if self.leader is None and low and rates and arm.out is None:
            arm.put_out(Fate.CANNOT, f"even at {quantity.rate(observed.ask.rate)} {arm.broke}")

    @property
    def stacks(self) -> list[str]:
        """All stacks, in the order of the grid."""
        return [*dict.fromkeys(candidate.contestant.stack for candidate in self.grid)]

    @property
    def unseen(self) -> list[str]:
        """Stacks that are not looked at yet, in the order of the grid."""
        seen = {*self.looks, *(entry.candidate.contestant.stack for entry in self.lost)}
        return [stack for stack in self.stacks if stack not in seen]

    def next_look(self, stack: str, host: str = "") -> tuple[Candidate, Ask] | None:
        """Return what a look of a host at a stack takes next: the smallest alone, then by many, then by many with few
        slots.

        None: it is done.
        """
        sight, smallest = self._sights.get((host, stack), _Sight()), self._smallest(stack)
        if sight.done:
            return None
        if sight.alone is None:
            return smallest, Ask(ALONE_S, connections=1, purpose=Purpose.ALONE)
        if sight.look is None:
            return smallest, Ask(LOOK_S, connections=crowd(smallest, sight.alone), purpose=Purpose.CLOSED)
        few = self._few(stack, sight.look)
        assert few is not None, "else it were done"
        return few, Ask(LOOK_S, connections=crowd(few, sight.alone), purpose=Purpose.CLOSED)

    def _see(self, candidate: Candidate, observed: Observation) -> None:
        stack = candidate.contestant.stack
        sight = self._sights.setdefault((observed.host, stack), _Sight())
        if sight.alone is None:
            sight.alone = observed
            if observed.everywhere:
                self._lose(sight, stack, Fate.CANNOT, observed.why)
            elif observed.failed or observed.spoilt:
                self._compare(stack, sight, observed)
        elif sight.look is None:
            self._compare(stack, sight, observed)
        else:
            self._enter_all(sight, stack, with_fewer_slots(sight.look, candidate, observed))

    def _compare(self, stack: str, sight: _Sight, loaded: Observation) -> None:
        assert sight.alone is not None
        sight.look = look_of(self._smallest(stack), sight.alone, loaded, self.wanted.cpus)
        if sight.look is None or loaded.failed:
            why = loaded.failed or loaded.spoilt or "it answered nothing right"
            self._lose(sight, stack, Fate.FAILED, why)
        elif self._few(stack, sight.look) is None:
            self._enter_all(sight, stack, sight.look)

    def _smallest(self, stack: str) -> Candidate:
        return min(self._of(stack), key=lambda candidate: (candidate.processes, -(candidate.slots or 0)))

    def _few(self, stack: str, look: Looked) -> Candidate | None:
        return enough(self._of(stack), look)

    def _of(self, stack: str) -> list[Candidate]:
        return [candidate for candidate in self.grid if candidate.contestant.stack == stack]

    def _enter_all(self, sight: _Sight, stack: str, look: Looked) -> None:
        """Enter the candidates of a stack, by the first host that has looked at it."""
        sight.done = True
        if stack in self.unseen:
            self.looks[stack] = look
            for candidate in self._of(stack):
                self.enter(candidate)

    def _lose(self, sight: _Sight, stack: str, fate: Fate, why: str) -> None:
        """Put out all candidates of a stack that could not be looked at."""
        sight.done = True
        if stack in self.unseen:
            self.lost += self._entries([stack], fate, why)

    def knows(self, candidate: Candidate) -> bool:
        """Whether the stack of a candidate was looked at."""
        return candidate.contestant.stack in self.looks

    def _nearest(self, candidate: Candidate) -> Arm | None:
        """Return the arm that a candidate is, or is most like; None: it differs from all in what decides something."""
        knobs, stack = candidate.contestant.knobs.items(), candidate.contestant.stack
        near = [arm for arm in self.arms if arm.candidate.contestant.stack == stack]
        near = [arm for arm in near if arm.candidate.contestant.knobs.items() <= knobs]
        return max(near, key=lambda arm: len(arm.candidate.contestant.knobs), default=None)

    def enter(self, candidate: Candidate, plain: Arm | None = None) -> Arm:
        """Add a candidate of a stack that was looked at; `plain` is who it differs from in what decides nothing."""
        look = self.looks[candidate.contestant.stack]
        found = forecast(candidate, look, self.wanted.cpus)
        limit = self.wanted.memory_bytes
        entered = new_arm(candidate, found, look, self.wanted, self._spread)
        entered.plain = plain
        self.arms.append(entered)
        if limit is not None and found.memory_bytes is not None and found.memory_bytes > limit:
            about = quantity.memory(found.memory_bytes)
            entered.put_out(Fate.TOO_BIG, f"at least {about} for {candidate.processes} processes")
        elif found.rps * SLACK < self.wanted.rate:
            entered.put_out(Fate.BY_ARITHMETIC, f"it cannot carry the rate: {found.arithmetic}")
        return entered

    def arm_of(self, candidate: Candidate) -> Arm:
        """Return what is known of a candidate; a candidate outside the grid is a neighbour of the arm it is most like.

        Raises KeyError for a candidate whose stack was not looked at.
        """
        by_contestant = {arm.candidate.contestant.label: arm for arm in self.arms}
        label = candidate.contestant.label
        if label in by_contestant:
            return by_contestant[label]
        if candidate not in self.grid:
            self.grid.append(candidate)
        return self.enter(candidate, self._nearest(candidate))

    def _entries(self, stacks: Sequence[str], fate: Fate, why: str) -> list[Entry]:
        lost = [candidate for candidate in self.grid if candidate.contestant.stack in stacks]
        return [Entry(candidate, fate, why, 0, None, None, None, None) for candidate in lost]

    def candidate_of(self, contestant: Contestant) -> Candidate:
        """Return a candidate of the grid, or a neighbour of such. Raises KeyError for none of these."""
        for candidate in self.grid:
            if candidate.contestant == contestant:
                return candidate
        knobs = contestant.knobs.items()
        near = [candidate for candidate in self.grid if candidate.contestant.stack == contestant.stack]
        near = [candidate for candidate in near if candidate.contestant.knobs.items() <= knobs]
        if not near:
            raise KeyError(contestant.label)
        plain = max(near, key=lambda candidate: len(candidate.contestant.knobs))
        return replace(plain, contestant=contestant)

    # --- who is ahead

    @property
    def leader(self) -> Arm | None:
        """Who does most at least, by the lower end of the interval: nobody leads by a few lucky loads."""
        running = [arm for arm in self.arms if arm.running and arm.known.holds]
        best = max(running, key=lambda arm: arm.known.interval(REPORTED).low, default=None)
        plain = best.plain if best is not None else None
        if best is None or plain is None or plain.out is not None:
            return best
        # What it differs in decides nothing, unless it clearly does.
        return best if best.lower > plain.known.interval().high else plain

    @property
    def preferred(self) -> Arm | None:
        """The leader, or who does nearly as much with clearly less memory."""
        leader = self.leader
        if leader is None or leader.memory_bytes is None or self.wanted.goal is Goal.MEMORY:
            return leader
        limit = CHEAPER * leader.memory_bytes
        nearly = [
            arm
            for arm in self.arms
            if arm.running
            and arm.plain is None
            and arm.known.holds
            and arm.mid >= NEARLY * leader.mid
            and arm.lower >= NEARLY * leader.lower
            and arm.memory_bytes is not None
            and arm.memory_bytes <= limit
        ]
        return min(nearly, key=lambda arm: arm.memory_bytes or 0, default=leader)

    @property
    def finalists(self) -> list[Arm]:
        """Who is confirmed: the preferred candidate and the next."""
        first = self.preferred
        return [first, *behind(self.arms, first)[:1]] if first is not None else []

    @property
    def best(self) -> Arm | None:
        """Who is recommended: the finalist that does most, by the loads that confirm it.

        By the estimates: lower ends of a few starts differ more by chance than finalists do, and are higher where there
        are more starts.
        """
        finalists = self.finalists
        if len(finalists) < 2 or any(finalist.starts < LEAST_BOOTS for finalist in finalists):
            return finalists[0] if finalists else None
        first, second = finalists
        return second if NEARLY * second.reported.mid > first.reported.mid else first

    def next_to_confirm(self, host: str = "") -> Arm | None:
        """Return which finalist is measured next on a host; None: all is done, or other hosts are at what is left.

        In turn on each host, each first in every second round; hosts that do so at the same time begin with different
        ones.
        """
        finalists = self.finalists
        if not finalists:
            return None
        begun = {arm.candidate.label: arm.starts + self._confirming[arm.candidate.label] for arm in finalists}
        if len(finalists) < 2 or min(begun.values()) >= LEAST_BOOTS:
            best = self.best or finalists[0]
            few = begun[best.candidate.label] < (MOST_BOOTS if best.is_vague else MORE_BOOTS)
            return best if few else None
        first = finalists[0]

        def turn(arm: Arm) -> tuple[int, int, bool]:
            count = begun[arm.candidate.label]
            return arm.starts_on(host), count, (arm is first) == (count % 2 == 1)

        return min((arm for arm in finalists if begun[arm.candidate.label] < LEAST_BOOTS), key=turn)

    @contextmanager
    def confirming(self, arm: Arm) -> Iterator[None]:
        """Count a start that confirms as begun, until it ends."""
        self._confirming[arm.candidate.label] += 1
        try:
            yield
        finally:
            self._confirming[arm.candidate.label] -= 1

    @contextmanager
    def keeping(self, what: str) -> Iterator[None]:
        """Have other hosts leave a stack or a candidate alone, if there are others, until it is measured."""
        self.busy[what] += 1
        try:
            yield
        finally:
            self.busy[what] -= 1

    def contends(self, arm: Arm) -> bool:
        """Whether it may be clearly better than the leader."""
        leader = self.leader
        if arm.out is not None or arm is leader or arm.capped:
            return False
        if leader is None:
            return True
        # What confirms the leader may say more for it than the loads that it was chosen by.
        does = max(leader.mid, leader.reported.mid) if leader.starts >= LEAST_BOOTS else leader.mid
        return self.upper(arm) > does * (1 + INDIFFERENT)

    def upper(self, arm: Arm) -> float:
        """No more than this can be expected of a candidate, by what is known of its stack."""
        if arm.trials:
            return arm.upper
        stack = arm.candidate.contestant.stack
        tried = [other for other in self.arms if other.trials and other.candidate.contestant.stack == stack]
        if not isinstance(arm.known, Costs):
            return arm.upper if tried else arm.upper * UNSEEN
        alike = [other.upper for other in tried if arm.is_like(other)]
        if alike:
            return min(arm.upper, max(alike) * ALIKE)
        # A look is at a closed loop, in which a request costs less than at a rate: by how much, others show.
        known = [other.known for other in tried] or [other.known for other in self.arms]
        more = [one.cost().mid / one.forecast for one in known if isinstance(one, Costs) and one.boots]
        return UNLIKE / (arm.known.forecast * median(more)) if more else arm.upper

    def rivals(self) -> Iterator[Arm]:
        """Yield who may be measured: who was, and whoever is like an arm that is as good as the leader."""
        leader = self.leader
        good = [arm for arm in self.arms if arm.running and (leader is None or arm.upper >= leader.lower)]
        for arm in self.arms:
            if arm.trials or any(arm.is_like(other) for other in good):
                yield arm

    # --- the end

    def result(self, out_of_time: bool = False) -> Tuned:
        """Return what came of the race; `out_of_time`: no more could be measured."""
        unseen = self.unseen
        late = bool(unseen)
        others = self._entries(unseen, Fate.UNTRIED, UNSEEN_WHY)
        ended = self._what_was_spent(out_of_time or late)
        untried = late or any(arm.out is None for arm in self.arms)
        best = self.best
        better, within = self._may_be_better(best) if best is not None else {}, None
        unknown = late or any(arm.capped and arm.out is None for arm in self.arms)
        if best is not None and best.starts >= LEAST_BOOTS and not unknown:
            within = max(better.values(), default=0.0)
        second = next(
            (finalist for finalist in self.finalists if finalist is not best and finalist.ever_held), None
        )
        entries = [*(self._entry(arm, best, second) for arm in self.arms), *self.lost, *others]
        rank = list(Fate)
        entries.sort(key=lambda entry: (rank.index(entry.fate), -self._worth(entry)))
        if best is None:
            ending, why = self._nobody()
            if untried and (out_of_time or late) and ending is TuneEnding.NEVER:
                ending, why = TuneEnding.CANNOT, f"after {ended} no rate had held: {why}"
        else:
            why, rivals = _unsure(best), [name for name, share in better.items() if share > WITHIN]
            if not any(self.contends(rival) for rival in self.rivals() if rival is not best):
                rivals = []  # the race came to its end
            if not why and (late or rivals):
                why = f"after {ended} others may be as good{f': {list_names(rivals)}' if rivals else ''}"
            ending = TuneEnding.SPENT if why else TuneEnding.SETTLED
        return Tuned(
            self.wanted.goal,
            ending,
            why,
            tuple(entries),
            dict(self.looks),
            self.trials,
            len(self.grid),
            within=within,
        )

    def _may_be_better(self, best: Arm) -> dict[str, float]:
        """Return by how much, as a part, each other candidate may be better than the best, by its name.

        A candidate that was not measured is as good as those it is like by arithmetic, and not among them.
        """
        tried = [arm for arm in self.arms if arm.trials]
        others = [arm for arm in self.arms if arm is not best and arm.out is None and not arm.capped]
        others = [arm for arm in others if arm.trials or not any(map(arm.is_like, tried))]
        found = {}
        for arm in others:
            confirmed = arm.confirmed if arm.starts >= LEAST_BOOTS else None
            upper = confirmed.interval(RACING).high if confirmed is not None else self.upper(arm)
            times = upper / best.reported.mid
            found[arm.candidate.label] = max(
                1 - 1 / times if isinstance(best.known, Costs) else times - 1, 0.0
            )
        return found

    def _what_was_spent(self, out_of_time: bool) -> str:
        """Return what it was that was spent."""
        if out_of_time or self.raced < self.wanted.most:
            return f"{self.trials} loads in the time there was (more, --budget, may settle it)"
        return f"{self.trials} loads, all that may be made (fewer stacks, --stack, need fewer),"

    def _worth(self, entry: Entry) -> float:
        if entry.value is None:
            return entry.forecast.rps / 1e12 if entry.forecast else 0.0
        return entry.value.low if self.wanted.goal is Goal.CAPACITY else 1 / entry.value.high

    def _entry(self, arm: Arm, best: Arm | None, second: Arm | None) -> Entry:
        if arm is best or arm is second:
            return arm.entry(Fate.BEST if arm is best else Fate.RUNNER_UP, "")
        if arm.out is not None:
            return arm.entry(arm.out, arm.why)
        if arm.trials:
            lower = best is not None and arm.known.interval().high < best.lower
            return arm.entry(Fate.BEHIND if lower else Fate.EVEN, arm.broke)
        if best is not None and self.upper(arm) <= best.mid:
            return arm.entry(Fate.BY_ARITHMETIC, self._bound(arm))
        alike = next((other for other in self.arms if other.trials and arm.is_like(other)), None)
        why = f"by arithmetic no better than {alike.candidate.label}" if alike else arm.forecast.arithmetic
        return arm.entry(Fate.ALIKE if alike else Fate.UNTRIED, why)

    def _bound(self, arm: Arm) -> str:
        """Return what lets expect no more of a candidate that was not measured."""
        least = 1 / self.upper(arm)
        match self.wanted.goal:
            case Goal.CPU:
                return f"a request takes {quantity.number(least)} µs at least, by the look at its stack"
            case Goal.MEMORY:
                return f"it has {quantity.memory(least)} at least, by the look at its stack"
            case _:
                return arm.forecast.arithmetic

    def _nobody(self) -> tuple[TuneEnding, str]:
        """Return why there is no best."""
        tried = [arm for arm in self.arms if arm.trials and arm.broke]
        if tried:
            closest = max(tried, key=lambda arm: arm.forecast.rps)
            return TuneEnding.NEVER, f"{closest.candidate.label}: {closest.why or closest.broke}"
        reasons = [*(arm.why for arm in self.arms if arm.why), *(entry.why for entry in self.lost)]
        fates = {*(arm.out for arm in self.arms), *(entry.fate for entry in self.lost)}
        impossible = not fates.isdisjoint({Fate.BY_ARITHMETIC, Fate.TOO_BIG, Fate.CANNOT})
        ending = TuneEnding.NEVER if impossible else TuneEnding.CANNOT
        return ending, reasons[0] if reasons else "there was nothing to try"


def _unsure(best: Arm) -> str:
    """Return why the best candidate's own figure is not to be relied on; empty: it is."""
    if best.capped:
        return best.capped
    if best.starts < LEAST_BOOTS:
        had = f"{best.starts} start{'' if best.starts == 1 else 's'}"
        return (
            f"{had} of the best candidate could be measured after it was chosen, and {LEAST_BOOTS} are needed"
        )
    if best.reported.high > VARIES * best.reported.low:
        return (
            "the rate of the best candidate differs too much from start to start: this machine is too noisy"
        )
    return ""


def behind(arms: Sequence[Arm], best: Arm | None) -> list[Arm]:
    """Return those that are next, best first: of other stacks before those of its own.

    Others were tried at what the leader does, and may have broke there and held nothing yet.
    """
    others = [arm for arm in arms if arm.running and arm is not best]
    able = [arm for arm in others if arm.known.holds or isinstance(arm.known, Rates)]
    stack = best.candidate.contestant.stack if best else ""
    return sorted(able, key=lambda arm: (arm.candidate.contestant.stack == stack, -arm.mid))


SETTLED = 1.08
"""The ends of the leader's interval are no further apart at the end of a race, if the budget allows."""
KNOWN_BOOTS = 3
"""Of a leader with so many starts, further ones tell less than those of a rival that is known less well: in 240
simulated searches that takes 29 % off the time of the race, and what is chosen is as good. With two starts it would be
13 % less once more, and the choice 0.2 % worse."""
LEAST_LOOKS = 2
"""Stacks that are looked at however late it is: of one alone nobody says that it is the best."""
LEAST_LOADS = 3
"""While no rate has held, so many loads at a rate are made however late it is: without them there is no answer."""
MOST_VISITS = 3 * MORE_BOOTS
"""Starts that are made to confirm, also where some of them come to nothing."""
CONFIRMING = 4
"""Loads of one start that find the highest rate it holds."""
CONFIRMING_COST = 2
"""Loads of one start that find what a request costs."""
CONFIRM_S = 3.0
"""Of each of them, where there is time."""


Measure = Callable[[Candidate, Ask], Observation]
Loads = Generator[tuple[Candidate, Ask], Observation, None]
"""Yields the next load, and is sent what it gave: whoever measures may run several races at once."""


@dataclass(frozen=True)
class Share:
    """What one host sees and does of a race."""

    field: Callable[[], Field]
    """What is known by now."""
    take: Callable[[Candidate, Observation], None]
    """Takes a load in."""
    host: str = ""
    takes_part: Callable[[], bool] = lambda: True


def whole(field: Field) -> Share:
    """Return all of a race, on one host."""
    return Share(lambda: field, field.take)


@dataclass
class _Race:
    share: Share
    goes_on: Callable[[], bool]
    refine: Callable[[Candidate], Sequence[Candidate]]
    looks_on: Callable[[], bool]

    @property
    def field(self) -> Field:
        return self.share.field()

    @property
    def wanted(self) -> Wanted:
        return self.field.wanted

    def run(self) -> Loads:
        if self.share.host:
            yield from self._look_at_common()
        while (len(self.field.looks) < LEAST_LOOKS or self.looks_on()) and (unseen := self._unseen()):
            yield from self._look(unseen[0])
        yield from self._first_lap()
        yield from self._laps()
        while not self._spent() and (unseen := self._unseen()):
            # Those raced already left more time than was kept for them.
            yield from self._look(unseen[0])
            yield from self._first_lap()
            yield from self._laps()
        yield from self._refine()
        yield from self._laps()

    # --- looking and asking

    def _unseen(self) -> list[str]:
        """Return the stacks that nobody has looked at or looks at."""
        if not self.share.takes_part():
            return []
        return [stack for stack in self.field.unseen if not self.field.busy[stack]]

    def _look_at_common(self) -> Loads:
        """Look at the first stack that can be, as every host does: it shows by how much they differ."""
        lost = {entry.candidate.contestant.stack for entry in self.field.lost}
        for stack in self.field.stacks:
            if stack not in lost:
                yield from self._look(stack)
                return

    def _look(self, stack: str) -> Loads:
        with self.field.keeping(stack):
            while (
                self.share.takes_part() and (step := self.field.next_look(stack, self.share.host)) is not None
            ):
                yield from self._measure(*step)

    def _measure(
        self, candidate: Candidate, ask: Ask
    ) -> Generator[tuple[Candidate, Ask], Observation, Observation]:
        observed = yield candidate, ask
        self.share.take(candidate, observed)
        return observed

    def _spent(self) -> bool:
        if not self.share.takes_part():
            return True
        late = not self.goes_on() and (self.field.leader is not None or self.field.loads >= LEAST_LOADS)
        return late or self.field.raced >= self.wanted.most

    def _promise(self, arm: Arm) -> tuple[float, int, int]:
        """Sort the most promising first; of those alike the smallest, which costs least."""
        slots = arm.candidate.slots or 0
        if self.wanted.goal is Goal.CAPACITY:
            return -float(f"{arm.forecast.rps:.2g}"), arm.candidate.processes, slots
        return -float(f"{arm.mid:.2g}"), arm.candidate.processes, slots

    def _ask(self, arm: Arm, boot: int) -> Ask:
        """Return the next load of a candidate; `boot` is its server that runs, 0: none, and the load starts a
        server."""
        steps = self.wanted.seconds
        seconds, fresh = steps[min(arm.trials // 2, len(steps) - 1)], not boot
        if not isinstance(arm.known, Rates):
            return Ask(seconds, rate=self.wanted.rate, fresh=fresh)
        leader = self.field.leader
        if leader is None:
            return Ask(seconds, rate=self._first_rate(arm), fresh=fresh)
        above = leader.mid * (1 + INDIFFERENT)
        rate = arm.known.next(boot) if arm is leader or arm.lower > above else above
        return Ask(seconds, rate=rate, fresh=fresh)

    def _first_rate(self, arm: Arm) -> float:
        """Return the next rate of a candidate while none has held of anybody."""
        if arm.known.holds is not False:
            return arm.forecast.rps * FIRST
        return max(arm.forecast.rps * LOW, min(arm.forecast.rps * LOW_AT_MOST, self.wanted.slow_rate))

    def _visit(self, arm: Arm, loads: int) -> Loads:
        """Measure a candidate so many times, unless it is out before, on one new start of its server."""
        boot = 0
        with self.field.keeping(arm.candidate.label):
            for _ in range(loads):
                if arm.out is not None or self._spent():
                    return
                observed = yield from self._measure(arm.candidate, self._ask(arm, boot))
                boot = observed.boot
                if arm is not self.field.leader and not self.field.contends(arm):
                    return

    # --- laps

    def _first_lap(self) -> Loads:
        while not self._spent() and (arm := self._next_untried()) is not None:
            yield from self._visit(arm, 3 if self.field.leader is None else 2)

    def _next_untried(self) -> Arm | None:
        tried = [arm for arm in self.field.arms if arm.trials or self._hosts_at(arm)]
        left = [arm for arm in self.field.arms if not arm.trials and not self._hosts_at(arm)]
        for arm in sorted(left, key=self._promise):
            if arm.out is None and self.field.contends(arm) and not any(map(arm.is_like, tried)):
                return arm
        return None

    def _hosts_at(self, arm: Arm) -> int:
        return self.field.busy[arm.candidate.label]

    def _laps(self) -> Loads:
        """Measure the strongest that is left, and the leader, until nobody is."""
        while not self._spent():
            left = [arm for arm in self.field.rivals() if self.field.contends(arm)]
            if not left:
                return
            strongest = max(left, key=lambda arm: (-self._hosts_at(arm), self.field.upper(arm)))
            # With another host at a rival, the leader's turn has come here: what decides is their difference.
            if not (any(map(self._hosts_at, left)) and self._is_vague(self.field.leader, strongest)):
                yield from self._visit(strongest, 2)
            leader = self.field.leader
            if leader is not None and self._is_vague(leader, strongest):
                yield from self._visit(leader, 2)

    def _is_vague(self, leader: Arm | None, rival: Arm) -> bool:
        """Whether the leader is to be measured once more, and no other host does it."""
        return not (leader is None or leader.capped or self._hosts_at(leader) or _is_known(leader, rival))

    def _refine(self) -> Loads:
        """Try the leader's neighbours in what decides nothing while a server keeps up, and go on with those."""
        leader = self.field.leader
        if leader is None or leader.plain is not None:
            return
        for arm in (self.field.arm_of(candidate) for candidate in self.refine(leader.candidate)):
            if self._spent():
                return
            if not arm.trials and not self._hosts_at(arm):
                yield from self._visit(arm, 2)


def _is_known(leader: Arm, rival: Arm) -> bool:
    """Whether the leader is known well enough: in itself, or by several starts better than a rival that is compared."""
    width, wider = _width(leader), _width(rival)
    return width <= SETTLED or (leader.known.boots >= KNOWN_BOOTS and width < wider)


def _width(arm: Arm) -> float:
    found = arm.known.interval()
    return found.high / found.low


def racing(
    share: Share,
    goes_on: Callable[[], bool] = lambda: True,
    refine: Callable[[Candidate], Sequence[Candidate]] = lambda _: (),
    looks_on: Callable[[], bool] = lambda: True,
) -> Loads:
    """Yield load after load until the best of a field is found; it may have taken loads in already.

    `goes_on` says whether there is time, `refine` who else to try once somebody leads, `looks_on` whether there is time
    to look at one stack more, in the order of the grid: the first two that can be are in any case. Several hosts may do
    so at once: each ends where others are at what is left, and may be asked again when they are done.
    """
    return _Race(share, goes_on, refine, looks_on).run()


def race(
    measure: Measure,
    field: Field,
    goes_on: Callable[[], bool] = lambda: True,
    refine: Callable[[Candidate], Sequence[Candidate]] = lambda _: (),
    *,
    looks_on: Callable[[], bool] = lambda: True,
) -> None:
    """Measure by `measure`, on one host, until the best of a field is found (`racing`).

    Whatever `measure` raises ends the search.
    """
    drive(racing(whole(field), goes_on, refine, looks_on), measure)


def drive(loads: Loads, measure: Measure) -> None:
    """Make load after load by `measure`."""
    with suppress(StopIteration):
        candidate, ask = next(loads)
        while True:
            candidate, ask = loads.send(measure(candidate, ask))


def confirming(share: Share, confirms: Callable[[], float] = lambda: CONFIRM_S) -> Loads:
    """Yield load after load of the finalists in turn, on starts that are only for that.

    `confirms` says how long, in seconds, each load of one start more may be; 0: there is no time for it. Several hosts
    may do so at once: each ends where others are at what is left, and may be asked again when they are done.
    """
    for _ in range(MOST_VISITS):
        field, seconds = share.field(), confirms()
        arm = field.next_to_confirm(share.host)
        if arm is None or arm.capped or not seconds or not share.takes_part():
            return
        with field.confirming(arm):
            yield from _start(share, field, arm, seconds)


def _start(share: Share, field: Field, arm: Arm, seconds: float) -> Loads:
    """Yield the loads of one start of a finalist."""
    boot, costs = 0, isinstance(arm.known, Costs)
    for _ in range(CONFIRMING_COST if costs else CONFIRMING):
        rate, known = field.wanted.rate, arm.confirmed
        if not costs:
            rate = known.next(boot, share.host) if isinstance(known, Confirmed) else arm.mid
        observed = yield arm.candidate, Ask(seconds, rate=rate, fresh=not boot, purpose=Purpose.CONFIRM)
        share.take(arm.candidate, observed)
        boot = observed.boot
        # Without the loads of a host that was told apart, the start is to be judged anew.
        if arm.out is not None or arm.capped or share.field() is not field:
            return
