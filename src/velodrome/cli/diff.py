"""`velodrome diff`: what became worse or better between two stored runs, or two revisions of an app."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from velodrome.cli import _app_options as app_options
from velodrome.cli import _asked_options as asked_options
from velodrome.cli import _diff_options as options
from velodrome.cli import _diff_revisions as of_revisions
from velodrome.cli.judge import read
from velodrome.guest import catalog
from velodrome.judge.differing import sides
from velodrome.judge.differing.diffing import diff
from velodrome.model import duration
from velodrome.model.errors import BadOptionError
from velodrome.model.limits import Limits
from velodrome.track.comparing import Terms

DEFAULTS = Terms()


def command(
    before: Annotated[
        str, typer.Argument(help="A stored run, its folder or results.jsonl; with --app a revision of git.")
    ],
    after: Annotated[
        str, typer.Argument(help="What it is compared with; left out for a run of two revisions.")
    ] = "",
    threshold: options.Thresholds = None,
    fail_on: options.FailsOn = None,
    margin: options.Margins = None,
    metrics: options.Metrics = "",
    form: options.AsFormat = "text",
    out: options.Out = None,
    app: of_revisions.App = "",
    request: asked_options.Lines = None,
    requests: asked_options.File = None,
    access_log: asked_options.AccessLog = None,
    openapi: asked_options.OpenApi = None,
    methods: asked_options.Methods = "",
    python: app_options.Python = "",
    cwd: app_options.Cwd = "",
    env: app_options.Env = None,
    interface: app_options.Interface = "",
    upstream: app_options.Upstream = None,
    stack: Annotated[
        list[str] | None, typer.Option(help="Serve it on this stack (a common one); repeatable.")
    ] = None,
    connections: Annotated[int, typer.Option("-c", "--connections", min=1, help="Of the closed loop.")] = (
        DEFAULTS.connections
    ),
    rate: Annotated[float | None, typer.Option(help="Requests a second of an open loop beside it.")] = None,
    length: Annotated[str, typer.Option("-z", "--duration", help="Of each measured span.")] = "3s",
    cpus: Annotated[int | None, typer.Option(min=1, help="CPUs of the server.")] = None,
    blocks: of_revisions.Blocks = None,
    budget: of_revisions.Budget = "10m",
    run: of_revisions.RunFolder = None,
    wait: Annotated[bool, typer.Option("--wait", help="Wait while another velodrome measures.")] = False,
) -> None:
    """Tell what became worse or better: percentiles, throughput, CPU per request, memory, with intervals.

    BEFORE and AFTER are two stored runs of one machine or, with --app, two revisions of an app, which are raced against
    each other until the answer is settled.
    """
    asked = options.asked(threshold, margin, metrics)
    if app:
        if not after:
            raise BadOptionError("--app", app, "name two revisions: velodrome diff HEAD~1 HEAD --app …")
        if rate is not None and not rate > 0:
            raise BadOptionError("--rate", f"{rate:g}", "give requests a second, above 0")
        mix = asked_options.mix(request, requests, access_log, openapi, methods)
        given = app_options.Given(python, cwd, env, interface, upstream, requests=mix.requests)
        terms = Terms(
            connections, rate, Limits(cpus), seconds=_seconds("-z", length), stacks=tuple(stack or ())
        )
        how = of_revisions.Raced(given.asked(app), terms, _seconds("--budget", budget), blocks, run, wait)
        found = of_revisions.race(before, after, how, asked)
    elif after:
        stacks = catalog.stacks()
        found = diff(sides.runs(read(Path(before)), read(Path(after)), stacks, (before, after)), asked)
    else:
        found = diff(sides.revisions(read(Path(before)), catalog.stacks()), asked)
    options.Telling(form, out).tell(found)
    if code := options.exit_code(found, fail_on or ()):
        sys.exit(code)


def _seconds(option: str, text: str) -> float:
    try:
        return duration.seconds(text)
    except ValueError as error:
        raise BadOptionError(option, text, str(error)) from error


def register(app: typer.Typer) -> None:
    """Add this command to the command line."""
    app.command("diff")(command)
