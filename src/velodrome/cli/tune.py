"""`velodrome tune`: which stack with which settings to deploy for one service, within limits."""

import json
import sys
from typing import Annotated

import typer

from velodrome.cli import _app_options as apps
from velodrome.cli import _server_options as server
from velodrome.cli._telling import CANNOT_TELL, FAILED
from velodrome.cli.main import heavy
from velodrome.model.tuning import Goal

NAME = "tune"


def command(
    context: typer.Context,
    app: apps.AppName = "",
    recipe: apps.RecipeName = "",
    request: apps.Lines = None,
    requests: apps.File = None,
    access_log: apps.AccessLog = None,
    openapi: apps.OpenApi = None,
    methods: apps.Methods = "",
    trust: apps.TrustGiven = False,
    header: apps.Header = None,
    header_file: apps.HeaderFile = None,
    slo: server.Slo = None,
    rate: Annotated[
        float | None,
        server.of_load("-R", "--rate", help="Find the setting that serves this rate with the least CPU."),
    ] = None,
    wanted: Annotated[
        Goal | None,
        server.of_load("--for", help="Goal: capacity; with --rate, the least cpu or memory."),
    ] = None,
    stack: Annotated[
        list[str] | None,
        server.of_server(help="Only these stacks, * and ? allowed, or ./mine.py; repeatable."),
    ] = None,
    cpus: server.Cpus = None,
    memory: server.Memory = "",
    python: apps.Python = "",
    cwd: apps.Cwd = "",
    env: apps.Env = None,
    env_file: apps.EnvFile = None,
    secret: apps.Secret = None,
    interface: apps.Interface = "",
    upstream: apps.Upstream = None,
    proto: apps.Proto = "",
    setup: apps.Setup = "",
    teardown: apps.Teardown = "",
    user: apps.User = "",
    allow_sdist: apps.AllowSdist = False,
    budget: Annotated[str, server.of_results(help="Time to measure for.")] = "10m",
    wait: server.Wait = False,
    as_json: server.AsJson = False,
) -> None:
    """Search stack, workers, threads and loop for the highest capacity at the SLO, or the least CPU for a rate."""
    with heavy:
        from velodrome.cli._shown import ToldTuning  # noqa: PLC0415
        from velodrome.model.tuning import TuneEnding  # noqa: PLC0415
        from velodrome.report import recommendation  # noqa: PLC0415
        from velodrome.usecases import tune  # noqa: PLC0415

    goal = _goal(wanted, server.rate("--rate", rate))
    limits, must = server.limits(cpus, memory), server.conditions(slo)
    budget_s = server.seconds("--budget", budget)
    spec = tune.TuneSpec(
        apps.served_spec(context), tuple(stack or ()), goal, rate or 0.0, must, limits, budget_s, wait
    )
    found = tune.tune(spec, ToldTuning())
    print(json.dumps(recommendation.document(found)) if as_json else "\n".join(recommendation.lines(found)))
    ending = found.tuned.ending
    sys.exit({TuneEnding.SETTLED: 0, TuneEnding.NEVER: FAILED}.get(ending, CANNOT_TELL))


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
