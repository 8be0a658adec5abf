"""The text of `results.jsonl`: a header, then one line per trial; written and read without touching a file.

    {"schema":"velodrome/results/1","study":{…},"seed":4711,"machine":{…},"velodrome":"0.1.0","started_at":"…"}
    {"kind":"measurement","trial":{…},…}
    {"kind":"failed","trial":{…},…}

History of the schema: 1 is the first. A reader takes a file of its own schema only, and ignores fields it
does not know, so that fields may be added within a schema.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import TypeAdapter, ValidationError

from velodrome.guest import recipe as recipes
from velodrome.guest.recipe import Recipe
from velodrome.model.errors import ResultsError
from velodrome.model.measurement import Failed, Measurement
from velodrome.model.study import Study

SCHEMA = "velodrome/results/1"
FAMILY = "velodrome/results/"

Result = Measurement | Failed
Machine = Mapping[str, str | int | float | list[int] | None]
"""Facts of the machine by name, see `run/machine.py`."""

COMPARABLE = ("cpu", "cpus", "kernel", "memory_bytes", "system", "virtualisation")
"""Facts of a machine that must agree before trials of two runs are compared."""

_STUDY = TypeAdapter(Study)
_MEASUREMENT = TypeAdapter(Measurement)
_FAILED = TypeAdapter(Failed)


@dataclass(frozen=True)
class Header:
    """Under which conditions the trials of a file were run."""

    study: Study
    seed: int
    machine: Machine
    velodrome: str
    """Version of velodrome."""
    started_at: str
    """ISO 8601, UTC."""


@dataclass(frozen=True)
class Results:
    """A whole file."""

    header: Header
    trials: tuple[Result, ...]
    """The last line of each trial, in the order of the file."""
    whole_bytes: int
    """Length of the file without a last line that a crash tore off."""

    torn: bool
    """Whether there was such a line."""


def dump_header(header: Header) -> str:
    """Return the first line, without its end."""
    return _line(plain_header(header))


def plain_header(header: Header) -> dict[str, Any]:
    """Return the first line as JSON-ready values."""
    return {
        "schema": SCHEMA,
        "study": plain_study(header.study),
        "seed": header.seed,
        "machine": dict(header.machine),
        "velodrome": header.velodrome,
        "started_at": header.started_at,
    }


def dump_result(result: Result) -> str:
    """Return the line of one trial, without its end."""
    measured = isinstance(result, Measurement)
    kind = "measurement" if measured else "failed"
    plain = (_MEASUREMENT if measured else _FAILED).dump_python(result, mode="json")  # type: ignore[arg-type]
    plain["trial"]["recipe"] = recipes.to_plain(result.trial.recipe)
    return _line({"kind": kind, **plain})


def plain_study(study: Study) -> dict[str, Any]:
    """Return a study as JSON-ready values."""
    plain: dict[str, Any] = _STUDY.dump_python(study, mode="json")
    for question, noun in zip(plain["questions"], study.questions, strict=True):
        question["recipe"] = recipes.to_plain(noun.recipe)
    return plain


def _line(plain: Mapping[str, Any]) -> str:
    return json.dumps(plain, separators=(",", ":"), ensure_ascii=False)


def parse(data: bytes, path: str = "results.jsonl") -> Results:
    """Read a whole file. Raises ResultsError with the line; `path` is only for its sentence.

    A last line without an end is what a crash leaves: it is left out and told (`Results.torn`). Of a trial
    that has several lines (it was run again after a failure) the last counts.
    """
    *whole, rest = data.split(b"\n")
    whole_bytes = len(data) - len(rest)
    if not whole:
        what = "it is empty" if not data.strip() else "it does not begin with a header of velodrome's"
        raise ResultsError(path, 0, what)
    header = _header(_object(whole[0], path, 1), path)
    trials: dict[str, Result] = {}
    for number, line in enumerate(whole[1:], 2):
        if line.strip():
            result = _result(_object(line, path, number), path, number)
            trials.pop(result.trial.key, None)
            trials[result.trial.key] = result
    return Results(header, tuple(trials.values()), whole_bytes, bool(rest))


def _object(line: bytes, path: str, number: int) -> dict[str, Any]:
    try:
        found = json.loads(line)
    except ValueError as error:
        raise ResultsError(path, number, f"it is not JSON ({error})") from error
    if not isinstance(found, dict):
        raise ResultsError(path, number, "it is not a JSON object")
    return found


def _header(plain: dict[str, Any], path: str) -> Header:
    schema = plain.get("schema")
    if not isinstance(schema, str) or not schema.startswith(FAMILY):
        raise ResultsError(path, 1, f"its schema is {schema!r}, so it holds no results of velodrome")
    if schema != SCHEMA:
        how = "Use the velodrome that wrote it, or run the study again"
        raise ResultsError(path, 1, f"its schema is {schema}, this velodrome reads {SCHEMA}. {how}")
    try:
        study = plain["study"]
        for question in study["questions"]:
            question["recipe"] = _recipe(question["recipe"])
        return Header(
            study=_STUDY.validate_python(study),
            seed=int(plain["seed"]),
            machine=dict(plain["machine"]),
            velodrome=str(plain["velodrome"]),
            started_at=str(plain.get("started_at", "")),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise ResultsError(path, 1, f"its header is damaged: {_what(error)}") from error


def _result(plain: dict[str, Any], path: str, number: int) -> Result:
    kind = plain.pop("kind", None)
    try:
        plain["trial"]["recipe"] = _recipe(plain["trial"]["recipe"])
        if kind == "measurement":
            return _MEASUREMENT.validate_python(plain)
        if kind == "failed":
            return _FAILED.validate_python(plain)
    except (KeyError, TypeError, ValueError) as error:
        raise ResultsError(path, number, f"the trial in it is damaged: {_what(error)}") from error
    raise ResultsError(path, number, f"its kind is {kind!r}, neither measurement nor failed")


def _recipe(plain: Mapping[str, Any]) -> Recipe:
    """Read a recipe by the name of its steps: by their fields alone, steps cannot be told apart."""
    return recipes.from_plain(plain)


def _what(error: Exception) -> str:
    """Return the first thing that is wrong, in a line."""
    if isinstance(error, ValidationError):
        first = error.errors(include_url=False, include_input=False)[0]
        return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
    return f"{type(error).__name__} {error}"
