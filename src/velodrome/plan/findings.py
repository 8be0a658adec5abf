"""Collects what is wrong with a study file, each with its place, in the words of the file."""

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from velodrome.model.files import Problem
from velodrome.plan.schema import Table
from velodrome.plan.toml_map import Path, TomlMap
from velodrome.plan.wanted import wanted

_ITEMS = {
    "checks": ("a check", "a [[claims.checks]] table with metric, of and a bound"),
    "claims": ("a claim", "a [[claims]] table with name, says and checks"),
    "contestants": ("a contestant", 'a stack such as "uvicorn" or {stack = "gunicorn-sync", workers = 2}'),
    "loads": (
        "a load",
        'a table such as {connections = 40, duration = "2s"} or {rate = 500, duration = "2s"}',
    ),
    "contradictions": ("a contradiction", "a table with about, says, a and b"),
    "experiments": ("an experiment", "an [[experiments]] table with a kind"),
    "links": ("a link", 'one such as {rtt = "160ms"}, or "loopback"'),
    "questions": ("a question", "a [[questions]] table with recipe and loads"),
    "skip": ("something to skip", "a question, question/contestant, or the name of an experiment"),
    "tables": ("a published table", "a [[tables]] table with title, metrics and rows"),
    "rows": ("a row", 'a table such as {of = "hello/uvicorn", published = [1200]}'),
    "metrics": ("a metric", 'the name of one, such as "throughput_rps"'),
    "published": ("a figure", 'a number, a text, or "" where none is told'),
    "sources": ("a source", "a text, such as the address of a web page"),
    "than": ("a cell", 'a question/contestant, such as "hello/tornado"'),
    "steps": ("a step", 'a table such as {do = "sleep", ms = 50}'),
}

AnyModel = TypeVar("AnyModel", bound=BaseModel)


class Findings:
    """The problems found so far in one file."""

    def __init__(self, places: TomlMap) -> None:
        self._places = places
        self.problems: list[Problem] = []
        self._told: set[Problem] = set()
        self.count = 0
        """How often something was found wrong: more than `problems`, which tell each thing once."""

    def add(self, path: Path, sentence: str) -> None:
        """Record one problem of what stands at `path`."""
        line, column = self._places.place(path)
        name = dotted(path)
        problem = Problem(line, column, f"{name}: {sentence}" if name else sentence)
        self.count += 1
        if problem not in self._told:  # a key of a load that is an axis is looked at once for each value
            self._told.add(problem)
            self.problems.append(problem)

    def once(self, at: Path, labels: Sequence[tuple[str, Path]]) -> None:
        """Record each name in the list at `at` that stood there before."""
        first: dict[str, Path] = {}
        for label, path in labels:
            if label in first:
                where = f"{at[-1]}[{first[label][-1]}]"
                self.add(path, f"'{label}' is already {where}; leave one out, or let them differ")
            first.setdefault(label, path)

    def check(
        self, model: type[AnyModel], value: object, at: Path, extra: Iterable[str] = ()
    ) -> AnyModel | None:
        """Return a table read as `model`, or None after recording all that is wrong with it."""
        before = self.count
        found = self.check_in_part(model, value, at, extra)
        return found if self.count == before else None

    def check_in_part(
        self, model: type[AnyModel], value: object, at: Path, extra: Iterable[str] = ()
    ) -> AnyModel | None:
        """Do the same, but return what is right of a table: its keys that are wrong have their defaults.

        `extra` are keys that exist beside those of the model. None: it is no table at all.
        """
        if not isinstance(value, dict):
            self.add(at, _unfit(value, at))
            return None
        if issubclass(model, Table):
            for key in model.required:
                if key not in value:
                    self.add((*at, key), f"is missing; give {wanted((*at, key), key)[1]}")
        try:
            return model.model_validate(value)
        except ValidationError as error:
            wrong = set()
            for detail in error.errors(include_url=False):
                path = (*at, *detail["loc"])
                self.add(path, _sentence(detail, path, (*model.model_fields, *extra)))
                wrong.add(detail["loc"][0])
        return model.model_construct(**{key: part for key, part in value.items() if key not in wrong})


def dotted(path: Path) -> str:
    """Return a path as people write it: `questions[0].loads[1].rate`."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


def shown(value: object) -> str:
    """Return a value about as TOML writes it, short."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return f"'{value}'" if len(value) <= 40 else f"'{value[:37]}…'"
    if isinstance(value, list):
        return "an empty list" if not value else "a list"
    return "a table" if isinstance(value, dict) else str(value)


def nearest(name: str, known: Iterable[str]) -> str:
    """Return `nearest: a, b`, or all that is known when nothing is near."""
    names = sorted(known)
    near = get_close_matches(name, names, n=3, cutoff=0.5)
    if near:
        return f"nearest: {', '.join(near)}"
    return f"known: {', '.join(names)}" if names else "there are none"


def _sentence(detail: ErrorDetails, path: Path, known: Iterable[str]) -> str:
    if detail["type"] == "extra_forbidden":
        return f"there is no such key here; {nearest(str(path[-1]), known)}"
    if detail["type"] == "missing":
        return f"is missing; give {wanted(path, str(path[-1]))[1]}"
    return _unfit(detail["input"], path)


def _unfit(value: object, path: Path) -> str:
    key = next((part for part in reversed(path) if isinstance(part, str)), "")
    noun, cure = _ITEMS[key] if path and isinstance(path[-1], int) else wanted(path, key)
    return f"{shown(value)} is not {noun}; give {cure}"
