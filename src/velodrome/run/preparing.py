"""What a race needs before its first heat: environments made, interpreters asked how fast they compute."""

import queue
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from velodrome.guest.stack import Stack
from velodrome.model.errors import VelodromeError
from velodrome.model.trial import Trial
from velodrome.run import cpu_turn
from velodrome.run.environment import Environment
from velodrome.run.follower import Follower
from velodrome.run.lab import Lab

Made = Environment | VelodromeError
Wanted = tuple[str, str, tuple[tuple[str, str], ...]]
"""What an environment is made of: stack, interpreter (empty: velodrome's own) and versions."""


def prepared(trials: Sequence[Trial], experiments: Sequence[str], lab: Lab, follower: Follower) -> Lab:
    """Make all environments first, two at a time: an installation beside a measurement would be measured too.

    `experiments` are the names of the stacks that experiments start. Returns the lab with what was made; a
    failed one fails the trials of its stack, when their turn comes.
    """
    wanted = {_wants(trial): trial.contestant.label for trial in trials}
    wanted |= {(stack, "", ()): stack for stack in experiments}
    made: dict[Wanted, Made] = {}

    def make(key: Wanted, label: str) -> None:
        follower.preparing(f"environment of {label}")
        stack, python, packages = key
        try:
            made[key] = lab.environment(lab.stacks[stack], python or None, dict(packages))
        except VelodromeError as error:
            made[key] = error
            follower.preparing(str(error))

    def look_up(stack: Stack, python: str | None, packages: Mapping[str, str]) -> Environment:
        found = made[stack.name, python or "", tuple(sorted(packages.items()))]
        if isinstance(found, VelodromeError):
            raise found
        return found

    _two_at_a_time([partial(make, key, label) for key, label in wanted.items() if key[0] in lab.stacks])
    return replace(lab, environment=look_up, turn_ns=_calibrated(trials, made.values(), lab))


def _wants(trial: Trial) -> Wanted:
    contestant = trial.contestant
    return contestant.stack, trial.interpreter, tuple(sorted(contestant.packages.items()))


def _calibrated(trials: Sequence[Trial], made: Iterable[Made], lab: Lab) -> dict[str, str]:
    """Ask each interpreter once how fast it computes, while nothing else runs, if any recipe computes."""
    if not any(trial.recipe.cpu_us for trial in trials):
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
