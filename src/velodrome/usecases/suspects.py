"""Which faults of the doctor's catalogue the figures of another command make likely, and the command that proves each.

    suspects(results.trials, catalog.stacks(), machine_cpus=2)      # of a race, a search, a tuning

Nothing is measured for it, and nothing is proven by it: a suspect is worth a `velodrome doctor`, no more.
"""

import shlex
from collections.abc import Iterable, Mapping
from dataclasses import replace

from velodrome.diagnoses.fault import glances
from velodrome.guest.stack import Stack
from velodrome.judge.standings import app_words, around_words
from velodrome.judge.suspecting import symptoms
from velodrome.model.diagnosis import Suspected
from velodrome.model.measurement import Measurement
from velodrome.model.results import Header, Result
from velodrome.model.trial import Trial

FLAGS = ("workers", "threads", "loop")
"""Settings with an option of their own; the others are given by `--knob`."""


def suspects(
    results: Iterable[Result], stacks: Mapping[str, Stack], machine_cpus: int = 0
) -> tuple[Suspected, ...]:
    """Return what loads of apps make likely, contestant by contestant: of velodrome's own recipes that is known.

    `machine_cpus` are those of the machine they were measured on; 0: not known.
    """
    groups: dict[tuple[str, object], list[Measurement]] = {}
    for one in results:
        trial = one.trial
        stack = stacks.get(trial.contestant.stack)
        if not isinstance(one, Measurement) or stack is None or trial.app is None:
            continue
        settings = tuple(sorted(stack.settings(trial.contestant.knobs).items()))
        who = (stack.name, settings, tuple(sorted(trial.contestant.packages.items())), trial.interpreter)
        groups.setdefault((trial.question, who), []).append(one)
    questions = {question for question, _ in groups}
    found = []
    for (question, _), measured in groups.items():
        trial, stack = measured[-1].trial, stacks[measured[-1].trial.contestant.stack]
        called = trial.contestant.called(stack)
        of = f"{called} ({question})" if len(questions) > 1 else called
        for name, why in glances(symptoms(measured, stack, machine_cpus)).items():
            found.append(Suspected(name, of, why, command(name, trial, stack)))
    return tuple(found)


def machine_cpus(header: Header) -> int:
    """Return how many CPUs the machine of stored results has; 0: not known."""
    count = header.machine.get("cpus")
    return count if isinstance(count, int) else 0


def command(fault: str, trial: Trial, stack: Stack) -> str:
    """Return the command line that proves a fault of an app that a trial measured, or rules it out."""
    assert trial.app is not None
    words = ["velodrome", "doctor", trial.app.path, "--stack", trial.contestant.stack]
    usual = stack.settings({})
    for name, value in stack.settings(trial.contestant.knobs).items():
        if value != usual.get(name):
            words += [f"--{name}", str(value)] if name in FLAGS else ["--knob", f"{name}={value}"]
    # What a revision was checked out to is gone when its race is over: it is proven on what is there now.
    app = replace(trial.app, cwd=".") if trial.app.revision else trial.app
    words += [*app_words(app), *around_words(trial.link, trial.limits)]
    return shlex.join([*words, "--only", fault])
