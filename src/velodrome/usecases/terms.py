"""What callers write of a measurement, and what of it makes no sense: rates, counts, the terms of a race, settings.

    Terms(rate=300, seconds=5.0)
    read(stack, {"workers": "4", "loop": "asyncio"})    -> {"workers": 4, "loop": "asyncio"}
    Knobs(workers=4, others=("backlog=512",)).of(stack)

Little is imported: the help of commands shows what stands here.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import get_args

from velodrome.guest.stack import KnobValue, Stack
from velodrome.model.errors import BadOptionError, UnknownKnobError, UsageError
from velodrome.model.load import INDEPENDENT, Arrivals, Closed, Limits, Link, Load, Open

LEAST_S = 0.5
"""Of a measured span."""


def refuse_rate(rate: float | None) -> None:
    """Raise UsageError for what is no rate; None was not given."""
    if rate is not None and not 0 < rate < math.inf:
        raise UsageError(f"rate={rate:g} is not a rate; give requests a second above 0")


def refuse_count(name: str, number: int | None) -> None:
    """Raise UsageError for a count below 1; None was not given."""
    if number is not None and number < 1:
        raise UsageError(f"{name}={number}: at least 1 is needed")


def refuse_span(seconds: float) -> None:
    """Raise UsageError for a measured span in which nothing can be seen."""
    if not LEAST_S <= seconds < math.inf:
        raise UsageError(f"a measured span of {seconds:g} s is too short; measure for {LEAST_S:g} s at least")


def refuse_arrivals(name: str) -> None:
    """Raise UsageError for what are no arrivals."""
    if name not in get_args(Arrivals):
        raise UsageError(f"arrivals={name!r}: there are {' and '.join(get_args(Arrivals))}")


BLOCKS = 3
"""Of a comparison, unless given."""


@dataclass(frozen=True)
class Terms:
    """Under which conditions apps are compared: plain data. Raises UsageError for what makes no sense."""

    connections: int = 64
    """Of the closed loop, which ranks."""
    rate: float | None = None
    """Of an open loop beside it, which shows what users feel at that rate; None: `compare` finds a rate, others run
    none. """
    limits: Limits = field(default_factory=Limits)
    blocks: int | None = BLOCKS
    """None: blocks go where the answer is open, in the time that `BLOCKS` of all take, or `budget_s`."""
    seconds: float = 5.0
    """Of each measured span."""
    warmup_s: float = 1.0
    seed: int = 4711
    link: Link | None = None
    stacks: tuple[str, ...] = ()
    """Names of those that race; empty: all that can serve it."""
    workers: int | None = None
    """Of each stack; None: one for each CPU of the server."""
    arrivals: Arrivals = INDEPENDENT
    """Of the open loop."""
    budget_s: float | None = None
    """How long it may take; None: as long as its blocks."""

    def __post_init__(self) -> None:
        refuse_span(self.seconds)
        refuse_rate(self.rate)
        refuse_count("connections", self.connections)
        refuse_count("blocks", self.blocks)
        refuse_arrivals(self.arrivals)

    @property
    def loads(self) -> tuple[Load, ...]:
        """What each server carries, in order."""
        closed = Load(Closed(self.connections), self.seconds, self.warmup_s)
        if self.rate is None:
            return (closed,)
        return closed, Load(Open(self.rate, self.arrivals), self.seconds, self.warmup_s)


def read(stack: Stack, given: Mapping[str, KnobValue]) -> dict[str, KnobValue]:
    """Return settings by name as a stack takes them, those that differ from its defaults.

    Raises UnknownKnobError for a setting that it does not have, BadOptionError for a value that it cannot have.
    """
    found = {name: _value(stack, name, value) for name, value in given.items()}
    return {name: value for name, value in found.items() if value != stack.knobs[name]}


def of_words(stack: Stack, words: Sequence[str]) -> dict[str, KnobValue]:
    """Return settings given as `name=value`; of a setting that is given twice the last counts. Raises what `read`
    does."""
    return read(stack, _pairs(stack, words))


@dataclass(frozen=True)
class Knobs:
    """Settings whichever stack is meant; None: its default."""

    workers: int | None = None
    threads: int | None = None
    loop: str | None = None
    others: tuple[str, ...] = ()
    """`name=value` each."""
    named: Mapping[str, KnobValue] = field(default_factory=dict)
    """Any of them, by name."""

    def of(self, stack: Stack) -> dict[str, KnobValue]:
        """Return those that differ from the stack's defaults.

        Raises UnknownKnobError, and BadOptionError also for one that both its own option and `others` set.
        """
        # One worker is what a server without such a setting has.
        workers = self.workers if self.workers != 1 or "workers" in stack.knobs else None
        named = {"workers": workers, "threads": self.threads, "loop": self.loop}
        given = {name: value for name, value in named.items() if value is not None}
        others = _pairs(stack, self.others)
        for name in others.keys() & given.keys():
            raise BadOptionError(
                "--knob",
                f"{name}={others[name]}",
                f"--{name} {given[name]} sets it too; give only one of them",
            )
        return read(stack, {**given, **others, **self.named})


DEFAULT_KNOBS = Knobs()


def _pairs(stack: Stack, words: Sequence[str]) -> dict[str, KnobValue]:
    found: dict[str, KnobValue] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or not value:
            raise UnknownKnobError(stack.name, word, tuple(stack.knobs))
        found[name] = value
    return found


def _value(stack: Stack, name: str, value: KnobValue) -> KnobValue:
    if name not in stack.knobs:
        raise UnknownKnobError(stack.name, name, tuple(stack.knobs))
    if isinstance(stack.knobs[name], int):
        text, least = str(value), stack.least(name)
        if isinstance(value, bool) or not (text.isascii() and text.isdecimal()) or int(text) < least:
            off = "" if least else "; 0 is off"
            raise BadOptionError(name, text, f"give a whole number from {least} on{off}")
        return int(text)
    choices = stack.choices.get(name, ())
    if choices and value not in choices:
        raise BadOptionError(name, str(value), f"{stack.name} has {', '.join(choices)}")
    return str(value)
