"""Options that describe a server, the load on it and the network between, and how their texts are read.

Help imports this module, so what carries a command out is imported in functions.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated, Any

import typer

from velodrome.model.load import Arrivals

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from velodrome.model.condition import Condition
    from velodrome.model.load import Limits, Link
    from velodrome.run.racing.plan import RunPlan

SERVER, LOAD, RESULTS = "The server", "Load", "Run and results"
"""Groups of options in the help."""


def of_server(*names: str, **more: Any) -> Any:
    """Return an option of the server."""
    return typer.Option(*names, rich_help_panel=SERVER, **more)


def of_load(*names: str, **more: Any) -> Any:
    """Return an option of the load."""
    return typer.Option(*names, rich_help_panel=LOAD, **more)


def of_results(*names: str, **more: Any) -> Any:
    """Return an option on how a command runs, and what comes out of it."""
    return typer.Option(*names, rich_help_panel=RESULTS, **more)


Workers = Annotated[int | None, of_server(help="Worker processes.")]
Threads = Annotated[int | None, of_server(help="Threads of each worker.")]
Loop = Annotated[str | None, of_server(help="Event loop: uvloop, asyncio.")]
Knob = Annotated[list[str] | None, of_server(help="Another setting of the stack: backlog=512; repeatable.")]
Cpus = Annotated[
    int | None,
    of_server(
        help="Number of CPUs that the answer is for, also more than this machine has (those that the server gets here)."
    ),
]
Memory = Annotated[str, of_server(help="Memory limit of the server: 512MB, 1g.")]
Slo = Annotated[
    list[str] | None,
    of_load("--slo", help="Condition that must hold: 'p99 < 200ms and errors < 0.1%'; repeatable."),
]
Connections = Annotated[int, of_load("-c", "--connections", min=1, help="Connections of the closed loop.")]
Rate = Annotated[
    float | None, of_load(help="Requests per second of an additional open loop (the peak of an access log).")
]
OfUsers = Annotated[
    Arrivals,
    of_load(
        "--arrivals",
        help="Arrivals of the requests in an open loop: evenly spaced, or at random as from independent users.",
    ),
]
Length = Annotated[str, of_load("-z", "--duration", help="Duration of each measurement.")]
Between = Annotated[
    str,
    of_load("--link", help="Emulate a network between client and server: rtt=160ms,rate=100mbit,loss=1%."),
]
Wait = Annotated[bool, of_results("--wait", help="Wait while another velodrome measures.")]
Paste = Annotated[bool, of_results("--paste", help="Print the lines to deploy even if nothing is settled.")]
DryRun = Annotated[
    bool,
    of_results(
        "--dry-run", help="Print what would be started, on which CPUs and for how long; start nothing."
    ),
]
Agents = Annotated[
    str,
    of_results(
        help="Have the agents of a coordinator (tls://host:8786), or N of this machine, measure: whole blocks each."
    ),
]
Keys = Annotated[
    str, of_results(metavar="FOLDER", help="The cluster's certificates, of velodrome cluster keys.")
]
Send = Annotated[
    bool,
    of_results("--send", help="Send the app's folder to agents: what git does not ignore, at most 64 MB."),
]
ServerOn = Annotated[
    str,
    of_results(
        metavar="HOST",
        help="Of the agents, the host that serves; others load it (the one with the role server).",
    ),
]
LoadFrom = Annotated[
    str, of_results(metavar="HOST,…", help="Hosts that load it (other agents with the role load).")
]
ThirdPartyOn = Annotated[
    str, of_results(metavar="HOST", help="Host of simulated third parties (that with the role third-party).")
]
AsJson = Annotated[bool, of_results("--json", help="Print one JSON document.")]


def names(text: str) -> tuple[str, ...]:
    """Return the hosts of `a,b`."""
    return tuple(dict.fromkeys(one.strip() for one in text.split(",") if one.strip()))


def show_plan(plan: RunPlan, *, as_json: bool = False) -> None:
    """Print a run plan on standard output."""
    if as_json:
        import json  # noqa: PLC0415

        typer.echo(json.dumps(plan.document()))
        return
    from velodrome.report.typeset import LINES, visible  # noqa: PLC0415

    typer.echo(visible("\n".join(plan.lines()), LINES))


def between(text: str) -> Link | None:
    """Return the link of `--link`; None: it was not given. Raises BadOptionError."""
    from velodrome.plan import surroundings  # noqa: PLC0415

    try:
        return surroundings.read_link(text) if text else None
    except ValueError as error:
        raise _bad("--link", text, error) from error


def conditions(texts: Sequence[str] | None, *, of_app: bool) -> tuple[Condition, ...]:
    """Return what must hold. Raises ConditionError, SloError, UnknownLoadMetricError, NeverMeasuredError."""
    from velodrome.model.condition import read_slo  # noqa: PLC0415

    return tuple(read_slo(text, of_app=of_app) for text in texts or ())


def limits(cpus: int | None, memory: str = "") -> Limits:
    """Return the limits of the server. Raises BadOptionError."""
    from velodrome.model.load import Limits  # noqa: PLC0415

    if cpus is not None and cpus < 1:
        raise _bad("--cpus", str(cpus), "at least 1 is needed")
    try:
        return Limits.of(cpus, memory)
    except ValueError as error:
        raise _bad("--memory", memory, error) from error


def rate(option: str, value: float | None) -> float | None:
    """Return requests a second; None: not given. Raises BadOptionError."""
    if value is not None and not 0 < value < math.inf:
        raise _bad(option, f"{value:g}", "give requests a second, above 0")
    return value


def seconds(option: str, text: str) -> float:
    """Return a duration. Raises BadOptionError."""
    from velodrome.model import amounts  # noqa: PLC0415

    try:
        return amounts.seconds(text)
    except ValueError as error:
        raise _bad(option, text, error) from error


def agents(text: str, keys: str, *, send: bool = False, revision: str = "") -> str:
    """Return whose agents measure.

    Raises ClusterAddressError for a number of them that one machine does not carry, WithoutAgentsError for what only
    agents need where there are none.
    """
    of_agents = {"--keys": keys, "--send": send, "--revision": revision}
    if not text and (needless := [option for option, value in of_agents.items() if value]):
        from velodrome.model.errors import WithoutAgentsError  # noqa: PLC0415

        raise WithoutAgentsError(needless)
    if text:
        from velodrome.run.cluster.address import count_local  # noqa: PLC0415

        count_local(text)
    return text


def check_folder(where: Path | None, *, resume: bool, option: str = "--out") -> None:
    """See that a run can begin in a folder, or on resume go on. Raises BadOptionError, ResultsExistError."""
    from velodrome.usecases import race  # noqa: PLC0415

    race.refuse_folder(option, where, resume)


def check_either(out: Path | None, resume: Path | None) -> None:
    """See that a search can begin in the folder of `--out`, or go on in that of `--resume`.

    Raises UsageError for both, and as `check_folder` does.
    """
    if out is not None and resume is not None:
        from velodrome.model.errors import UsageError  # noqa: PLC0415

        raise UsageError("--resume names the folder that is gone on with: leave --out out")
    check_folder(out, resume=False)
    check_folder(resume, resume=True, option="--resume")


def budget(text: str) -> float:
    """Return the seconds of `--budget`. Raises BadOptionError."""
    found = seconds("--budget", text)
    if found <= 0:
        raise _bad("--budget", text, "it leaves no time to measure; give more than 0 s")
    return found


def _bad(option: str, value: str, why: object) -> Exception:
    from velodrome.model.errors import BadOptionError  # noqa: PLC0415

    return BadOptionError(option, value, str(why))
