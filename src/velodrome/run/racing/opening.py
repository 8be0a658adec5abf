"""What has to be so before anything is measured: nobody else measures, limits can be held, environments are there.

with open_lab(trials, lab, "capacity of hello", follower) as lab:
    with ExitStack() as running:
        booted = boot(planned(Session(trials[:1]), lab), lab, running)

`Follower` is whoever shows, in words, how a race is prepared and runs.
"""

import os
import queue
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from typing import Protocol

from velodrome.guest.recipe import Recipe
from velodrome.guest.stack import Stack
from velodrome.model.app import App
from velodrome.model.errors import VelodromeError
from velodrome.model.load import Limits
from velodrome.model.measurement import Placement
from velodrome.model.trial import Session, Trial
from velodrome.run import cache, link
from velodrome.run.environments import environment
from velodrome.run.environments.environment import Environment
from velodrome.run.environments.installing import telling
from velodrome.run.faults import as_velodrome_error, refusals
from velodrome.run.lab import Lab
from velodrome.run.machine import limits
from velodrome.run.machine.measuring_lock import alone
from velodrome.run.racing.plan import PlannedEnvironment, RunPlan, databases_of, plan_of, seat
from velodrome.run.services import service as companions
from velodrome.run.services.service import Service, Surroundings
from velodrome.run.supervision import scratch
from velodrome.run.supervision.undisturbed import stoppable


class Preparing(Protocol):
    """Whoever follows what is done before anything is measured."""

    def preparing(self, text: str) -> None:
        """Report what is done before the first session, and while waiting for another velodrome; by any thread."""


class Follower(Preparing, Protocol):
    """Whoever follows a race between its results: in words and numbers. What is measured, a race yields."""

    def session_started(self, label: str, seconds_left: float | None) -> None:
        """Report that the session of `question/contestant` begins, and how long it and the rest will take."""


Made = Environment | VelodromeError


def prepare_environments(plan: RunPlan, lab: Lab, follower: Preparing) -> Lab:
    """Make all environments of a plan, two at a time: an installation beside a measurement would be measured too.

    Returns the lab with what was made; one that failed fails the trials of its stack, when their turn comes.
    """
    made: dict[PlannedEnvironment, Made] = {}

    def make(wanted: PlannedEnvironment) -> None:
        follower.preparing(wanted.label if wanted.over else f"environment of {wanted.label}")
        stack = lab.stacks[wanted.stack]
        try:
            with telling(follower.preparing):
                made[wanted] = (
                    lab.overlay(stack, wanted.app)
                    if wanted.app is not None
                    else lab.environment(stack, wanted.python or None, dict(wanted.packages), wanted.recipe)
                )
        except Exception as error:  # it fails the trials of this stack alone
            made[wanted] = _report(error, follower)

    def found(wanted: PlannedEnvironment) -> Environment:
        there = made[wanted]
        if isinstance(there, VelodromeError):
            raise there
        return there

    def environment(
        stack: Stack, python: str | None, packages: Mapping[str, str], served: Recipe | None = None
    ) -> Environment:
        versions = tuple(sorted(packages.items()))
        return found(PlannedEnvironment(stack.name, python or "", versions, databases_of(served)))

    def overlay(stack: Stack, app: App) -> Environment:
        return found(PlannedEnvironment(stack.name, app.python, over=True))

    def install(name: str, companion: Service) -> None:
        follower.preparing(f"what asks {name} for its first row")
        try:
            with telling(follower.preparing):
                companion.install(Surroundings(lab.guest_tree))
        except Exception as error:  # said again, as the reason of the trials that it fails
            _report(error, follower)

    kinds = companions.known_services()
    served = [one.recipe for one in plan.environments if one.recipe is not None]
    databases = dict.fromkeys(name for recipe in served for name in recipe.services)
    _two_at_a_time(
        [
            *(partial(install, name, kinds[name]) for name in databases),
            *(partial(make, wanted) for wanted in plan.environments),
        ]
    )
    cache.tidy(follower.preparing)
    turn_ns = _calibrate(plan, made.values(), lab)
    return replace(lab, environment=environment, overlay=overlay, turn_ns=turn_ns)


def _report(error: Exception, follower: Preparing) -> VelodromeError:
    """Say line by line what cannot be had, and return it: each line is shown on one of its own."""
    found = as_velodrome_error(error)
    for line in str(found).splitlines():
        follower.preparing(line)
    return found


def _calibrate(plan: RunPlan, made: Iterable[Made], lab: Lab) -> dict[str, str]:
    """Measure once how fast each interpreter computes, while nothing else runs, if any recipe computes."""
    if not any(trial.recipe.cpu_us for trial in (*plan.trials, *plan.profiles)):
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
def open_lab(
    trials: Sequence[Trial], lab: Lab, what: str, follower: Preparing, wait_s: float | None = 0.0
) -> Iterator[Lab]:
    """Hold the machine and yield a lab in which these trials can be booted; `what` tells others who we are.

    `wait_s` is how long to wait for another velodrome to end; None: as long as it takes. SIGTERM and SIGHUP raise
    KeyboardInterrupt as Ctrl-C does. Raises LimitError, LinkRefusedError, BusyError; an environment that cannot be made
    fails the boot of its trials.
    """
    plan = plan_of(what, [Session((trial,)) for trial in trials], lab)
    with hold_machine(plan, follower, wait_s):
        yield prepare_environments(plan, find_usable_limits(plan, lab), follower)


@contextmanager
def hold_machine(plan: RunPlan, follower: Preparing, wait_s: float | None = 0.0) -> Iterator[None]:
    """Hold the machine for a plan, free of what killed velodromes left. Raises as `open_lab` does."""
    refuse_impossible(plan)

    def waiting(holder: str) -> None:
        follower.preparing(f"waiting for another velodrome ({holder})")

    with alone(plan.what, wait_s, waiting), stoppable():
        swept(follower)
        yield


def refuse_impossible(plan: RunPlan) -> None:
    """Try what this machine may refuse of a plan before anything is prepared or measured. Raises LinkRefusedError.

    Where some trials have a link and others have none, the others go on and these fail, each with the reason.
    """
    links = [trial.link for trial in plan.trials]
    if links and all(links):
        link.refuse_impossible(one for one in links if one)


def find_usable_limits(plan: RunPlan, lab: Lab) -> Lab:
    """Find out which control groups may really be used, unless the lab was told."""
    if lab.where or not plan.sessions:
        return lab
    every = [session.seat.limits for session in plan.sessions]
    cpus = next((one.cpus for one in every if one.cpus is not None), None)
    memory = next((one.memory_bytes for one in every if one.memory_bytes is not None), None)
    asked = Limits(cpus, memory)
    return replace(lab, where=limits.usable_hierarchies(asked, seat(asked, lab).placement.server_cpus))


def swept(follower: Preparing) -> None:
    """End and remove what velodromes left that were killed with all their wardens; tell it if there was anything."""
    counted = {
        "processes": scratch.end_orphans(),
        "control groups": limits.sweep(),
        "folders": scratch.sweep(),
    }
    if any(counted.values()):
        ended = ", ".join(f"{what}: {count}" for what, count in counted.items() if count)
        follower.preparing(f"taken away what a killed velodrome had left ({ended})")


@contextmanager
def host_beside(placed: Placement) -> Iterator[None]:
    """Keep velodrome itself (sampler, output of the server) off the server's CPUs where there are others."""
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
