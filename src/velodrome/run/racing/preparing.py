"""What a race needs before its first heat: environments made, interpreters asked how fast they compute."""

import queue
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from velodrome.guest import catalog
from velodrome.guest.recipe import Query, Recipe, Write
from velodrome.guest.stack import Stack
from velodrome.model.app import App
from velodrome.model.errors import VelodromeError
from velodrome.model.trial import Trial
from velodrome.run import cache
from velodrome.run.companions import choosing as companions
from velodrome.run.companions.companion import Companion, Ground
from velodrome.run.environments import environment
from velodrome.run.environments.environment import Environment
from velodrome.run.environments.installing import telling
from velodrome.run.faults import refusals, told
from velodrome.run.lab import Lab, OverlayOf
from velodrome.run.racing.follower import Preparing

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
