"""A question with a budget."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Literal

from velodrome.guest.recipe import Recipe
from velodrome.model.app import App
from velodrome.model.claim import Claim, Experiment, PublishedTable
from velodrome.model.load import Limits, Link, Load
from velodrome.model.trial import Contestant


@dataclass(frozen=True)
class Question:
    """One recipe under one or more loads; every contestant of the study that can serve it races."""

    name: str
    """Short, for tables and `--only`: `third-party`."""
    recipe: Recipe
    loads: tuple[Load, ...]
    """In the order they are applied to a running server. The first closed loop ranks by throughput."""
    link: Link | None = None
    """The network between generator and server; None: loopback."""
    limits: Limits | None = None
    """Instead of the study's."""
    contestants: tuple[str, ...] = ()
    """Labels of those that race in this question; empty: all of the study."""
    profile: Load | None = None
    """A load under which each contestant is profiled, once, after the race; nothing of it is ranked."""
    app: App | None = None
    """A user's own app in place of the recipe, which then is `app.recipe`."""

    @property
    def about(self) -> str:
        """Completes «for an endpoint that …»: what its recipe does, and over which link it is asked."""
        return f"{self.recipe.about}, over a link of {self.link.told}" if self.link else self.recipe.about


@dataclass(frozen=True)
class Study:
    """The axes of a race, its repeats and its seed."""

    name: str
    title: str
    questions: tuple[Question, ...]
    contestants: tuple[Contestant, ...]
    blocks: int = 3
    seed: int = 4711
    """Orders the trials of every block."""
    budget_s: float | None = None
    """No block is begun that would not end within this many seconds; the verdict says so."""
    limits: Limits = field(default_factory=Limits)
    sources: tuple[str, ...] = ()
    """Where the question comes from."""
    experiments: tuple[Experiment, ...] = ()
    """Run once each, before the race."""
    claims: tuple[Claim, ...] = ()
    """Published conclusions to be judged by what was measured."""
    tables: tuple[PublishedTable, ...] = ()
    """Published figures, to be shown beside what was measured."""
    form: Literal["full", "quick"] = "full"
    """The quick form asks the same in less time: fewer blocks, shorter spans, some cells left out."""
    skipped: tuple[str, ...] = ()
    """What this form leaves out: patterns of `question/contestant` or `question/contestant/load`, and experiments."""

    def pairs(self) -> Iterator[tuple[Question, Contestant]]:
        """Yield who is to race in which question, in the order of the study, whether it can serve it or not."""
        for question in self.questions:
            for contestant in self.contestants:
                asked = not question.contestants or contestant.label in question.contestants
                if asked and not self.skips(f"{question.name}/{contestant.label}"):
                    yield question, contestant

    def skips(self, name: str) -> bool:
        """Return whether this form leaves a cell, a load of one, or an experiment out."""
        parts = name.count("/")
        return any(matches(name, pattern) for pattern in self.skipped if pattern.count("/") in (0, parts))

    def loads(self, question: Question, contestant: Contestant) -> tuple[Load, ...]:
        """Return the loads under which a contestant is to be measured, in order."""
        cell = f"{question.name}/{contestant.label}"
        return tuple(load for load in question.loads if not self.skips(f"{cell}/{load.label}"))


def matches(cell: str, pattern: str) -> bool:
    """Return whether `question/contestant` is meant by a pattern: with `*` and `?`, or the question alone."""
    # The brackets of `gunicorn-gevent[workers=2]` are part of a label, not a set of characters.
    escaped = pattern.replace("[", "[[]")
    return fnmatchcase(cell, escaped) or ("/" not in pattern and fnmatchcase(cell.partition("/")[0], escaped))
