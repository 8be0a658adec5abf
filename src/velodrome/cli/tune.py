"""`velodrome tune`: which stack with which settings to deploy for one service, within limits."""

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from velodrome.cli import _app_options as apps
from velodrome.cli import _server_options as server
from velodrome.cli._stderr import of_tuning
from velodrome.cli.main import heavy
from velodrome.model.load import INDEPENDENT
from velodrome.model.tuning import Goal

NAME = "tune"


@apps.describes_an_app
def command(
    context: typer.Context,
    app: apps.AppName = "",
    recipe: apps.RecipeName = "",
    slo: server.Slo = None,
    rate: Annotated[
        float | None,
        server.of_load("-R", "--rate", help="Find the setting that serves this rate with the least CPU."),
    ] = None,
    arrivals: server.OfUsers = INDEPENDENT,
    wanted: Annotated[
        Goal | None,
        server.of_load("--for", help="Goal: capacity; with --rate, the least cpu or memory."),
    ] = None,
    stack: Annotated[
        list[str] | None,
        server.of_server(help="Only these stacks, * and ? allowed, or ./mine.py; repeatable."),
    ] = None,
    cpus: server.Cpus = None,
    memory: Annotated[
        str,
        server.of_server(help="Exclude settings that were measured to need more (not enforced): 512MB, 1g."),
    ] = "",
    budget: Annotated[str, server.of_results(help="Time limit.")] = "10m",
    paste: server.Paste = False,
    agents: Annotated[
        str,
        server.of_results(
            help="Have the agents of a coordinator (tls://host:8786), or N of this machine, share the loads."
        ),
    ] = "",
    keys: server.Keys = "",
    out: Annotated[
        Path | None, server.of_results(help="Folder for all measurements (runs/<date>-tune-…).")
    ] = None,
    resume: Annotated[
        Path | None,
        server.of_results(
            help="Go on with an interrupted tuning, of the same app and options, in its folder."
        ),
    ] = None,
    wait: server.Wait = False,
    as_json: server.AsJson = False,
    dry_run: server.DryRun = False,
    **_of_app: Any,
) -> None:
    """Search stack, workers, threads and loop for the highest capacity at the SLO, or the least CPU for a rate."""
    with heavy:
        from velodrome.cli._shown import TuningLines  # noqa: PLC0415
        from velodrome.report import recommendation  # noqa: PLC0415
        from velodrome.usecases import tune  # noqa: PLC0415
        from velodrome.usecases.events import Events  # noqa: PLC0415

    server.check_either(out, resume)
    goal = _goal(wanted, server.rate("--rate", rate))
    limits, must = server.limits(cpus, memory), server.conditions(slo, of_app=bool(app))
    budget_s = server.budget(budget)
    spec = tune.TuneSpec(
        apps.served_spec(context),
        tuple(stack or ()),
        goal,
        rate or 0.0,
        must,
        limits,
        budget_s,
        wait,
        paste=paste,
        arrivals=arrivals,
        out=resume or out,
        resume=resume is not None,
        agents=server.agents(agents, keys),
        keys=Path(keys) if keys else None,
    )
    if dry_run:
        server.show_plan(tune.dry_run(spec, Events()), as_json=as_json)
        return
    found = tune.tune(spec, TuningLines())
    print(json.dumps(recommendation.document(found)) if as_json else "\n".join(recommendation.lines(found)))
    sys.exit(of_tuning(found.tuned.ending))


def _goal(wanted: Goal | None, rate: float | None) -> Goal:
    from velodrome.model.errors import UsageError  # noqa: PLC0415

    goal = wanted or (Goal.CPU if rate else Goal.CAPACITY)
    if goal is Goal.CAPACITY and rate:
        raise UsageError(
            "--for capacity searches the rate: leave --rate out, or say --for cpu or --for memory"
        )
    if goal is not Goal.CAPACITY and not rate:
        raise UsageError(f"--for {goal.value} needs the rate that is to be served: --rate 300")
    return goal


def register(app: typer.Typer) -> None:
    """Add this command to the command line."""
    app.command(NAME)(command)
