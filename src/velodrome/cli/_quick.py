"""Reads the command line of a command where nothing is wrong with it, without the parser that takes long to import.

Whatever is not plainly right is not read here: then typer is asked, which says what is wrong in its own words.
"""

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import NoneType
from typing import Any, Literal, get_args, get_origin

from velodrome.cli._declared import Argument, parted


@dataclass(frozen=True)
class _Reader:
    """How the value of a parameter is read; `flag` is the value of an option that takes none."""

    parameter: str
    read: Callable[[str], object] = str
    many: bool = False
    flag: bool | None = None


def read(command: Callable[..., None], words: Sequence[str]) -> dict[str, Any] | None:
    """Return what to call the command with; None: ask typer."""
    try:
        return _read(*_readers(command), list(words))
    except ValueError:
        return None


def _read(argument: _Reader, options: Mapping[str, _Reader], rest: list[str]) -> dict[str, Any]:
    """Read all words. Raises ValueError for whatever is not plainly right."""
    given: dict[str, Any] = {}
    while rest:
        word = rest.pop(0)
        name, value = _split(word)
        reader = options.get(name) if word.startswith("-") else argument
        if reader is None or (reader.parameter in given and not reader.many):
            raise ValueError(word)
        if reader is argument:
            given[reader.parameter] = word
        elif reader.flag is not None:
            if value is not None:
                raise ValueError(word)
            given[reader.parameter] = reader.flag
        else:
            text = value if value is not None else rest.pop(0) if rest else "-"
            # A value like an option may be a value forgotten.
            if text.startswith("-"):
                raise ValueError(word)
            found = reader.read(text)
            given[reader.parameter] = [*given.get(reader.parameter, ()), found] if reader.many else found
    if argument.parameter not in given:
        raise ValueError("no argument")
    return given


def _split(word: str) -> tuple[str, str | None]:
    """Part `--rate=5` and `-c5`."""
    if word.startswith("--"):
        name, equals, value = word.partition("=")
        return name, value if equals else None
    return word[:2], word[2:] or None


def _readers(command: Callable[..., None]) -> tuple[_Reader, dict[str, _Reader]]:
    """Return how the command's argument is read, and its options by their names."""
    argument, options = None, {}
    for parameter in inspect.signature(command).parameters.values():
        kind, declared = parted(parameter.annotation)
        if isinstance(declared, Argument):
            argument = _Reader(parameter.name)
            continue
        usual = "--" + parameter.name.replace("_", "-")
        if kind is bool:
            for name in declared.names or (f"{usual}/{usual.replace('--', '--no-')}",):
                yes, _, no = name.partition("/")
                options[yes] = _Reader(parameter.name, flag=True)
                if no:
                    options[no] = _Reader(parameter.name, flag=False)
            continue
        reader = _reader(parameter.name, kind, declared.min)
        options |= dict.fromkeys(declared.names or (usual,), reader)
    if argument is None:
        raise TypeError(f"{command.__name__} has no argument")
    return argument, options


def _reader(parameter: str, kind: Any, least: int | None) -> _Reader:
    """Return how a value of this type is read: `int | None`, `list[Path] | None`, `Literal[…]` and the like."""
    many = False
    while get_origin(kind) is not Literal and get_args(kind):
        many |= get_origin(kind) is list
        kind = next(one for one in get_args(kind) if one is not NoneType)
    return _Reader(parameter, _one_of(kind, least), many)


def _one_of(kind: Any, least: int | None) -> Callable[[str], object]:
    def whole(text: str) -> int:
        if not (text.isascii() and text.isdecimal()) or int(text) < (least or 0):
            raise ValueError(text)
        return int(text)

    def number(text: str) -> float:
        found = float(text)
        if not math.isfinite(found):
            raise ValueError(text)
        return found

    def named(text: str) -> str:
        if text not in get_args(kind):
            raise ValueError(text)
        return text

    if get_origin(kind) is Literal:
        return named
    readers: dict[Any, Callable[[str], object]] = {int: whole, float: number, str: str, Path: Path}
    return readers[kind]
