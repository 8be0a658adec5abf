"""Which stack to serve an app on: every one that can, under the same load, ranked as any race is.

raced = compare(CompareSpec((AppSpec("shop.wsgi:application"),), Terms(rate=300)), out, follower)
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from velodrome.guest.stack import KnobValue, Stack
from velodrome.model.app import App
from velodrome.model.study import Question, Study
from velodrome.model.trial import Contestant
from velodrome.plan import matrix
from velodrome.plan.matrix import Matrix
from velodrome.run.environments import interpreter
from velodrome.run.lab import Lab
from velodrome.run.racing.plan import RunPlan, seat
from velodrome.usecases import race
from velodrome.usecases.apps import AppSpec, commands_around, lab_for, look, stacks_for, unread_settings
from velodrome.usecases.quiet import Quiet
from velodrome.usecases.race import Raced
from velodrome.usecases.terms import Terms, read


@dataclass(frozen=True)
class CompareSpec:
    """Which apps are compared, and how."""

    apps: tuple[AppSpec, ...]
    """The commands around are those of the first."""
    terms: Terms
    extra: tuple[str, ...] = ()
    """Paths of stacks of the user's own."""
    resume: bool = False
    wait: bool = False
    """Wait while another velodrome measures."""


def compare(spec: CompareSpec, out: Path | None, follower: Quiet) -> Raced:
    """Look at each app and race all stacks that can serve it into `out`, or a folder of `runs/`.

    Raises what `planned` and `race.run` do.
    """
    with planned(spec, follower) as found:
        return race.run(found, race.folder(found.study.name, out, spec.resume), follower)


def dry_run(spec: CompareSpec, out: Path | None, follower: Quiet) -> RunPlan:
    """Return what `compare` would start. The app is imported to see what it is; the user's commands do not run.

    Raises what `planned` and `race.plan` do.
    """
    found = _race(spec, follower)
    return race.plan(found, race.folder(found.study.name, out, spec.resume))


@contextmanager
def planned(spec: CompareSpec, follower: Quiet) -> Iterator[race.Race]:
    """Yield the race of a comparison, between the commands of the user.

    Raises what is wrong with an app, UnknownNameError, NoStackFitsError, BusyError.
    """
    with commands_around(spec.apps[0], follower.said):
        yield _race(spec, follower)


def _race(spec: CompareSpec, follower: Quiet) -> race.Race:
    found = [look(one) for one in spec.apps]
    lab = lab_for(spec.apps[0], spec.extra)
    comparison = laid_out(found, spec.terms, lab)
    for one in found:
        follower.said(f"{one.path} is {one.what}, called through {' or '.join(one.interfaces)}")
    for sentence in unread(comparison, lab):
        follower.said(sentence)
    version = interpreter.find_interpreter(found[0].python).version
    return race.Race(
        comparison.study, comparison.matrix, lab, version, spec.resume, wait=spec.wait, must_answer=True
    )


@dataclass(frozen=True)
class Comparison:
    """A study of apps, laid out."""

    study: Study
    matrix: Matrix

    def contestants(self, app: App) -> tuple[Contestant, ...]:
        """Return who races with an app."""
        heats = [heat.trials[0] for heat in self.matrix.heats if heat.trials[0].block == 0]
        asked = {one.contestant.label for one in heats if one.app == app}
        return tuple(one for one in self.study.contestants if one.label in asked)


def laid_out(apps: Sequence[App], terms: Terms, lab: Lab) -> Comparison:
    """Return the study of apps: one question each, and every stack that can serve it.

    Raises UnknownNameError or NoStackFitsError.
    """
    cpus = len(seat(terms.limits, lab).placement.server_cpus)
    by_app = [
        tuple(
            contestant(lab.stacks[name], cpus, terms.workers) for name in stacks_for(app, lab, terms.stacks)
        )
        for app in apps
    ]
    questions = tuple(
        Question(
            name_of(app),
            app.recipe,
            terms.loads,
            link=terms.link,
            contestants=tuple(one.label for one in chosen),
            app=app,
        )
        for app, chosen in zip(apps, by_app, strict=True)
    )
    every = {one.label: one for chosen in by_app for one in chosen}
    names = " and ".join(one.name for one in questions)
    study = Study(
        name=f"compare-{'-'.join(name_of(app).partition(':')[0] for app in apps)}",
        title=f"What to serve {names} on",
        questions=questions,
        contestants=tuple(every.values()),
        blocks=terms.blocks,
        seed=terms.seed,
        limits=terms.limits,
    )
    return Comparison(study, matrix.lay_out(study, lab.stacks))


def contestant(stack: Stack, cpus: int, workers: int | None = None) -> Contestant:
    """Return a stack as it is raced where nothing is tuned: its defaults, with a worker for each CPU unless told.

    Raises UnknownKnobError for workers of a stack that has none, BadOptionError.
    """
    if workers is not None:
        return Contestant(stack.name, read(stack, {"workers": workers}))
    knobs: Mapping[str, KnobValue] = {"workers": cpus} if "workers" in stack.knobs and cpus > 1 else {}
    return Contestant(stack.name, knobs)


def name_of(app: App) -> str:
    """Return what the question of an app is called: a part of keys, in which a slash divides."""
    return app.path.replace("/", "-") + (f"@{app.revision}" if app.revision else "")


def unread(comparison: Comparison, lab: Lab) -> tuple[str, ...]:
    """Return what the apps' stacks would read by themselves and do not while they are compared, as sentences."""
    apps = [one.app for one in comparison.study.questions if one.app is not None]
    found = (unread_settings(app, _stacks(comparison, app, lab)) for app in apps)
    return tuple(dict.fromkeys(sentence for sentence in found if sentence))


def _stacks(comparison: Comparison, app: App, lab: Lab) -> list[Stack]:
    return [lab.stacks[one.stack] for one in comparison.contestants(app)]
