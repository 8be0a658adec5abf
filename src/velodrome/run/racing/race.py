"""A race: experiments, then the heats of a study in order, then profiles; each result on the disk before the next.

finished = run(race, lab, follower)      # Ctrl-C: RaceInterruptedError; what was finished is kept
"""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from velodrome import _native
from velodrome.model.claim import Experiment
from velodrome.model.errors import RaceInterruptedError
from velodrome.model.measurement import Failed
from velodrome.model.results import Header, Result, Results
from velodrome.model.study import Study
from velodrome.model.trial import Heat, Trial
from velodrome.run.experiments.experiment import settings_of, stacks_of
from velodrome.run.experiments.running import run_experiment
from velodrome.run.lab import Lab
from velodrome.run.machine import facts
from velodrome.run.machine.measuring_lock import alone
from velodrome.run.racing.opening import Follower, host_beside, prepared, proven, refuse_impossible, swept
from velodrome.run.racing.session import run_heat
from velodrome.run.racing.store import Store
from velodrome.run.supervision.undisturbed import stoppable


@dataclass(frozen=True)
class Race:
    """What to run and where to write it: plain data."""

    study: Study
    heats: tuple[Heat, ...]
    out: Path
    resume: bool = False
    redo: bool = False
    """Of what is there already, run again what the machine spoilt: its host or other programs took its CPUs."""
    wait_s: float | None = 0.0
    """How long to wait for another velodrome to end; None: as long as it takes."""
    experiments: tuple[Experiment, ...] = ()
    """Run before the heats."""
    profiles: tuple[Trial, ...] = ()
    """Taken after the heats, where the lab takes profiles."""


@dataclass(frozen=True)
class Finished:
    """How a race ended."""

    path: Path
    done: int
    total: int
    how: str
    """`complete` or `budget spent`."""


def run(
    race: Race, lab: Lab, follower: Follower, estimate_s: Callable[[Heat], float] | None = None
) -> Finished:
    """Run all that the file does not hold yet. `estimate_s`: how long a heat should take, if known.

    Raises RaceInterruptedError on Ctrl-C, SIGTERM or SIGHUP, BusyError, LimitError, OutputError, and for a resume
    ResultsError or StudyChangedError. A stack's failure is a result and raises nothing.
    """
    trials = [trial for heat in race.heats for trial in heat.trials]
    refuse_impossible(trials, lab)
    total = len(trials)
    with alone(f"study {race.study.name}", race.wait_s, _tell_wait(follower)), stoppable():
        swept(follower)
        store, before = _open(race)
        done = len(before.trials)
        with store:
            try:
                _retell(before, follower)
                lab = _prepared(race, proven(trials, lab), follower)
                _experiment(race, before, store, lab, follower)
                schedule = Scheduler(race.heats, race.study.budget_s, before.trials, estimate_s)
                for result in schedule.results(lab, follower):
                    store.append(result)
                    done += 1
                    follower.finished(result)
                _profile(race, before, store, lab, follower)
            except KeyboardInterrupt:
                raise RaceInterruptedError(str(store.path), done, total) from None
    return Finished(store.path, done, total, schedule.how)


def _retell(before: Results, follower: Follower) -> None:
    """Show what a resumed race has already."""
    for finding in before.findings:
        follower.found(finding)
    for result in before.trials:
        follower.finished(result)
    for profile in before.profiles:
        follower.profiled(profile)


def _prepared(race: Race, lab: Lab, follower: Follower) -> Lab:
    trials = [trial for heat in race.heats for trial in heat.trials]
    named = [stack for one in race.experiments for stack in stacks_of(settings_of(one))]
    return prepared([*trials, *race.profiles], named, lab, follower)


def _experiment(race: Race, before: Results, store: Store, lab: Lab, follower: Follower) -> None:
    done = [finding.experiment for finding in before.findings]
    for experiment in race.experiments:
        if experiment not in done:
            follower.experiment_started(experiment)
            finding = run_experiment(experiment, lab)
            store.append(finding)
            follower.found(finding)


def _profile(race: Race, before: Results, store: Store, lab: Lab, follower: Follower) -> None:
    done = {profile.trial.key for profile in before.profiles}
    if lab.profile is None:
        return
    for trial in race.profiles:
        if trial.key not in done:
            follower.profile_started(trial)
            profile = lab.profile(trial, lab, race.out)
            store.append(profile)
            follower.profiled(profile)


def _tell_wait(follower: Follower) -> Callable[[str], None]:
    return lambda holder: follower.preparing(f"waiting for another velodrome ({holder})")


def _open(race: Race) -> tuple[Store, Results]:
    """Open the file; return what of it is not to be run again."""
    header = Header(race.study, race.study.seed, facts.facts(), _native.VERSION, _now())
    if not race.resume:
        return Store.create(race.out, header), Results(header, (), 0, torn=False)
    store, found = Store.resume(race.out, header)
    trials = tuple(one for one in found.trials if not _again(one, race.redo))
    findings = tuple(one for one in found.findings if not one.failed)
    profiles = tuple(one for one in found.profiles if not one.failed)
    return store, replace(found, trials=trials, findings=findings, profiles=profiles)


def _again(result: Result, redo: bool) -> bool:
    """Return whether a resumed race measures something that it has a result of once more."""
    if isinstance(result, Failed):
        # What was missing may be there now.
        return result.failure.is_missing
    return redo and any(kind.of_the_moment for kind in result.doubts)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


class Scheduler:
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
