"""The text of a document as its nodes: JSON, or YAML in the words of JSON.

YAML is read in the words of its version 1.2 (https://yaml.org/spec/1.2.2/#102-json-schema): `no` and `2024-01-01` are
texts, and so is `007`. Names are texts whatever they look like, as `200` of a response.
"""

import json
import re
from typing import Any

import yaml

MOST_NODES = 2_000_000
"""Aliases repeat what they name, and a few lines of them can stand for more than a machine holds. So many written out
are a document of some 30 MB.
"""
MOST_DEPTH = 200
_JSON = ("{", "[")


class UnreadableError(Exception):
    """Raised for a text that is neither; the text is the reason."""


def parsed(text: str, *, as_yaml: bool = False) -> Any:
    """Return what a text says; `as_yaml` for one whose name says that it is YAML. Raises UnreadableError."""
    try:
        return json.loads(text)
    except RecursionError as error:
        raise UnreadableError("it is nested too deeply") from error
    except ValueError as error:
        if text.lstrip().startswith(_JSON) and not as_yaml:
            raise UnreadableError(f"it is no JSON: {error}") from error
    try:
        _see_depth(text)
        return _Plain().of(yaml.load(text, _Loader))  # noqa: S506 - it makes nothing but what JSON knows
    except RecursionError as error:
        raise UnreadableError("it holds itself") from error
    except (yaml.YAMLError, ValueError) as error:
        raise UnreadableError(f"it is neither JSON nor YAML: {_sentence(error)}") from error


_Base: type[yaml.SafeLoader] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""Written in C where PyYAML was built with it: twenty times as fast."""


class _Loader(_Base):  # type: ignore[misc, valid-type, unused-ignore]
    """Takes plain words for what JSON would, and for texts else."""

    yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012 - as its base has it


for _tag, _words, _firsts in (
    ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    ("int", r"-?(?:0|[1-9][0-9]*)", "-0123456789"),
    ("float", r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?", "-0123456789"),
    ("merge", r"<<", "<"),
):
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(f"^(?:{_words})$"), [*_firsts])


def _see_depth(text: str) -> None:
    """Raise ValueError for what is nested so deeply that the loader, which is recursive C, would crash."""
    depth = 0
    for event in yaml.parse(text, _Loader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > MOST_DEPTH:
                raise ValueError("it is nested too deeply")
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1


class _Plain:
    """Makes names texts, and counts."""

    def __init__(self) -> None:
        self._nodes = 0

    def of(self, node: Any) -> Any:
        self._nodes += 1
        if self._nodes > MOST_NODES:
            raise ValueError(f"it stands for more than {MOST_NODES:,} values".replace(",", " "))
        if isinstance(node, dict):
            return {_name(name): self.of(value) for name, value in node.items()}
        if isinstance(node, list):
            return [self.of(one) for one in node]
        # What a tag such as !!binary or !!set makes is nothing that JSON knows.
        return node if isinstance(node, str | int | float | None) else str(node)


def _name(name: Any) -> str:
    return name if isinstance(name, str) else json.dumps(name, default=str)


def _sentence(error: Exception) -> str:
    """Return `line 3, column 5: mapping values are not allowed here`."""
    if not isinstance(error, yaml.MarkedYAMLError):
        return " ".join(str(error).split())
    mark = error.problem_mark or error.context_mark
    what = error.problem or error.context or "it cannot be read"
    return f"line {mark.line + 1}, column {mark.column + 1}: {what}" if mark else what
