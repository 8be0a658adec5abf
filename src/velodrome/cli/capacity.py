"""`velodrome capacity`: the highest rate at which an SLO holds, or the knee of a closed loop, of one stack."""

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from velodrome.cli import _app_options as apps
from velodrome.cli import _server_options as server
from velodrome.cli._stderr import of_search
from velodrome.cli.main import heavy
from velodrome.model.load import INDEPENDENT

NAME = "capacity"


@apps.describes_an_app
def command(
    context: typer.Context,
    stack: Annotated[
        str, server.of_server(help="Stack to run (see `velodrome stacks`), or yours in ./mine.py.")
    ],
    app: apps.AppName = "",
    recipe: apps.RecipeName = "",
    slo: server.Slo = None,
    arrivals: server.OfUsers = INDEPENDENT,
    closed: Annotated[
        bool,
        server.of_load(
            "--closed",
            help="Find the number of connections at which throughput stops rising, and fit a scaling law.",
        ),
    ] = False,
    workers: server.Workers = None,
    threads: server.Threads = None,
    loop: server.Loop = None,
    knob: server.Knob = None,
    cpus: server.Cpus = None,
    memory: server.Memory = "",
    link: server.Between = "",
    duration: Annotated[
        str, server.of_load("-z", "--duration", help="Duration of each load (3s; --closed 2s).")
    ] = "",
    budget: Annotated[
        str, server.of_results(help="Time limit (as long as it takes); not with --closed.")
    ] = "",
    out: Annotated[
        Path | None, server.of_results(help="Folder for all measurements (runs/<date>-capacity-…).")
    ] = None,
    resume: Annotated[
        Path | None,
        server.of_results(
            help="Go on with an interrupted search, of the same app and options, in its folder."
        ),
    ] = None,
    wait: server.Wait = False,
    as_json: server.AsJson = False,
    dry_run: server.DryRun = False,
    **_of_app: Any,
) -> None:
    """Find the highest rate at which the SLO holds, with an interval, or say why there is none."""
    with heavy:
        from velodrome.cli._shown import CapacityLines  # noqa: PLC0415
        from velodrome.model.errors import UsageError  # noqa: PLC0415
        from velodrome.report import searches  # noqa: PLC0415
        from velodrome.usecases import capacity  # noqa: PLC0415
        from velodrome.usecases.events import Events  # noqa: PLC0415
        from velodrome.usecases.terms import Knobs  # noqa: PLC0415

    knobs = Knobs(workers, threads, loop, tuple(knob or ()))
    must = server.conditions(slo, of_app=bool(app))
    if closed and must:
        raise UsageError("--closed shows throughput alone: leave --slo out, or leave --closed out")
    if closed and budget:
        raise UsageError("--closed has no budget: leave --budget out, or leave --closed out")
    server.check_either(out, resume)
    limits, link_between = server.limits(cpus, memory), server.between(link)
    length = server.seconds("-z", duration) if duration else None
    spec = capacity.CapacitySpec(
        apps.served_spec(context),
        stack,
        knobs,
        must,
        closed,
        limits,
        link_between,
        length,
        wait,
        arrivals=arrivals,
        out=resume or out,
        resume=resume is not None,
        budget_s=server.budget(budget) if budget else None,
    )
    if dry_run:
        server.show_plan(capacity.dry_run(spec, Events()), as_json=as_json)
        return
    done = capacity.capacity(spec, CapacityLines())
    if as_json:
        print(json.dumps(searches.document(done.found, done.title)))
    else:
        print("\n".join(searches.lines(done.found, done.title)))
    sys.exit(of_search(done.found.ending))


def register(app: typer.Typer) -> None:
    """Add this command to the command line."""
    app.command(NAME)(command)
