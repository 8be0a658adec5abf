"""A race: the heats of a study in order, each result on the disk before the next trial begins.

finished = run(race, lab, follower)      # Ctrl-C: RaceInterruptedError; what was finished is kept
"""

import os
import queue
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Protocol

from velodrome import _native
from velodrome.guest.stack import Stack
from velodrome.model.errors import RaceInterruptedError, VelodromeError
from velodrome.model.limits import Limits
from velodrome.model.measurement import Failed, FailureKind
from velodrome.model.results import Header, Result
from velodrome.model.study import Study
from velodrome.model.trial import Heat, Trial
from velodrome.run import cpu_turn, limits, machine, placement
from velodrome.run.environment import Environment
from velodrome.run.lab import Lab
from velodrome.run.measuring_lock import alone
from velodrome.run.store import Store
from velodrome.run.trial import run_heat

RETRIED = (FailureKind.INSTALL, FailureKind.UNAVAILABLE)
"""Failures that `resume` tries again: what was missing may be there now."""


class Follower(Protocol):
    """Whoever shows a race. All are called on the thread that called `run`, but `preparing`."""

    def preparing(self, text: str) -> None:
        """Told what is done before the first heat, and while waiting for another velodrome; by any thread."""

    def heat_started(self, label: str, seconds_left: float | None) -> None:
        """Told `question/contestant` of the heat that begins, and how long it and the rest will take."""

    def finished(self, result: Result) -> None:
        """Told each result, when it is on the disk; on resume first those that were there already."""


@dataclass(frozen=True)
class Race:
    """What to run and where to write it: plain data."""

    study: Study
    heats: tuple[Heat, ...]
    out: Path
    resume: bool = False
    wait_s: float | None = 0.0
    """How long to wait for another velodrome to end; None: as long as it takes."""


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
    """Run all heats that the file does not hold yet. `estimate_s`: how long a heat should take, if known.

    Raises RaceInterruptedError on Ctrl-C or SIGTERM, BusyError, LimitError, OutputError, and for a resume
    ResultsError or StudyChangedError. A stack's failure is a result and raises nothing.
    """
    _refuse_impossible(race.heats, lab)
    total = sum(len(heat.trials) for heat in race.heats)
    with alone(f"study {race.study.name}", race.wait_s, _tell_wait(follower)), _stoppable():
        limits.sweep()
        store, before = _open(race)
        done = len(before)
        with store:
            try:
                for result in before:
                    follower.finished(result)
                lab = _prepared(race, _proven(race, lab), follower)
                course = _Course(race, before, estimate_s or _rough_s)
                for result in course.results(lab, follower):
                    store.append(result)
                    done += 1
                    follower.finished(result)
            except KeyboardInterrupt:
                raise RaceInterruptedError(str(store.path), done, total) from None
    return Finished(store.path, done, total, course.how)


def _refuse_impossible(heats: Sequence[Heat], lab: Lab) -> None:
    """Tell an impossible limit before anything is prepared or measured. Raises LimitError."""
    for asked in {trial.limits for heat in heats for trial in heat.trials}:
        placed = placement.place(lab.cpus, asked)
        limits.bounds(asked, placed.server_cpus, lab.where)


def _proven(race: Race, lab: Lab) -> Lab:
    """Find out which control groups may really be used, unless the lab was told."""
    if lab.where or not race.heats:
        return lab
    every = {trial.limits for heat in race.heats for trial in heat.trials}
    cpus = next((one.cpus for one in every if one.cpus is not None), None)
    memory = next((one.memory_bytes for one in every if one.memory_bytes is not None), None)
    asked = Limits(cpus, memory)
    return replace(lab, where=limits.proven(asked, placement.place(lab.cpus, asked).server_cpus))


def _tell_wait(follower: Follower) -> Callable[[str], None]:
    return lambda holder: follower.preparing(f"waiting for another velodrome ({holder})")


def _open(race: Race) -> tuple[Store, tuple[Result, ...]]:
    header = Header(race.study, race.study.seed, machine.facts(), _native.VERSION, _now())
    if not race.resume:
        return Store.create(race.out, header), ()
    store, found = Store.resume(race.out, header)
    return store, tuple(r for r in found.trials if not (isinstance(r, Failed) and r.failure in RETRIED))


