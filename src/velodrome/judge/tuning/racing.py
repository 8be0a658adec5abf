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

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from velodrome.judge.search.failing import ALONE_S
from velodrome.judge.tuning.arms import SLACK, Arm, arm
from velodrome.judge.tuning.finishing import Finish, behind
from velodrome.judge.tuning.forecasting import crowd, enough, forecast, looked, seen_with_few
from velodrome.judge.tuning.knowing import Rates
from velodrome.model import quantity
from velodrome.model.tuning import Ask, Candidate, Entry, Fate, Goal, Looked, Told, Tuned, Wanted

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
