"""`velodrome doctor`: experiments that prove what is wrong with an app on a server."""

import json
import sys
from collections.abc import Container
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from velodrome.cli import _app_options as apps
from velodrome.cli import _server_options as server
from velodrome.cli._load_outputs import check_paths
from velodrome.cli._stderr import CANNOT_TELL, FAILED, tell
from velodrome.cli.main import heavy

if TYPE_CHECKING:
    from velodrome.model.diagnosis import Examination

NAME = "doctor"
ANY = "any"
"""Of `--fail-on`: whichever cause."""


@apps.describes_an_app
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
    workers: server.Workers = None,
    threads: server.Threads = None,
    loop: server.Loop = None,
    knob: server.Knob = None,
    cpus: server.Cpus = None,
    memory: server.Memory = "",
    link: server.Between = "",
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
        server.of_results(
            "--fail-on",
            help="Exit with 1 if this fault, or any, is a cause; with 4 if that was not tried, or of one that is named "
            "cannot be told; repeatable.",
        ),
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
    agents: Annotated[
        str,
        server.of_results(
            "--agents",
            help="Have an agent of a coordinator (tls://host:8786), or of N of this machine, examine it on its host.",
        ),
    ] = "",
    keys: server.Keys = "",
    send: server.Send = False,
    wait: server.Wait = False,
    as_json: server.AsJson = False,
    **_of_app: Any,
) -> None:
    """Prove what is wrong with an app on a server, by experiments in which one thing changes."""
    with heavy:
        from velodrome.model.errors import BadOptionError  # noqa: PLC0415
        from velodrome.report import diagnoses, writing  # noqa: PLC0415
        from velodrome.usecases import diagnose  # noqa: PLC0415
        from velodrome.usecases.terms import Knobs  # noqa: PLC0415

    looked_for = diagnose.choose_faults(tuple(only or ()), tuple(skip or ()))
    if show:
        if as_json:
            print(json.dumps(diagnoses.listing_document(looked_for.values())))
        else:
            print("\n".join(diagnoses.listing(looked_for.values())))
        return
    check_paths([("--out", out), ("--junit", junit), ("--html", html)])
    failing = tuple(fail_on or ())
    if named := tuple(name for name in failing if name != ANY):
        diagnose.choose_faults(named, ())  # refuses what is no fault
    if ANY not in failing and (away := [name for name in named if name not in looked_for]):
        raise BadOptionError("--fail-on", away[0], "it is not looked for, because of --only or --skip")
    spec = diagnose.DoctorSpec(
        apps.served_spec(context),
        stack,
        Knobs(workers, threads, loop, tuple(knob or ())),
        server.limits(cpus, memory),
        server.between(link),
        server.budget(budget),
        tuple(only or ()),
        tuple(skip or ()),
        wait,
        server.conditions(slo, of_app=bool(app)),
        agents=server.agents(agents, keys),
        keys=Path(keys) if keys else None,
        send=send,
    )
    found = diagnose.diagnose(spec, diagnose.Sentences(tell))
    if as_json:
        print(json.dumps(found.document()))
    else:
        print("\n".join(diagnoses.lines(found)))
    if out is not None:
        diagnoses.write(found, out)
    if junit is not None:
        writing.write(junit, diagnoses.junit_text(found))
    if html is not None:
        from velodrome.report import diagnosis_page  # noqa: PLC0415 - templates are slow to import

        diagnosis_page.write(html, found)
    code, why = decide(found, failing)
    if why:
        tell(f"--fail-on cannot tell: {why}")
    sys.exit(code)


def decide(found: "Examination", failing: Container[str]) -> tuple[int, str]:
    """Return the exit code that `--fail-on` asks for, and why it cannot be told whether a fault is a cause."""
    if any(ANY in failing or cause.id in failing for cause in found.causes):
        return FAILED, ""
    if left := [untried.id for untried in found.untried if ANY in failing or untried.id in failing]:
        return CANNOT_TELL, f"there was no time to try {', '.join(left)}"
    # Of all faults, some can nearly never be told of some app; of those that are named, an answer is expected.
    unsure = [diagnosis.id for diagnosis in found.undecided if diagnosis.id in failing]
    return (CANNOT_TELL, f"the experiments do not decide on {', '.join(unsure)}") if unsure else (0, "")


def register(app: typer.Typer) -> None:
    """Add this command to the command line."""
    app.command(NAME)(command)
