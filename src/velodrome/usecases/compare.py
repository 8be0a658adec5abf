"""Which stack to serve an app on: every one that can, under the same load, ranked as any race is.

comparison = laid_out([look(asked)], Terms(rate=300), lab)
... then raced as any study is: comparison.study, comparison.matrix.heats; an app that answers nowhere ends the race
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from velodrome.guest.stack import KnobValue, Stack
from velodrome.model.app import App
from velodrome.model.errors import UsageError
from velodrome.model.load import Closed, Limits, Link, Load, Open
from velodrome.model.study import Question, Study
from velodrome.model.trial import Contestant
from velodrome.plan import matrix
from velodrome.plan.matrix import Matrix
from velodrome.run.lab import Lab
from velodrome.run.racing.plan import seat
from velodrome.usecases import apps as unread_settings
from velodrome.usecases.apps import stacks_for
from velodrome.usecases.terms import read, refuse_count, refuse_rate

LEAST_S = 0.5
"""Of a measured span."""


@dataclass(frozen=True)
class Terms:
    """Under which conditions apps are compared: plain data. Raises UsageError for what makes no sense."""

    connections: int = 64
    """Of the closed loop, which ranks."""
    rate: float | None = None
    """Of an open loop beside it, which shows what users feel at that rate."""
    limits: Limits = field(default_factory=Limits)
    blocks: int = 3
    seconds: float = 5.0
    """Of each measured span."""
    warmup_s: float = 1.0
    seed: int = 4711
    link: Link | None = None
    stacks: tuple[str, ...] = ()
    """Names of those that race; empty: all that can serve it."""
    workers: int | None = None
    """Of each stack; None: one for each CPU of the server."""

    def __post_init__(self) -> None:
        if not LEAST_S <= self.seconds < math.inf:
            raise UsageError(
                f"a measured span of {self.seconds:g} s tells nothing; measure for {LEAST_S:g} s at least"
            )
        refuse_rate(self.rate)
        refuse_count("connections", self.connections)
        refuse_count("blocks", self.blocks)

    @property
    def loads(self) -> tuple[Load, ...]:
        """What each server carries, in order."""
        closed = Load(Closed(self.connections), self.seconds, self.warmup_s)
        if self.rate is None:
            return (closed,)
        return closed, Load(Open(self.rate), self.seconds, self.warmup_s)


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
    found = (unread_settings.unread_settings(app, _stacks(comparison, app, lab)) for app in apps)
    return tuple(dict.fromkeys(sentence for sentence in found if sentence))


def _stacks(comparison: Comparison, app: App, lab: Lab) -> list[Stack]:
    return [lab.stacks[one.stack] for one in comparison.contestants(app)]
