"""`velodrome compare`: serve an app of the user's own on every stack that can, and say which one to deploy."""

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from velodrome.cli import _app_options as app_options
from velodrome.cli._racing import Options, between, folder, raced
from velodrome.model import duration
from velodrome.model.errors import BadOptionError
from velodrome.model.limits import Limits
from velodrome.model.memory_text import memory_bytes
from velodrome.run.apps import commands
from velodrome.run.environments import interpreter
from velodrome.run.environments.theirs import path_with
from velodrome.run.profiling.taking import take
from velodrome.track import apps, comparing
from velodrome.track.comparing import Terms

NAME = "compare"
DEFAULTS = Terms()


def command(
    app: Annotated[
        list[str],
        typer.Argument(
            help="module:attribute, module:factory, a Django settings module; several are ranked each."
        ),
    ],
    request: app_options.Asking = None,
    python: app_options.Python = "",
    cwd: app_options.Cwd = "",
    env: app_options.Env = None,
    interface: app_options.Interface = "",
    upstream: app_options.Upstream = None,
    setup: app_options.Setup = "",
    teardown: app_options.Teardown = "",
    connections: Annotated[int, typer.Option("-c", "--connections", min=1, help="Of the closed loop.")] = (
        DEFAULTS.connections
    ),
    rate: Annotated[float | None, typer.Option(help="Requests a second of an open loop beside it.")] = None,
    length: Annotated[str, typer.Option("-z", "--duration", help="Of each measured span.")] = "5s",
    blocks: Annotated[int, typer.Option(min=1, help="Repeats of everything.")] = DEFAULTS.blocks,
    stack: Annotated[
        list[str] | None, typer.Option(help="Only this stack (all that can serve it); repeatable.")
    ] = None,
    cpus: Annotated[int | None, typer.Option(min=1, help="CPUs of the server.")] = None,
    memory: Annotated[str, typer.Option(help="Memory of the server: 512MB, 1g.")] = "",
    link: Annotated[str, typer.Option(help="Network between: rtt=160ms,rate=100mbit,loss=1%.")] = "",
    seed: Annotated[int, typer.Option(help="Order of the trials.")] = DEFAULTS.seed,
    out: Annotated[
        Path | None, typer.Option(help="Folder for results and report (runs/<date>-compare-…).")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with an interrupted comparison.")] = False,
    wait: Annotated[bool, typer.Option("--wait", help="Wait while another velodrome measures.")] = False,
) -> None:
    """Serve APP on every stack that can, on its own interpreter and packages, and say which one to deploy."""
    given = app_options.Given(python, cwd, env, interface, request, upstream)
    asked = [given.asked(one) for one in app]
    terms = Terms(
        connections,
        _rate(rate),
        Limits(cpus, _memory(memory)),
        blocks,
        _seconds(length),
        seed=seed,
        link=between(link),
        stacks=tuple(stack or ()),
    )
    path = path_with(apps.interpreter(python), os.environ.get("PATH", ""))
    variables = {"PATH": path, **apps.values(env or ())}
    with commands.around(setup, teardown, apps.folder(cwd), variables):
        found = [apps.look(one) for one in asked]
        lab = apps.lab_for(asked[0], profile=take)
        comparison = comparing.laid_out(found, terms, lab)
        for one in found:
            _tell(f"{one.path} is {one.what}, called through {' or '.join(one.interfaces)}")
        comparing.rehearse(comparison, lab, _tell, terms.link)
        where = folder(comparison.study.name, out, resume)
        options = Options(resume=resume, wait=wait, python=interpreter.find(found[0].python).version)
        raced(comparison.study, comparison.matrix, lab, where, options)


def _tell(sentence: str) -> None:
    print(sentence, file=sys.stderr, flush=True)


def _rate(rate: float | None) -> float | None:
    if rate is not None and not rate > 0:
        raise BadOptionError("--rate", f"{rate:g}", "give requests a second, above 0")
    return rate


def _seconds(text: str) -> float:
    try:
        found = duration.seconds(text)
    except ValueError as error:
        raise BadOptionError("-z", text, str(error)) from error
    if found < comparing.LEAST_S:
        raise BadOptionError("-z", text, f"give {comparing.LEAST_S:g} s at least")
    return found


def _memory(text: str) -> int | None:
    try:
        return memory_bytes(text) if text else None
    except ValueError as error:
        raise BadOptionError("--memory", text, str(error)) from error


def register(app: typer.Typer) -> None:
    """Add this command to the command line."""
    app.command(NAME)(command)
