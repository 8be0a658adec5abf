"""Numbers that callers give as the terms of what is measured: a rate, and how many."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from velodrome.guest.stack import KnobValue, Stack
from velodrome.model.errors import BadOptionError, UnknownKnobError, UsageError


def refuse_rate(rate: float | None) -> None:
    """Raise UsageError for what is no rate; None was not given."""
    if rate is not None and not 0 < rate < math.inf:
        raise UsageError(f"rate={rate:g} is not a rate; give requests a second above 0")


def refuse_count(name: str, number: int | None) -> None:
    """Raise UsageError for fewer than one; None was not given."""
    if number is not None and number < 1:
        raise UsageError(f"{name}={number}: at least 1 is needed")


def read(stack: Stack, given: Mapping[str, KnobValue]) -> dict[str, KnobValue]:
    """Return settings by name as a stack takes them, those that differ from its defaults.

    Raises UnknownKnobError for one that it does not have, BadOptionError for a value that it cannot have.
    """
    found = {name: _value(stack, name, value) for name, value in given.items()}
    return {name: value for name, value in found.items() if value != stack.knobs[name]}


def of_words(stack: Stack, words: Sequence[str]) -> dict[str, KnobValue]:
    """Return settings told as `name=value`; of one that is told twice the last counts. Raises what `read` does."""
    return read(stack, _pairs(stack, words))


@dataclass(frozen=True)
class Knobs:
    """Settings whichever stack is meant; None: its default."""

    workers: int | None = None
    threads: int | None = None
    loop: str | None = None
    others: tuple[str, ...] = ()
    """`name=value` each."""

    def of(self, stack: Stack) -> dict[str, KnobValue]:
        """Return those that differ from the stack's defaults. Raises UnknownKnobError, BadOptionError."""
        named = {"workers": self.workers, "threads": self.threads, "loop": self.loop}
        given = {name: value for name, value in named.items() if value is not None}
        return read(stack, {**given, **_pairs(stack, self.others)})


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
        text = str(value)
        if isinstance(value, bool) or not (text.isascii() and text.isdecimal()) or int(text) < 1:
            raise BadOptionError(name, text, "give a whole number from 1 on")
        return int(text)
    choices = stack.choices.get(name, ())
    if choices and value not in choices:
        raise BadOptionError(name, str(value), f"{stack.name} has {', '.join(choices)}")
    return str(value)
