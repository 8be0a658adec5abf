"""The heats of a race in order: which are left, how long they take, and whether the budget allows another block."""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing

from velodrome.model.results import Result
from velodrome.model.trial import Heat
from velodrome.run.lab import Lab
from velodrome.run.racing.follower import Follower
from velodrome.run.racing.opening import host_beside
from velodrome.run.racing.trial import run_heat


class Course:
    """Which heats are left, how long they take, and whether the budget allows another block."""

    def __init__(
        self,
        heats: Sequence[Heat],
        budget_s: float | None,
        before: Sequence[Result],
        estimate_s: Callable[[Heat], float] | None,
    ) -> None:
        """`before` are results that are there already; `estimate_s` tells how long a heat should take."""
        self.budget_s, self.estimate_s = budget_s, estimate_s or _rough_s
        self.how = "complete"
        keys = {result.trial.key for result in before}
        left = [Heat(tuple(t for t in heat.trials if t.key not in keys)) for heat in heats]
        self.heats = [heat for heat in left if heat.trials]
        self._began = time.monotonic()
        self._estimated_s = self._took_s = 0.0

    def results(self, lab: Lab, follower: Follower) -> Iterator[Result]:
        """Yield the result of each trial that is left, in order, until the budget is spent."""
        block = self._block(self.heats[0]) if self.heats else 0
        for number, heat in enumerate(self.heats):
            left = self.heats[number:]
            if self._block(heat) != block:
                block = self._block(heat)
                if self._over_budget(one for one in left if self._block(one) == block):
                    self.how = "budget spent"
                    return
            began = time.monotonic()
            follower.heat_started(heat.trials[0].cell, self._seconds(left))
            with closing(run_heat(heat, lab)) as results, host_beside(heat.trials[0].limits, lab):
                yield from results
            self._estimated_s += self.estimate_s(heat)
            self._took_s += time.monotonic() - began

    @staticmethod
    def _block(heat: Heat) -> int:
        return heat.trials[0].block

    def _seconds(self, heats: Iterable[Heat]) -> float:
        """Return how long heats will take: as estimated, times how wrong the estimate was so far."""
        pace = self._took_s / self._estimated_s if self._estimated_s else 1.0
        return sum(self.estimate_s(heat) for heat in heats) * pace

    def _over_budget(self, block: Iterable[Heat]) -> bool:
        """Whether a block would end after the budget. Never asked of the first: no answer is worth less."""
        if self.budget_s is None:
            return False
        return time.monotonic() - self._began + self._seconds(block) > self.budget_s


def _rough_s(heat: Heat) -> float:
    return 1.5 + sum(trial.load.warmup_s + trial.load.duration_s for trial in heat.trials)
