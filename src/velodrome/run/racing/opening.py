"""What has to be so before anything is measured: nobody else measures, limits can be held, environments are there.

with opened(trials, lab, "capacity of hello", follower) as lab:
    with ExitStack() as running:
        booted = boot(trials[0], lab, running)

`Follower` is whoever shows a race while it is prepared and runs.
"""

import os
import queue
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from typing import Protocol

from velodrome.guest import catalog
from velodrome.guest.recipe import Query, Recipe, Write
from velodrome.guest.stack import Stack
from velodrome.model.app import App
from velodrome.model.claim import Experiment, Finding
from velodrome.model.errors import VelodromeError
from velodrome.model.load import Limits
from velodrome.model.profile import Profile
from velodrome.model.results import Result
from velodrome.model.trial import Trial
from velodrome.run import cache
from velodrome.run import link as site
from velodrome.run.companions import choosing as companions
from velodrome.run.companions.companion import Companion, Ground
from velodrome.run.environments import environment
from velodrome.run.environments.environment import Environment
from velodrome.run.environments.installing import telling
from velodrome.run.faults import refusals, told
from velodrome.run.lab import Lab, OverlayOf
from velodrome.run.machine import facts, limits
from velodrome.run.machine.measuring_lock import alone
from velodrome.run.supervision import orphans, scratch
from velodrome.run.supervision.undisturbed import stoppable


class Preparing(Protocol):
    """Whoever is told what is done before anything is measured."""

    def preparing(self, text: str) -> None:
        """Told what is done before the first heat, and while waiting for another velodrome; by any thread."""


class Follower(Preparing, Protocol):
    """Whoever shows a race. All are called on the thread that called `run`, but `preparing`."""

    def heat_started(self, label: str, seconds_left: float | None) -> None:
        """Told `question/contestant` of the heat that begins, and how long it and the rest will take."""

    def experiment_started(self, experiment: Experiment) -> None:
        """Told the experiment that begins."""

    def found(self, finding: Finding) -> None:
        """Told what an experiment came to, when it is on the disk; on resume also what was there already."""

    def profile_started(self, trial: Trial) -> None:
        """Told of whom a profile begins."""

    def profiled(self, profile: Profile) -> None:
        """Told each profile, when it is on the disk; on resume also those that were there already."""

    def finished(self, result: Result) -> None:
        """Told each result, when it is on the disk; on resume first those that were there already."""


Made = Environment | VelodromeError
Pairs = tuple[tuple[str, str], ...]
Wanted = tuple[str, str, Pairs, Pairs]
"""What an environment is made of: stack, interpreter (empty: velodrome's own), versions, databases with drivers."""
Over = tuple[str, str]
"""What an overlay is made of: stack, and the interpreter of the app it lies over."""


def prepared(trials: Sequence[Trial], experiments: Sequence[str], lab: Lab, follower: Preparing) -> Lab:
    """Make all environments first, two at a time: an installation beside a measurement would be measured too.

    `experiments` are the names of the stacks that experiments start. Returns the lab with what was made; a
    failed one fails the trials of its stack, when their turn comes.
    """
    wanted: dict[Wanted, tuple[str, Recipe | None]] = {
        _wants(trial): (trial.contestant.label, trial.recipe)
        for trial in trials
        if trial.app is None and _servable(trial, lab)
    }
    wanted |= {(stack, "", (), ()): (stack, None) for stack in experiments}
    made: dict[Wanted, Made] = {}

    def make(key: Wanted, label: str, served: Recipe | None) -> None:
        follower.preparing(f"environment of {label}")
        stack, python, packages, _ = key
        try:
            with telling(follower.preparing):
                made[key] = lab.environment(lab.stacks[stack], python or None, dict(packages), served)
        except Exception as error:  # it fails the trials of this stack alone
            made[key] = _told(error, follower)

    def look_up(
        stack: Stack, python: str | None, packages: Mapping[str, str], served: Recipe | None = None
    ) -> Environment:
        found = made[stack.name, python or "", tuple(sorted(packages.items())), _databases(served)]
        if isinstance(found, VelodromeError):
            raise found
        return found

    def install(name: str, companion: Companion) -> None:
        follower.preparing(f"what asks {name} for its first row")
        try:
            with telling(follower.preparing):
                companion.install(Ground(lab.guest_tree))
        except Exception as error:  # said again, as the reason of the trials that it fails
            _told(error, follower)

    overlays, overlay = _overlays(trials, lab, follower)
    kinds = companions.known()
    asked = dict.fromkeys(name for _, served in wanted.values() if served for name in served.companions)
    _two_at_a_time(
        [
            *(partial(install, name, kinds[name]) for name in asked),
            *(partial(make, key, *what) for key, what in wanted.items() if key[0] in lab.stacks),
            *overlays,
        ]
    )
    cache.tidy(follower.preparing)
    turn_ns = _calibrated(trials, made.values(), lab)
    return replace(lab, environment=look_up, overlay=overlay, turn_ns=turn_ns)


def _overlays(
    trials: Sequence[Trial], lab: Lab, follower: Preparing
) -> tuple[list[Callable[[], None]], OverlayOf]:
    """Return what makes the overlays of apps, and what looks up those that were made."""
    wanted = {
        (trial.contestant.stack, trial.app.python): trial.app
        for trial in trials
        if trial.app is not None and trial.contestant.stack in lab.stacks
    }
    made: dict[Over, Made] = {}

    def make(key: Over, app: App) -> None:
        follower.preparing(f"{key[0]} beside {app.path}")
        try:
            with telling(follower.preparing):
                made[key] = lab.overlay(lab.stacks[key[0]], app)
        except Exception as error:  # it fails the trials of this stack alone
            made[key] = _told(error, follower)

    def look_up(stack: Stack, app: App) -> Environment:
        found = made[stack.name, app.python]
        if isinstance(found, VelodromeError):
            raise found
        return found

    return [partial(make, key, app) for key, app in wanted.items()], look_up


