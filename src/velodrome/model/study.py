"""A question with a budget."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import Literal

from velodrome.guest.recipe import Recipe
from velodrome.model.app import App
from velodrome.model.claim import Claim, Experiment, PublishedTable
from velodrome.model.load import Closed, Limits, Link, Load
from velodrome.model.trial import Contestant


@dataclass(frozen=True)
class Look:
    """A short closed loop of every contestant before a comparison, and the rate of the open loop that follows from it.

    The rule is that of `usecases/compare.py`.
    """

    seconds: float
    """Length of the measured span."""
    answered_rps: Mapping[str, float]
    """Correct responses a second, by label; whoever had none is missing."""
    rate: float | None = None
    """Of the open loop, requests a second; None: its user gave a rate, or nobody responded."""
    slowest: str = ""
    """Label of the contestant that the rate follows from."""


Layer = Literal["app", "framework", "server"]
"""What of an app a baseline serves: all of it, an empty route of its framework, or an empty handler by the server."""


@dataclass(frozen=True)
class Baseline:
    """A question that measures where the cost of a request of another question comes from, and has no answer of its
    own.

    The layers of one question are measured on one contestant, in the same blocks, under the same two loads: a closed
    loop, for the CPU of a request, and a low rate, for its response time where no request waits for another.
    """

    of: str
    """Name of that question."""
    layer: Layer
    framework: str = ""
    """Whose empty route the layer `framework` is: `flask`."""


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
    look: Look | None = None
    """What was measured before the race, and set the rate of the open loop; None: nothing was."""
    baseline: Baseline | None = None
    """Of what it is a baseline; None: of nothing, it is a question by itself."""

    @property
    def about(self) -> str:
        """Completes «for an endpoint that …»: what its recipe does, and over which link it is measured."""
        return (
            f"{self.recipe.about}, over a link of {self.link.described}" if self.link else self.recipe.about
        )

    def over(self, link: Link | None) -> "Question":
        """Return it measured over a link, and called after both."""
        return replace(self, name=f"{self.name}-{link.label}", link=link) if link else self

    @property
    def ranking_load(self) -> Load:
        """The load that ranks: the first closed loop or, without one, the first load."""
        return next((load for load in self.loads if isinstance(load.pace, Closed)), self.loads[0])


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
    worker_counts: tuple[int, ...] = ()
    """With how many workers a contestant is checked before it is recommended, the fewest first; empty: it is not."""
    until_settled: bool = False
    """Whether blocks are spent where the answer is open: a contestant that is clearly behind is not started again, a
    question that is settled is left, and what that saves goes into further blocks of the others. It takes as long as
    `blocks` of all would, or `budget_s`."""
    form: Literal["full", "quick"] = "full"
    """The quick form asks the same in less time: fewer blocks, shorter spans, some cells left out."""
    skipped: tuple[str, ...] = ()
    """What this form leaves out: patterns of `question/contestant` or `question/contestant/load`, and experiments."""

    @property
    def answered(self) -> tuple[Question, ...]:
        """Questions that have an answer of their own."""
        return tuple(question for question in self.questions if question.baseline is None)

    def baselines(self, question: str) -> tuple[Question, ...]:
        """Return the baselines of a question, by its name."""
        return tuple(
            layer for layer in self.questions if layer.baseline is not None and layer.baseline.of == question
        )

    def pairs(self) -> Iterator[tuple[Question, Contestant]]:
        """Yield who is to race in which question, in the order of the study, whether it can serve it or not."""
        for question in self.questions:
            for contestant in self.contestants:
                wanted = not question.contestants or contestant.label in question.contestants
                if wanted and not self.skips(f"{question.name}/{contestant.label}"):
                    yield question, contestant

    def skips(self, name: str) -> bool:
        """Return whether this form leaves a cell, a load of a cell, or an experiment out."""
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


def inside_group(study: str) -> str:
    """Return the folder of a study within that of its group."""
    return study.rpartition("/")[2].removesuffix(".toml")
