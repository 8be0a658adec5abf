"""What is wrong with a study file, each problem with its line and column, in the words of the file.

`Findings` collects the problems, `TomlMap` knows where each key stands, and `Known` is what a file may name.
"""

import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import TypeVar

import tree_sitter_toml
from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails
from tree_sitter import Language, Node, Parser

from velodrome.guest.recipe import Recipe
from velodrome.guest.stack import Stack
from velodrome.model.claim import Setting
from velodrome.model.files import Problem
from velodrome.plan.schema import Table, describe_key

Place = tuple[str | int, ...]
"""Keys and indices from the top of the file: `("questions", 0, "loads", 1, "rate")`."""

Position = tuple[int, int]
"""Line and column, counted from 1."""

_DEEPEST = 32
"""Further down nothing is mapped: no study goes there, and a hostile file must not exhaust the stack."""

_KEYS = ("bare_key", "quoted_key", "dotted_key")


@dataclass
class TomlMap:
    """Places of all keys and array items; `broken` holds what could not be read, with its text."""

    places: dict[Place, Position] = field(default_factory=dict)
    broken: list[tuple[Position, str]] = field(default_factory=list)
    _lines: list[bytes] = field(default_factory=list)
    _last: tuple[int, int, int] = (0, 0, 0)
    """Row, bytes and characters of the place that was last looked up: a line may be long, and the next is behind it."""
    _counts: dict[Place, int] = field(default_factory=dict)

    @staticmethod
    def of(text: str) -> "TomlMap":
        """Map a whole file; never raises, whatever the text."""
        source = text.encode()
        found = TomlMap(_lines=source.split(b"\n"))
        root = Parser(Language(tree_sitter_toml.language())).parse(source).root_node
        found.broken = [(found._place(node), _text(node)) for node in _broken_nodes(root)]
        found._pairs(root, ())
        for node in root.named_children:
            if node.type in ("table", "table_array_element"):
                found._table(node)
        return found

    def place(self, path: Place) -> Position:
        """Return where `path` stands or, for what is missing, the nearest thing around it."""
        while path and path not in self.places:
            path = path[:-1]
        return self.places.get(path, (1, 1))

    def _table(self, node: Node) -> None:
        header = next((child for child in node.named_children if child.type in _KEYS), None)
        if header is None:
            return
        path: Place = ()
        keys = _keys(header)
        for key in keys:
            path += (key,)
            is_last = key is keys[-1]
            if is_last and node.type == "table_array_element":
                self.places.setdefault(path, self._place(header))
                self._counts[path] = self._counts.get(path, 0) + 1
            if path in self._counts:
                path += (self._counts[path] - 1,)
        self.places[path] = self._place(header)
        self._pairs(node, path)

    def _pairs(self, parent: Node, path: Place) -> None:
        for node in parent.named_children:
            if node.type != "pair" or len(node.named_children) < 2:
                continue
            key, value = node.named_children[0], node.named_children[-1]
            inner = path
            for part in _keys(key):
                inner += (part,)
                self.places.setdefault(inner, self._place(key))
            self._value(value, inner)

    def _value(self, node: Node, path: Place) -> None:
        if len(path) > _DEEPEST:
            return
        if node.type == "inline_table":
            self._pairs(node, path)
        elif node.type == "array":
            items = [child for child in node.named_children if child.type not in ("comment", "ERROR")]
            for index, item in enumerate(items):
                self.places[(*path, index)] = self._place(item)
                self._value(item, (*path, index))

    def _place(self, node: Node) -> Position:
        row, column = node.start_point
        last, at, letters = self._last
        if row != last or column < at:
            at = letters = 0
        # The parser counts bytes; people and editors count characters.
        letters += len(self._lines[row][at:column].decode(errors="replace"))
        self._last = row, column, letters
        return row + 1, letters + 1


def _text(node: Node) -> str:
    return (node.text or b"").decode(errors="replace")


def _keys(node: Node) -> list[str]:
    if node.type == "dotted_key":
        return [key for child in node.named_children for key in _keys(child)]
    text = _text(node)
    if node.type == "bare_key":
        return [text]
    try:
        return list(tomllib.loads(f"{text} = 0"))
    except tomllib.TOMLDecodeError:
        return [text]


def _broken_nodes(root: Node) -> Iterator[Node]:
    left = [root]
    while left:
        node = left.pop()
        if node.is_error or node.is_missing:
            yield node
        elif node.has_error:
            left += reversed(node.children)


@dataclass(frozen=True)
class Known:
    """All that is installed, by name; a study that names anything else is wrong before anything is run."""

    stacks: Mapping[str, Stack]
    recipes: Mapping[str, Recipe]
    drivers: Sequence[str] = ("velodrome",)
    experiments: Mapping[str, Mapping[str, Setting]] = field(default_factory=dict)
    """Kind to its settings with their defaults."""


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
    "published": ("a figure", 'a number, a text, or "" where none is given'),
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
        self._reported: set[Problem] = set()
        self.count = 0
        """How often something was found wrong: more than `problems`, which tell each thing once."""

    def add(self, path: Place, sentence: str) -> None:
        """Record one problem of what stands at `path`."""
        line, column = self._places.place(path)
        name = dotted_path(path)
        problem = Problem(line, column, f"{name}: {sentence}" if name else sentence)
        self.count += 1
        if problem not in self._reported:  # a key of a load that is an axis is looked at once for each value
            self._reported.add(problem)
            self.problems.append(problem)

    def once(self, at: Place, labels: Sequence[tuple[str, Place]]) -> None:
        """Record each name in the list at `at` that stood there before."""
        first: dict[str, Place] = {}
        for label, path in labels:
            if label in first:
                where = f"{at[-1]}[{first[label][-1]}]"
                self.add(path, f"'{label}' is already {where}; leave one out, or let them differ")
            first.setdefault(label, path)

    def check(
        self, model: type[AnyModel], value: object, at: Place, extra: Iterable[str] = ()
    ) -> AnyModel | None:
        """Return a table read as `model`, or None after recording all that is wrong with it."""
        before = self.count
        found = self.check_in_part(model, value, at, extra)
        return found if self.count == before else None

    def check_in_part(
        self, model: type[AnyModel], value: object, at: Place, extra: Iterable[str] = ()
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
                    self.add((*at, key), f"is missing; give {describe_key((*at, key), key)[1]}")
        try:
            return model.model_validate(value)
        except ValidationError as error:
            wrong = set()
            for detail in error.errors(include_url=False):
                path = (*at, *detail["loc"])
                self.add(path, _sentence(detail, path, (*model.model_fields, *extra)))
                wrong.add(detail["loc"][0])
        return model.model_construct(**{key: part for key, part in value.items() if key not in wrong})


def dotted_path(path: Place) -> str:
    """Return a path as people write it: `questions[0].loads[1].rate`."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


def show_value(value: object) -> str:
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


def _sentence(detail: ErrorDetails, path: Place, known: Iterable[str]) -> str:
    if detail["type"] == "extra_forbidden":
        return f"there is no such key here; {nearest(str(path[-1]), known)}"
    if detail["type"] == "missing":
        return f"is missing; give {describe_key(path, str(path[-1]))[1]}"
    return _unfit(detail["input"], path)


def _unfit(value: object, path: Place) -> str:
    key = next((part for part in reversed(path) if isinstance(part, str)), "")
    noun, cure = _ITEMS[key] if path and isinstance(path[-1], int) else describe_key(path, key)
    return f"{show_value(value)} is not {noun}; give {cure}"
