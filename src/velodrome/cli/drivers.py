"""`velodrome drivers`: the load generators a study may name, and which of them can be used here."""

import sys

import typer

from velodrome.report import listing
from velodrome.run.drivers import driver


def command() -> None:
    """List the load generators: what each carries, its version here or, if it is missing, the cure."""
    rows = [(one.name, one.version, one.about, one.why_not) for one in driver.available_drivers()]
    listing.drivers(rows, sys.stdout)


def register(app: typer.Typer) -> None:
    """Add this command to the command line."""
    app.command("drivers")(command)
