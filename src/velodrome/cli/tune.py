"""`velodrome tune`: which stack with which settings to deploy for one service, within limits."""

import json
import sys
from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Annotated

import typer

from velodrome.cli import _app_options as app_options
from velodrome.cli import _app_options as asked_options
from velodrome.cli import _app_options as needless
from velodrome.cli import _app_options as trusting
from velodrome.cli import _server_options as serving
from velodrome.cli._app_options import OF_APPS, AppName, Choice, RecipeName, Served, served, tell_unread
from velodrome.cli._telling import CANNOT_TELL, FAILED, ToldTuning
from velodrome.guest import catalog
from velodrome.guest.stack import Stack
from velodrome.judge.search.holding import Demands
from velodrome.model.errors import UnknownNameError, UsageError
from velodrome.model.trial import Contestant
from velodrome.model.tuning import Goal, TuneEnding
from velodrome.report import recommendation
from velodrome.usecases import apps, tune
from velodrome.usecases.tune import Asked

NAME = "tune"
DEPLOYED = ("wsgi", "asgi")
"""Interfaces by which a recipe is tuned, unless stacks are named: apps are written to these."""


def command(
    context: typer.Context,
    app: AppName = "",
    recipe: RecipeName = "",
    request: asked_options.Lines = None,
    requests: asked_options.File = None,
    access_log: asked_options.AccessLog = None,
    openapi: asked_options.OpenApi = None,
    methods: asked_options.Methods = "",
    trust: trusting.TrustGiven = False,
    header: app_options.Header = None,
    header_file: app_options.HeaderFile = None,
    slo: serving.Slo = None,
    rate: Annotated[
        float | None, typer.Option("-R", "--rate", help="Requests per second to carry, with the least CPU.")
    ] = None,
    wanted: Annotated[
        Goal | None, typer.Option("--for", help="What is wanted: capacity; with --rate cpu or memory.")
    ] = None,
    stack: Annotated[
        list[str] | None, typer.Option(help="Only these stacks, * and ? allowed, or ./mine.py; repeatable.")
    ] = None,
    cpus: serving.Cpus = None,
    memory: serving.Memory = "",
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
    budget: Annotated[str, typer.Option(help="Time to measure in.")] = "10m",
    wait: serving.Wait = False,
    as_json: serving.AsJson = False,
) -> None:
    """Search stack, workers, threads and loop for the most capacity at the SLO, or the least that carries a rate."""
    goal = _goal(wanted, serving.rate("--rate", rate))
    limits = serving.limits(cpus, memory)
    demands = Demands(must=serving.conditions(slo))
    budget_s = serving.seconds("--budget", budget)
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
    with served(Choice(app, recipe, given, needless.given(context, OF_APPS)), extra) as one:
        stacks = _chosen(one, names)
        tell_unread((one.app,), stacks)
        trial = one.trial(NAME, Contestant(""), limits)
        asked = Asked(trial, stacks, goal, demands, rate or 0.0, budget_s)
        found = tune.tune(asked, one.lab, ToldTuning(), None if wait else 0.0)
    print(json.dumps(recommendation.document(found)) if as_json else "\n".join(recommendation.lines(found)))
    ending = found.tuned.ending
    sys.exit({TuneEnding.SETTLED: 0, TuneEnding.NEVER: FAILED}.get(ending, CANNOT_TELL))


def _goal(wanted: Goal | None, rate: float | None) -> Goal:
    goal = wanted or (Goal.CPU if rate else Goal.CAPACITY)
    if goal is Goal.CAPACITY and rate:
        raise UsageError(
            "--for capacity searches the rate: leave --rate out, or say --for cpu or --for memory"
        )
    if goal is not Goal.CAPACITY and not rate:
        raise UsageError(f"--for {goal.value} needs the rate that is to be carried: --rate 300")
    return goal


def _chosen(one: Served, names: Sequence[str]) -> tuple[Stack, ...]:
    """Return the stacks that are tried. Raises UnknownNameError, NoStackFitsError, UsageError."""
    every = one.lab.stacks
    for name in names:
        if not any(fnmatchcase(each, name) for each in every):
            raise UnknownNameError("stack", name, tuple(every))
    named = [each for each in every if any(fnmatchcase(each, name) for name in names)]
    if one.app is not None:
        able_names = apps.stacks_for(one.app, one.lab)
        fits = [each for each in able_names if each in named or not names]
        return tuple(every[each] for each in fits or apps.stacks_for(one.app, one.lab, named))
    stacks = [every[each] for each in named] or [*apps.servers_of(tuple(every.values()), DEPLOYED)]
    able = tuple(each for each in stacks if catalog.serves(each, one.recipe) is None)
    if not able:
        why = catalog.serves(stacks[0], one.recipe)
        raise UsageError(f"none of these stacks can serve {one.recipe.name}: {why}")
    return able


def register(app: typer.Typer) -> None:
    """Add this command to the command line."""
    app.command(NAME)(command)