def _prepared(race: Race, lab: Lab, follower: Follower) -> Lab:
    """Make all environments first, two at a time: an installation beside a measurement would be measured too.

    Returns the lab with what was made; a failed one fails the trials of its stack, when their turn comes.
    """
    wanted = {_wants(trial): trial for heat in race.heats for trial in heat.trials}
    made: dict[_Wanted, Environment | VelodromeError] = {}

    def make(key: _Wanted, trial: Trial) -> None:
        follower.preparing(f"environment of {trial.contestant.label}")
        try:
            stack, packages = lab.stacks[trial.contestant.stack], trial.contestant.packages
            made[key] = lab.environment(stack, trial.interpreter or None, packages)
        except VelodromeError as error:
            made[key] = error
            follower.preparing(str(error))

    def look_up(stack: Stack, python: str | None, packages: Mapping[str, str]) -> Environment:
        found = made[stack.name, python or "", tuple(sorted(packages.items()))]
        if isinstance(found, VelodromeError):
            raise found
        return found

    known = [(key, trial) for key, trial in wanted.items() if trial.contestant.stack in lab.stacks]
    _two_at_a_time([partial(make, key, trial) for key, trial in known])
    return replace(lab, environment=look_up, turn_ns=_calibrated(race, made.values(), lab))


_Wanted = tuple[str, str, tuple[tuple[str, str], ...]]


def _wants(trial: Trial) -> _Wanted:
    """Return what an environment is made of: stack, interpreter and versions."""
    contestant = trial.contestant
    return contestant.stack, trial.interpreter, tuple(sorted(contestant.packages.items()))


def _calibrated(race: Race, made: Iterable[Environment | VelodromeError], lab: Lab) -> dict[str, str]:
    """Ask each interpreter once how fast it computes, while nothing else runs, if any recipe computes."""
    if not any(trial.recipe.cpu_us for heat in race.heats for trial in heat.trials):
        return {}
    by_version = {one.version: one for one in made if isinstance(one, Environment)}
    return {version: cpu_turn.turn_ns(one, lab.guest_tree) for version, one in by_version.items()}


def _two_at_a_time(tasks: Iterable[Callable[[], None]]) -> None:
    """Run all tasks; raise the first exception of any.

    By daemon threads, not by a pool of concurrent.futures: that one waits for its threads even when the process
    is to end, and Ctrl-C must not wait for a download.
    """
    waiting: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
    ended: queue.SimpleQueue[Exception | None] = queue.SimpleQueue()
    count = 0
    for task in tasks:
        waiting.put(task)
        count += 1

    def work() -> None:
        while True:
            try:
                task = waiting.get_nowait()
            except queue.Empty:
                return
            try:
                task()
                ended.put(None)
            except Exception as error:
                ended.put(error)

    for _ in range(min(2, count)):
        threading.Thread(target=work, name="environment", daemon=True).start()
    for _ in range(count):
        error = ended.get()
        if error is not None:
            raise error


class _Course:
    """Which heats are left, how long they take, and whether the budget allows another block."""

    def __init__(self, race: Race, before: Sequence[Result], estimate_s: Callable[[Heat], float]) -> None:
        self.race, self.estimate_s = race, estimate_s
        self.how = "complete"
        keys = {result.trial.key for result in before}
        left = [Heat(tuple(t for t in heat.trials if t.key not in keys)) for heat in race.heats]
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
            with closing(run_heat(heat, lab)) as results, _host_on(lab, heat):
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
        budget = self.race.study.budget_s
        return budget is not None and time.monotonic() - self._began + self._seconds(block) > budget


def _rough_s(heat: Heat) -> float:
    return 1.5 + sum(trial.load.warmup_s + trial.load.duration_s for trial in heat.trials)


@contextmanager
def _host_on(lab: Lab, heat: Heat) -> Iterator[None]:
    """Keep velodrome itself (sampler, output of the server) off the server's CPUs where there are others."""
    placed = placement.place(lab.cpus, heat.trials[0].limits, placement.cores(lab.cpus))
    if placed.shared or not hasattr(os, "sched_setaffinity"):
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {*placed.load_cpus, *placed.upstream_cpus})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


@contextmanager
def _stoppable() -> Iterator[None]:
    """Make SIGTERM end a race as Ctrl-C does: in order, with everything stopped."""

    def stop(_number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():
        yield  # signals are the main thread's affair
        return
    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
