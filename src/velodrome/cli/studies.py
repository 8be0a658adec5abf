"""`velodrome studies`: the questions that ship."""

import sys

import typer

from velodrome.guest import catalog
from velodrome.model.study import Study
from velodrome.plan import matrix, study_file
from velodrome.plan import matrix as timing
from velodrome.report import listing
from velodrome.usecases.studies import known


def command() -> None:
    """List the studies that ship, with what each asks and about how long it takes in full and quick form."""
    there = known()
    rows = []
    for name in study_file.shipped_studies():
        full, quick = (study_file.load_study(name, there, quick=form) for form in (False, True))
        rows.append((full, _seconds(full), _seconds(quick)))
    listing.studies(rows, list(study_file.groups()), sys.stdout)


def _seconds(study: Study) -> float:
    stacks = catalog.stacks()
    return timing.race_s(matrix.lay_out(study, stacks).heats, stacks)


def register(app: typer.Typer) -> None:
    """Add this command to the command line."""
    app.command("studies")(command)
