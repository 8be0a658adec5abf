"""The options that say what is served, by whom and within which limits.

Of `velodrome capacity` and `tune`; `compare` and `diff` have some of them.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

import typer

from velodrome.guest import catalog
from velodrome.guest.stack import Stack
from velodrome.model import amounts
from velodrome.model.condition import Condition, read
from velodrome.model.errors import BadOptionError, UnknownNameError
from velodrome.model.load import Limits, Link
from velodrome.model.trial import Contestant
from velodrome.plan import surroundings
from velodrome.usecases import apps
from velodrome.usecases.terms import Knobs

Slo = Annotated[
    list[str] | None,
    typer.Option("--slo", help="What must hold: 'p99 < 200ms and errors < 0.1%'; repeatable."),
]
Workers = Annotated[int | None, typer.Option(help="Worker processes.")]
Threads = Annotated[int | None, typer.Option(help="Threads of each worker.")]
Loop = Annotated[str | None, typer.Option(help="Event loop: uvloop, asyncio.")]
Knob = Annotated[
    list[str] | None, typer.Option(help="Another setting of the stack: backlog=512; repeatable.")
]
Cpus = Annotated[int | None, typer.Option(help="CPUs of the server (what placement gives it).")]
Memory = Annotated[str, typer.Option(help="Memory of the server: 512MB, 1g.")]
Wait = Annotated[bool, typer.Option("--wait", help="Wait while another velodrome measures.")]
AsJson = Annotated[bool, typer.Option("--json", help="One JSON document on standard output.")]


@dataclass(frozen=True)
class Server:
    """The stack that `--stack` names, among all there are."""

    name: str
    stacks: Mapping[str, Stack]
    extra: tuple[str, ...] = ()
    """Its file, where it does not ship."""

    def contestant(self, knobs: Knobs) -> Contestant:
        """Return it with its knobs set. Raises UnknownKnobError, BadOptionError."""
        return Contestant(self.name, knobs.of(self.stacks[self.name]))


def server(name: str) -> Server:
    """Return the stack of that name, or the one in the file `./mine.py`. Raises UnknownNameError, BrokenPluginError."""
    (found,), extra = apps.named((name,))
    stacks = catalog.stacks(extra)
    if found not in stacks:
        raise UnknownNameError("stack", found, tuple(stacks))
    return Server(found, stacks, extra)


def conditions(texts: Sequence[str] | None) -> tuple[Condition, ...]:
    """Return what must hold. Raises ConditionError, UnknownLoadMetricError."""
    return tuple(map(read, texts or ()))


def limits(cpus: int | None, memory: str = "") -> Limits:
    """Return the limits of the server. Raises BadOptionError."""
    if cpus is not None and cpus < 1:
        raise BadOptionError("--cpus", str(cpus), "at least 1 is needed")
    try:
        return Limits.of(cpus, memory)
    except ValueError as error:
        raise BadOptionError("--memory", memory, str(error)) from error


def rate(option: str, value: float | None) -> float | None:
    """Return requests a second; None: not given. Raises BadOptionError."""
    if value is not None and not 0 < value < math.inf:
        raise BadOptionError(option, f"{value:g}", "give requests a second, above 0")
    return value


def seconds(option: str, text: str) -> float:
    """Return a span of time. Raises BadOptionError."""
    try:
        return amounts.seconds(text)
    except ValueError as error:
        raise BadOptionError(option, text, str(error)) from error


# --- The options that say what each server carries, of `velodrome compare` and `velodrome diff`; some of `capacity`.


Connections = Annotated[int, typer.Option("-c", "--connections", min=1, help="Of the closed loop.")]
Rate = Annotated[float | None, typer.Option(help="Requests a second of an open loop beside it.")]
Length = Annotated[str, typer.Option("-z", "--duration", help="Of each measured span.")]
Between = Annotated[str, typer.Option("--link", help="Network between: rtt=160ms,rate=100mbit,loss=1%.")]


def between(text: str) -> Link | None:
    """Return the link of `--link`; None: it was not given. Raises BadOptionError."""
    try:
        return surroundings.read_link(text) if text else None
    except ValueError as error:
        raise BadOptionError("--link", text, str(error)) from error
