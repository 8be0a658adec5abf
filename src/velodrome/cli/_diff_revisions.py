"""Races two revisions of an app for `velodrome diff`, and tells on the way how far it is."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from velodrome.cli._racing import folder
from velodrome.cli._served import tell, tell_unread
from velodrome.judge.regression import Asked
from velodrome.model import quantity
from velodrome.model.difference import Diff
from velodrome.model.measurement import Failed
from velodrome.model.results import Result
from velodrome.run.apps import revisions
from velodrome.track import apps, revising
from velodrome.track.comparing import Terms
from velodrome.track.quiet import Quiet

App = Annotated[
    str, typer.Option("--app", help="BEFORE and AFTER are revisions of this app: module:attribute.")
]
Budget = Annotated[str, typer.Option(help="Revisions: no block is begun that would end after so long.")]
Blocks = Annotated[
    int | None, typer.Option(min=1, help="Revisions: so many blocks, instead of until it is settled.")
]
RunFolder = Annotated[
    Path | None, typer.Option("--run", help="Revisions: folder for results (runs/<date>-diff-…).")
]


@dataclass(frozen=True)
class Raced:
    """How two revisions are raced."""

    app: apps.Asked
    terms: Terms
    budget_s: float
    blocks: int | None
    run: Path | None
    wait: bool
    extra: tuple[str, ...] = ()
    """Paths of stacks of the user's own."""


def race(before: str, after: str, how: Raced, asked: Asked) -> Diff:
    """Check both out, race them, and return the diff; the app's commands run before and after.

    Raises GitError, RevisionError and what a race raises.
    """
    with (
        apps.commands_around(how.app, tell),
        revisions.checked_out(apps.folder(how.app.cwd), (before, after)) as found,
    ):
        lab = apps.lab_for(how.app, how.extra)
        tell(f"{found[0].name} against {found[1].name}")
        study = revising.laid_out(how.app, found, how.terms, lab)
        raced = [lab.stacks[one.stack] for one in study.contestants]
        tell_unread([one.app for one in study.questions], raced)
        where = folder(study.name, how.run, resume=False)
        diff = revising.raced(
            study,
            lab,
            where,
            Telling(),
            asked=asked,
            budget_s=how.budget_s,
            blocks=how.blocks,
            wait_s=None if how.wait else 0.0,
            told=tell,
        )
    tell(f"results are in {where}; tell them again: velodrome diff {where}")
    return diff


class Telling(Quiet):
    """A line for each result on standard error, where a report on standard output is not disturbed."""

    def __init__(self) -> None:
        self._told: set[str] = set()

    def preparing(self, text: str) -> None:
        """Told what is done before the first heat."""
        tell(text)

    def finished(self, result: Result) -> None:
        """Told each result; those of earlier blocks come again."""
        trial = result.trial
        if trial.key in self._told:
            return
        self._told.add(trial.key)
        if isinstance(result, Failed):
            said = f"failed: {result.reason}"
        else:
            aside = "" if result.valid else ", set aside"
            said = f"{quantity.rate(result.load.throughput_rps)}{aside}"
        tell(
            f"block {trial.block + 1}  {trial.question:6}  {trial.contestant.label}  {trial.load.label}  {said}"
        )
