"""`velodrome capacity`: the highest rate at which an SLO holds, or the knee of a closed loop, of one stack."""

import json
import sys
from dataclasses import dataclass
from typing import Annotated

import typer

from velodrome.cli import _app_options as app_options
from velodrome.cli import _app_options as asked_options
from velodrome.cli import _app_options as needless
from velodrome.cli import _app_options as trusting
from velodrome.cli import _server_options as raced_options
from velodrome.cli import _server_options as serving
from velodrome.cli._app_options import OF_APPS, AppName, Choice, RecipeName, served, tell_unread
from velodrome.cli._telling import ToldCapacity, of_search
from velodrome.judge.search.holding import Demands
from velodrome.model.errors import UsageError
from velodrome.model.search import Knee, RateCapacity
from velodrome.model.trial import Trial
from velodrome.report import searches
from velodrome.run.lab import Lab
from velodrome.usecases import apps, capacity
from velodrome.usecases.bench import SECONDS
from velodrome.usecases.terms import Knobs

NAME = "capacity"


@dataclass(frozen=True)
class Search:
    """What is searched, and how."""

    closed: bool
    demands: Demands
    seconds: float
    """Of each load."""
    wait_s: float | None

    def run(self, trial: Trial, lab: Lab) -> RateCapacity | Knee:
        """Search it. Raises NoServerError, BusyError and what a lab raises."""
        if self.closed:
            return capacity.knee(trial, lab, ToldCapacity(), seconds=self.seconds, wait_s=self.wait_s)
        return capacity.highest(
            trial, lab, self.demands, ToldCapacity(), seconds=self.seconds, wait_s=self.wait_s
        )


def command(
    context: typer.Context,
    stack: Annotated[str, typer.Option(help="Who serves it (`velodrome stacks`), or ./mine.py.")],
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
    closed: Annotated[
        bool, typer.Option("--closed", help="The knee of throughput against connections, with its law.")
    ] = False,
    workers: serving.Workers = None,
    threads: serving.Threads = None,
    loop: serving.Loop = None,
    knob: serving.Knob = None,
    cpus: serving.Cpus = None,
    memory: serving.Memory = "",
    link: raced_options.Between = "",
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
    duration: Annotated[str, typer.Option("-z", "--duration", help="Of each load (3s; --closed 2s).")] = "",
    wait: serving.Wait = False,
    as_json: serving.AsJson = False,
) -> None:
    """Find the highest rate at which the SLO holds, with an interval, or say why there is none."""
    server = serving.server(stack)
    who = server.contestant(Knobs(workers, threads, loop, tuple(knob or ())))
    conditions = serving.conditions(slo)
    if closed and conditions:
        raise UsageError("--closed shows throughput alone: leave --slo out, or leave --closed out")
    limits, between = serving.limits(cpus, memory), raced_options.between(link)
    search = Search(closed, Demands(must=conditions), _length(duration, closed), None if wait else 0.0)
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
    with served(Choice(app, recipe, given, needless.given(context, OF_APPS)), server.extra) as one:
        if one.app is not None:
            apps.stacks_for(one.app, one.lab, (who.stack,))  # refuses one that cannot serve it
            tell_unread((one.app,), (one.lab.stacks[who.stack],))
        found = search.run(one.trial(NAME, who, limits, between), one.lab)
        over = f" · over a link of {between.told}" if between else ""
        title = f"{who.called(server.stacks[who.stack])} · {one.label}{over}"
    if as_json:
        print(json.dumps(searches.document(found, title)))
    else:
        print("\n".join(searches.lines(found, title)))
    sys.exit(of_search(found.ending))


def _length(text: str, closed: bool) -> float:
    if not text:
        return capacity.KNEE_S if closed else SECONDS
    return serving.seconds("-z", text)


def register(app: typer.Typer) -> None:
    """Add this command to the command line."""
    app.command(NAME)(command)
