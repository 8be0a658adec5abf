"""The options that say what is served, by whom and within which limits.

Of `velodrome capacity` and `tune`; `compare` and `diff` have some of them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

import typer

from velodrome.guest import catalog
from velodrome.guest.stack import KnobValue, Stack
from velodrome.model import duration
from velodrome.model.condition import Condition
from velodrome.model.condition_text import read
from velodrome.model.errors import (
    BadOptionError,
    BrokenPluginError,
    UnknownKnobError,
    UnknownNameError,
    UsageError,
)
from velodrome.model.limits import Limits
from velodrome.model.trial import Contestant

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
class Knobs:
    """What the command line sets of a stack's knobs; None: its default."""

    workers: int | None = None
    threads: int | None = None
    loop: str | None = None
    others: tuple[str, ...] = ()
    """`name=value` each."""

    def of(self, stack: Stack) -> Mapping[str, KnobValue]:
        """Return those that differ from the stack's defaults. Raises UnknownKnobError, UsageError."""
        given: dict[str, KnobValue] = {
            name: value
            for name, value in (("workers", self.workers), ("threads", self.threads), ("loop", self.loop))
            if value is not None
        }
        for text in self.others:
            name, equals, value = text.partition("=")
            if not equals:
                raise UsageError(f"--knob: '{text}' is no setting; write --knob backlog=512")
            given[name] = value
        read_values = {name: _value(stack, name, value) for name, value in given.items()}
        return {name: value for name, value in read_values.items() if value != stack.knobs[name]}


def _value(stack: Stack, name: str, value: KnobValue) -> KnobValue:
    if name not in stack.knobs:
        raise UnknownKnobError(stack.name, name, tuple(stack.knobs))
    if isinstance(stack.knobs[name], int):
        if not str(value).isdecimal() or int(value) < 1:
            raise BadOptionError(f"--{name}", str(value), "give a whole number from 1 on")
        return int(value)
    choices = stack.choices.get(name, ())
    if choices and value not in choices:
        raise BadOptionError(f"--{name}", str(value), f"{stack.name} has {', '.join(choices)}")
    return value


@dataclass(frozen=True)
class Server:
    """The stack that `--stack` names, among all there are."""

    name: str
    stacks: Mapping[str, Stack]
    extra: tuple[str, ...] = ()
    """Its file, where it does not ship."""

    def contestant(self, knobs: Knobs) -> Contestant:
        """Return it with its knobs set. Raises UnknownKnobError, UsageError."""
        return Contestant(self.name, knobs.of(self.stacks[self.name]))


def server(name: str) -> Server:
    """Return the stack of that name, or the one in the file `./mine.py`. Raises UnknownNameError, BrokenPluginError."""
    if not name.endswith(".py"):
        stacks = catalog.stacks()
        if name not in stacks:
            raise UnknownNameError("stack", name, tuple(stacks))
        return Server(name, stacks)
    entry = next(one for one in catalog.entries(catalog.STACK, (name,)) if one.origin == name)
    if entry.error:
        raise BrokenPluginError("stack", name, entry.error)
    return Server(entry.name, catalog.stacks((name,)), (name,))


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
    if value is not None and not value > 0:
        raise BadOptionError(option, f"{value:g}", "give requests a second, above 0")
    return value


def seconds(option: str, text: str) -> float:
    """Return a span of time. Raises BadOptionError."""
    try:
        return duration.seconds(text)
    except ValueError as error:
        raise BadOptionError(option, text, str(error)) from error
