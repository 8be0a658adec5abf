"""One contestant in one question, as the figures of a claim see it: what may count, and why something may not."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from velodrome.judge.field import Runner
from velodrome.judge.figures.number import Missing, Number
from velodrome.judge.words import blocks
from velodrome.model.flag import FlagKind, Severity
from velodrome.model.load import Closed, Load, Open
from velodrome.model.measurement import Measurement
from velodrome.model.profile import Profile
from velodrome.model.study import Question

OURS = frozenset(
    {
        FlagKind.GENERATOR_SATURATED,
        FlagKind.GENERATOR_LAGGED,
        FlagKind.CPU_STEAL,
        FlagKind.OTHER_LOAD,
        FlagKind.DEBUG_BUILD,
        FlagKind.FOREIGN_LISTENER,
        FlagKind.UPSTREAM_LATE,
        FlagKind.COMPANION_SATURATED,
        FlagKind.CAPPED_BY_CONNECTIONS,
    }
)
"""Flags that tell of the lab. The others tell of the server: a claim that it gives out rests on just these."""


@dataclass(frozen=True)
class Cell:
    """A cell with all its results."""

    question: Question
    runner: Runner
    profiles: Sequence[Profile] = ()
    bound_ms: float | None = None
    """The p99 up to which a rate holds, where the check tells one."""

    def valid(self, load: Load) -> list[Measurement] | Missing:
        """Return what may count under a load, or why nothing may."""
        found = self.runner.valid_under(load)
        return found or self._why_none(load, self.runner.under(load))

    def seen(self, load: Load) -> list[Measurement] | Missing:
        """Return what was not spoilt by the lab itself, whatever became of the server."""
        every = self.runner.under(load)
        found = [one for one in every if not spoilt(one)]
        return found or self._why_none(load, every)

    def failures(self, load: Load) -> set[int]:
        """Return the blocks in which nothing could be measured under a load."""
        return {one.trial.block for one in self.runner.failed if one.trial.load.label == load.label}

    def _why_none(self, load: Load, every: Sequence[Measurement]) -> Missing:
        if every:
            flags = [flag for one in every for flag in one.flags if flag.severity is Severity.INVALID]
            where = blocks([one.trial.block for one in every])
            return Missing(
                f"{self.runner.called} under {load.label} was set aside ({where}): {flags[0].sentence}"
            )
        failed = [one for one in self.runner.failed if one.trial.load.label == load.label]
        if failed:
            return Missing(f"{self.runner.called} could not be measured: {failed[0].reason}")
        return Missing(f"nothing of {self.runner.called} was run under {load.label}")


@dataclass(frozen=True)
class Taking:
    """How a metric is taken of a cell under a load."""

    take: Callable[[Cell, Load], Number]
    prefers_open: bool = False
    """Which loop shows it where the check does not say: the first open one, or the first closed one."""

    def load(self, question: Question) -> Load:
        """Return the load that shows the metric."""
        kind = Open if self.prefers_open else Closed
        return next((load for load in question.loads if isinstance(load.pace, kind)), question.loads[0])


def spoilt(one: Measurement) -> bool:
    """Return whether the lab itself, not the server, is why a measurement may not count."""
    return bool(one.doubts & OURS)
