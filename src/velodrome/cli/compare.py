"""`velodrome compare`: serve an app of the user's own on every stack that can, and say which one to deploy."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from velodrome.cli import _app_options as app_options
from velodrome.cli import _app_options as asked_options
from velodrome.cli import _app_options as trusting
from velodrome.cli import _server_options as raced_options
from velodrome.cli import _server_options as serving
from velodrome.cli._racing import Options, folder, raced
from velodrome.cli._telling import tell
from velodrome.run.environments import interpreter
from velodrome.usecases import apps, compare
from velodrome.usecases.apps import Asked
from velodrome.usecases.compare import Terms

NAME = "compare"
DEFAULTS = Terms()


def command(
    app: Annotated[
        list[str],
        typer.Argument(
            help="module:attribute, module:factory, a Django settings module; several are ranked each."
        ),
    ],
    request: asked_options.Lines = None,
    requests: asked_options.File = None,
    access_log: asked_options.AccessLog = None,
    openapi: asked_options.OpenApi = None,
    methods: asked_options.Methods = "",
    trust: trusting.TrustGiven = False,
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
    connections: raced_options.Connections = DEFAULTS.connections,
    rate: raced_options.Rate = None,
    length: raced_options.Length = "5s",
    blocks: Annotated[int, typer.Option(min=1, help="Repeats of everything.")] = DEFAULTS.blocks,
    stack: Annotated[
        list[str] | None,
        typer.Option(help="Only this stack, or yours in ./mine.py (all that can serve it); repeatable."),
    ] = None,
    cpus: serving.Cpus = None,
    memory: serving.Memory = "",
    link: raced_options.Between = "",
    seed: Annotated[int, typer.Option(help="Order of the trials.")] = DEFAULTS.seed,
    out: Annotated[
        Path | None, typer.Option(help="Folder for results and report (runs/<date>-compare-…).")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with an interrupted comparison.")] = False,
    wait: serving.Wait = False,
) -> None:
    """Serve APP on every stack that can, on its own interpreter and packages, and say which one to deploy."""
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
    asked = [given.asked(one) for one in app]
    names, extra = apps.named(stack or ())
    terms = Terms(
        connections,
        serving.rate("--rate", rate) or mix.peak_rps,
        serving.limits(cpus, memory),
        blocks,
        serving.seconds("-z", length),
        seed=seed,
        link=raced_options.between(link),
        stacks=names,
    )
    options = Options(resume=resume, wait=wait)
    with apps.commands_around(asked[0], tell):
        _compare(asked, terms, extra, out, options)


def _compare(
    asked: Sequence[Asked], terms: Terms, extra: Sequence[str], out: Path | None, options: Options
) -> None:
    found = [apps.look(one) for one in asked]
    lab = apps.lab_for(asked[0], extra)
    comparison = compare.laid_out(found, terms, lab)
    for one in found:
        tell(f"{one.path} is {one.what}, called through {' or '.join(one.interfaces)}")
    for sentence in compare.unread(comparison, lab):
        tell(sentence)
    where = folder(comparison.study.name, out, options.resume)
    version = interpreter.find_interpreter(found[0].python).version
    raced(comparison.study, comparison.matrix, lab, where, replace(options, python=version, must_answer=True))


def register(app: typer.Typer) -> None:
    """Add this command to the command line."""
    app.command(NAME)(command)
