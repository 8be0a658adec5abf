"""What is told at the end of a race among settings: who is best, who is next, and what became of the others."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from velodrome.judge.tuning.arms import Arm
from velodrome.model.tuning import Entry, Fate, Goal, Looked, Tuned, TuneEnding

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