def _told(error: Exception, follower: Preparing) -> VelodromeError:
    """Say line by line what cannot be had, and return it: each line is shown on one of its own."""
    found = told(error)
    for line in str(found).splitlines():
        follower.preparing(line)
    return found


def _wants(trial: Trial) -> Wanted:
    contestant = trial.contestant
    packages = tuple(sorted(contestant.packages.items()))
    return contestant.stack, trial.interpreter, packages, _databases(trial.recipe)


def _databases(served: Recipe | None) -> Pairs:
    steps = served.every_step if served else ()
    return tuple(sorted({(one.database, one.driver) for one in steps if isinstance(one, Query | Write)}))


def _servable(trial: Trial, lab: Lab) -> bool:
    """Whether there is anything to install for: a pair that cannot be served is told when its turn comes."""
    stack = lab.stacks.get(trial.contestant.stack)
    return stack is not None and catalog.serves(stack, trial.recipe) is None


def _calibrated(trials: Sequence[Trial], made: Iterable[Made], lab: Lab) -> dict[str, str]:
    """Ask each interpreter once how fast it computes, while nothing else runs, if any recipe computes."""
    if not any(trial.recipe.cpu_us for trial in trials):
        return {}
    by_version = {one.version: one for one in made if isinstance(one, Environment)}
    return {version: environment.turn_ns(one, lab.guest_tree) for version, one in by_version.items()}


def _two_at_a_time(tasks: Iterable[Callable[[], None]]) -> None:
    """Run all tasks; raise the first exception of any.

    By daemon threads, not by a pool of concurrent.futures: that one waits for its threads even when the process
    is to end, and Ctrl-C must not wait for a download.
    """
    waiting: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
    ended: queue.SimpleQueue[BaseException | None] = queue.SimpleQueue()
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
            except BaseException as error:  # whoever waits must hear of it, whatever it is
                ended.put(error)

    for _ in range(min(2, count)):
        with refusals():
            threading.Thread(target=work, name="environment", daemon=True).start()
    for _ in range(count):
        error = ended.get()
        if error is not None:
            raise error


@contextmanager
def opened(
    trials: Sequence[Trial], lab: Lab, what: str, follower: Preparing, wait_s: float | None = 0.0
) -> Iterator[Lab]:
    """Hold the machine and yield a lab in which these trials can be booted; `what` tells others who we are.

    `wait_s` is how long to wait for another velodrome to end; None: as long as it takes. SIGTERM and SIGHUP raise
    KeyboardInterrupt as Ctrl-C does. Raises LimitError, LinkRefusedError, BusyError; an environment that cannot be made
    fails the boot of its trials.
    """
    refuse_impossible(trials, lab)

    def waiting(holder: str) -> None:
        follower.preparing(f"waiting for another velodrome ({holder})")

    with alone(what, wait_s, waiting), stoppable():
        swept(follower)
        yield prepared(trials, (), proven(trials, lab), follower)


def refuse_impossible(trials: Sequence[Trial], lab: Lab) -> None:
    """Tell what is impossible before anything is prepared or measured. Raises LimitError or LinkRefusedError.

    Where some trials have a link and others have none, the others go on and these fail, each with the reason.
    """
    for asked in {trial.limits for trial in trials}:
        placed = facts.place(lab.cpus, asked)
        limits.bounds(asked, placed.server_cpus, lab.where)
    links = [trial.link for trial in trials]
    if links and all(links):
        site.refuse_impossible(link for link in links if link)


def proven(trials: Sequence[Trial], lab: Lab) -> Lab:
    """Find out which control groups may really be used, unless the lab was told."""
    if lab.where or not trials:
        return lab
    every = {trial.limits for trial in trials}
    cpus = next((one.cpus for one in every if one.cpus is not None), None)
    memory = next((one.memory_bytes for one in every if one.memory_bytes is not None), None)
    asked = Limits(cpus, memory)
    return replace(lab, where=limits.proven(asked, facts.place(lab.cpus, asked).server_cpus))


def swept(follower: Preparing) -> None:
    """End and remove what velodromes left that were killed with all their wardens; tell it if there was anything."""
    counted = {"processes": orphans.sweep(), "control groups": limits.sweep(), "folders": scratch.sweep()}
    if any(counted.values()):
        told = ", ".join(f"{what}: {count}" for what, count in counted.items() if count)
        follower.preparing(f"taken away what a killed velodrome had left ({told})")


@contextmanager
def host_beside(asked: Limits, lab: Lab) -> Iterator[None]:
    """Keep velodrome itself (sampler, output of the server) off the server's CPUs where there are others."""
    placed = facts.place(lab.cpus, asked, facts.cores(lab.cpus))
    if placed.shared or not hasattr(os, "sched_setaffinity"):
        yield
        return
    before = os.sched_getaffinity(0)
    try:
        with suppress(OSError):  # these CPUs were taken away meanwhile: the trial itself tells that
            os.sched_setaffinity(0, {*placed.load_cpus, *placed.upstream_cpus})
        yield
    finally:
        with suppress(OSError):
            os.sched_setaffinity(0, before)
