"""`velodrome diff`: what became worse or better between two stored runs."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from velodrome.cli import _diff_options as options
from velodrome.cli.judge import read
from velodrome.guest import catalog
from velodrome.judge.differing import sides
from velodrome.judge.differing.diffing import diff


def command(
    before: Annotated[
        str, typer.Argument(help="A stored run, its folder or results.jsonl; alone, a run of two revisions.")
    ],
    after: Annotated[str, typer.Argument(help="The run it is compared with.")] = "",
    threshold: options.Thresholds = None,
    fail_on: options.FailsOn = None,
    margin: options.Margins = None,
    metrics: options.Metrics = "",
    form: options.AsFormat = "text",
    out: options.Out = None,
) -> None:
    """Tell what became worse or better: percentiles, throughput, CPU per request, memory, with intervals."""
    asked = options.asked(threshold or (), margin or (), metrics)
    stacks = catalog.stacks()
    if after:
        both = sides.runs(read(Path(before)), read(Path(after)), stacks, (before, after))
    else:
        both = sides.revisions(read(Path(before)), stacks)
    found = diff(both, asked)
    options.Telling(form, out).tell(found)
    if code := options.exit_code(found, fail_on or ()):
        sys.exit(code)


def register(app: typer.Typer) -> None:
    """Add this command to the command line."""
    app.command("diff")(command)
