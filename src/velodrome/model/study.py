"""A question with a budget."""

from dataclasses import dataclass, field

from velodrome.guest.recipe import Recipe
from velodrome.model.claim import Claim
from velodrome.model.experiment import Experiment
from velodrome.model.limits import Limits
from velodrome.model.link import Link
from velodrome.model.load import Load
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
