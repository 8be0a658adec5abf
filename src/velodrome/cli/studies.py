"""`velodrome studies`: the questions that ship."""

import sys

import typer

from velodrome.guest import catalog
from velodrome.plan import finding, matrix, timing
from velodrome.plan.known import Known
from velodrome.report import listing
from velodrome.run.drivers import choosing
from velodrome.run.experiments import choosing as experiments


def command() -> None:
    """List the studies that ship, with what each asks and about how long it takes."""
    stacks = catalog.stacks()
    known = Known(stacks, catalog.recipes(), choosing.known(), experiments.settings())
    rows = []
    for name in finding.shipped():
        study = finding.load(name, known)
        rows.append((study, timing.race_s(matrix.lay_out(study, stacks).heats, stacks)))
    listing.studies(rows, sys.stdout)


def register(app: typer.Typer) -> None:
    """Add this command to the command line."""
    app.command("studies")(command)
