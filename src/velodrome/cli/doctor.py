"""`velodrome doctor`: experiments that prove what is wrong with an app on a server."""

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from velodrome.cli import _app_options as apps
from velodrome.cli import _server_options as server
from velodrome.cli._load_outputs import check_paths
from velodrome.cli._stderr import FAILED
from velodrome.cli.main import heavy

NAME = "doctor"
ANY = "any"
"""Of `--fail-on`: whichever cause."""


def command(
    context: typer.Context,
    app: apps.AppName = "",
    stack: Annotated[
        str,
        server.of_server(
            "--stack",
            help="Stack to run it on (see `velodrome stacks`), or yours in ./mine.py; a common one.",
        ),
    ] = "",
    recipe: apps.RecipeName = "",
    request: apps.Lines = None,
    requests: apps.File = None,
    access_log: apps.AccessLog = None,
    openapi: apps.OpenApi = None,
    methods: apps.Methods = "",
    trust: apps.TrustGiven = False,
    header: apps.Header = None,
    header_file: apps.HeaderFile = None,
    workers: server.Workers = None,
    threads: server.Threads = None,
    loop: server.Loop = None,
    knob: server.Knob = None,
    cpus: server.Cpus = None,
    memory: server.Memory = "",
    link: server.Between = "",
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
    slo: server.Slo = None,
    budget: Annotated[
        str, server.of_results("--budget", help="No experiment begins that would end later.")
    ] = "5m",
    only: Annotated[
        list[str] | None,
        server.of_results("--only", help="Look for this fault alone (see --list); repeatable."),
    ] = None,
    skip: Annotated[
        list[str] | None, server.of_results("--skip", help="Do not look for this fault; repeatable.")
    ] = None,
    fail_on: Annotated[
        list[str] | None,
        server.of_results("--fail-on", help="Exit with 1 if this fault, or any, is a cause; repeatable."),
    ] = None,
    out: Annotated[
        Path | None,
        server.of_results(
            "--out", help="Write the document of --json to this file, both arms of each experiment in it."
        ),
    ] = None,
    junit: Annotated[
        Path | None,
        server.of_results("--junit", help="Write a JUnit report to this file: one test case a fault."),
    ] = None,
    html: Annotated[
        Path | None,
        server.of_results("--html", help="Write a page with both arms and a timeline to this file."),
    ] = None,
    show: Annotated[
        bool, server.of_results("--list", help="Explain every fault it looks for, and stop.")
    ] = False,
    wait: server.Wait = False,
    as_json: server.AsJson = False,
) -> None:
    """Prove what is wrong with an app on a server, by experiments in which one thing changes."""
    with heavy:
        from velodrome.cli._shown import DoctorLines  # noqa: PLC0415
        from velodrome.report import diagnoses, diagnosis_page  # noqa: PLC0415
        from velodrome.report.json import save  # noqa: PLC0415
        from velodrome.usecases import diagnose  # noqa: PLC0415
        from velodrome.usecases.terms import Knobs  # noqa: PLC0415

    if show:
        every = diagnose.chosen(tuple(only or ()), tuple(skip or ()))
        print("\n".join(diagnoses.listing(every.values())))
        return
    outputs = {"--out": out, "--junit": junit, "--html": html}
    check_paths({option: str(path) for option, path in outputs.items() if path is not None})
    failing = tuple(fail_on or ())
    diagnose.chosen(tuple(fault for fault in failing if fault != ANY), ())
    spec = diagnose.DoctorSpec(
        apps.served_spec(context),
        stack,
        Knobs(workers, threads, loop, tuple(knob or ())),
        server.limits(cpus, memory),
        server.between(link),
        server.seconds("--budget", budget),
        tuple(only or ()),
        tuple(skip or ()),
        wait,
        server.conditions(slo),
    )
    found = diagnose.diagnose(spec, DoctorLines())
    if as_json:
        print(json.dumps(found.document()))
    else:
        print("\n".join(diagnoses.lines(found)))
    if out is not None:
        diagnoses.write(found, out)
    if junit is not None:
        save(junit, diagnoses.junit_text(found))
    if html is not None:
        diagnosis_page.write(html, found)
    if any(ANY in failing or cause.id in failing for cause in found.causes):
        sys.exit(FAILED)


def register(app: typer.Typer) -> None:
    """Add this command to the command line."""
    app.command(NAME)(command)
