"""`velodrome diff`: what became worse or better between two stored runs, or two revisions of an app."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from velodrome.cli import _app_options as app_options
from velodrome.cli import _asked_options as asked_options
from velodrome.cli import _diff_options as options
from velodrome.cli import _diff_revisions as of_revisions
from velodrome.cli import _needless_options as needless
from velodrome.cli import _raced_options as raced_options
from velodrome.cli import _serving_options as serving
from velodrome.cli import _trusting as trusting
from velodrome.guest import catalog
from velodrome.judge import before_after
from velodrome.judge.regression import Asked, diff
from velodrome.model.difference import Diff
from velodrome.model.errors import BadOptionError, NeedlessOptionError
from velodrome.run.racing import store
from velodrome.track import apps
from velodrome.track.comparing import Terms

DEFAULTS = Terms()


OF_STORED = frozenset(
    ("before", "after", "app", "threshold", "fail_on", "margin", "metrics", "form", "out", "help")
)
"""Parameters that say something to stored runs; all others are of two revisions, which are raced."""


def command(
    context: typer.Context,
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
    trust: trusting.Given = False,
    header: app_options.Header = None,
    header_file: app_options.HeaderFile = None,
    python: app_options.Python = "",
    cwd: app_options.Cwd = "",
    env: app_options.Env = None,
    env_file: app_options.EnvFile = None,
    secret: app_options.Secret = None,
    interface: app_options.Interface = "",
    upstream: app_options.Upstream = None,
    proto: app_options.Proto = "",
    setup: app_options.Setup = "",
    teardown: app_options.Teardown = "",
    user: app_options.User = "",
    allow_sdist: app_options.AllowSdist = False,
    stack: Annotated[
        list[str] | None,
        typer.Option(help="Serve it on this stack, or yours in ./mine.py (a common one); repeatable."),
    ] = None,
    workers: serving.Workers = None,
    connections: raced_options.Connections = DEFAULTS.connections,
    rate: raced_options.Rate = None,
    length: raced_options.Length = "3s",
    cpus: serving.Cpus = None,
    memory: serving.Memory = "",
    link: raced_options.Between = "",
    blocks: of_revisions.Blocks = None,
    budget: of_revisions.Budget = "10m",
    run: of_revisions.RunFolder = None,
    wait: serving.Wait = False,
) -> None:
    """Tell what became worse or better: percentiles, throughput, CPU per request, memory, with intervals.

    BEFORE and AFTER are two stored runs of one machine or, with --app, two revisions of an app, which are raced against
    each other until the answer is settled.
    """
    asked = options.asked(threshold, margin, metrics)
    if app:
        if not after:
            raise BadOptionError("--app", app, "name two revisions: velodrome diff HEAD~1 HEAD --app …")
        mix = asked_options.mix(request, requests, access_log, openapi, methods, trust)
        given = app_options.Given(
            python,
            cwd,
            env,
            interface,
            upstream,
            proto,
            mix.requests,
            header,
            setup,
            teardown,
            user,
            allow_sdist,
            env_file,
            header_file,
        )
        names, extra = apps.named(stack or ())
        terms = Terms(
            connections,
            serving.rate("--rate", rate) or mix.peak_rps,
            serving.limits(cpus, memory),
            seconds=serving.seconds("-z", length),
            link=raced_options.between(link),
            stacks=names,
            workers=workers,
        )
        budget_s = serving.seconds("--budget", budget)
        how = of_revisions.Raced(given.asked(app), terms, budget_s, blocks, run, wait, extra)
        found = of_revisions.race(before, after, how, asked)
    else:
        _refuse_needless(context)
        found = _of_stored(before, after, asked)
    options.Telling(form, out).tell(found)
    if code := options.exit_code(found, fail_on or ()):
        sys.exit(code)


def _of_stored(before: str, after: str, asked: Asked) -> Diff:
    """Compare two stored runs, or the revisions in one."""
    stacks, first = catalog.stacks(), store.read(Path(before))
    if not after:
        return diff(before_after.revisions(first, stacks), asked)
    return diff(before_after.runs(first, store.read(Path(after)), stacks, (before, after)), asked)


def _refuse_needless(context: typer.Context) -> None:
    names = {str(one.name) for one in context.command.params} - OF_STORED
    if found := needless.given(context, names):
        raise NeedlessOptionError(
            found, "stored runs are compared as they are; to race revisions name the --app"
        )


def register(app: typer.Typer) -> None:
    """Add this command to the command line."""
    app.command("diff")(command)
