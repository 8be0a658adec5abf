"""The text of `results.jsonl`: a header, then one line per result; written and read without touching a file.

    {"schema":"velodrome/results/1","study":{…},"seed":4711,"machine":{…},"velodrome":"0.1.0","started_at":"…"}
    {"kind":"measurement","trial":{…},…}
    {"kind":"failed","trial":{…},…}
    {"kind":"finding","experiment":{…},…}
    {"kind":"profile","trial":{…},…}

A search (`velodrome tune`, `capacity`) says in its header what it sought, and in each line where the load stands in it
(`Step`); its lines are in the order in which the loads were made.

History of the schema: 1 is the first. A reader takes a file of its own schema only, and ignores fields it
does not know, so that fields may be added within a schema. What is installed beside an app once stood in
every line; now the header's study alone tells it, and lines of either form are read.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from pydantic import TypeAdapter, ValidationError

from velodrome.guest import recipe as recipes
from velodrome.guest.recipe import Recipe
from velodrome.model.claim import Finding
from velodrome.model.errors import ResultsError
from velodrome.model.load import INDEPENDENT, Arrivals
from velodrome.model.measurement import Failed, Measurement
from velodrome.model.noise import SHIPPED, Noise
from velodrome.model.profile import Profile
from velodrome.model.study import Study
from velodrome.model.trial import Trial
from velodrome.model.tuning import Candidate

SCHEMA = "velodrome/results/1"
FAMILY = "velodrome/results/"

Result = Measurement | Failed
"""What became of a trial."""
Entry = Result | Finding | Profile
"""A line after the header."""
Machine = Mapping[str, str | int | float | list[int] | None]
"""Facts of the machine by name, see `run/machine/facts.py`."""

COMPARABLE = ("cpu", "cpus", "kernel", "memory_bytes", "system", "virtualisation")
"""Facts of a machine that must agree before trials of two runs are compared."""

NOUNS: Mapping[str, type[Entry]] = {
    "measurement": Measurement,
    "failed": Failed,
    "finding": Finding,
    "profile": Profile,
}
"""Kind of a line to what it holds."""
_KINDS = {noun: kind for kind, noun in NOUNS.items()}

T = TypeVar("T")
_ADAPTERS: dict[type[Any], TypeAdapter[Any]] = {}


def adapter(noun: type[T]) -> TypeAdapter[T]:
    """Return what reads and writes a noun, made when it is first needed: that takes tens of milliseconds."""
    if noun not in _ADAPTERS:
        _ADAPTERS[noun] = TypeAdapter(noun)
    return _ADAPTERS[noun]


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
    noise: Noise = SHIPPED
    """What figures were known to vary by when it was run; of files that do not tell it, as shipped now."""
    sought: "Sought | None" = None
    """What the search sought that made these trials; None: a race did."""


@dataclass(frozen=True)
class Sought:
    """What a search seeks beside its study: enough to judge its loads again."""

    what: Literal["tune", "capacity"]
    conditions: tuple[str, ...] = ()
    """That must hold, as they are written."""
    goal: str = ""
    """Of a tuning: `model/tuning.py`."""
    rate: float = 0.0
    """To be carried, requests a second; 0: the rate is what is sought."""
    arrivals: Arrivals = INDEPENDENT
    """Of the open loops."""
    closed: bool = False
    """Whether the knee of a closed loop is sought."""
    cpus: int = 1
    """Of the server."""
    budget_s: float | None = None
    """To measure in; of a tuning it may be another on resume."""
    seconds: float | None = None
    """Of a capacity: length of the first loads."""
    candidates: tuple[Candidate, ...] = ()
    """Of a tuning: its grid."""


@dataclass(frozen=True)
class Results:
    """A whole file."""

    header: Header
    trials: tuple[Result, ...]
    """The last line of each trial, in the order of the file."""
    whole_bytes: int
    """Length of the file without a last line that a crash tore off."""

    torn: bool
    """Whether there was such a line: a verdict says so."""
    findings: tuple[Finding, ...] = ()
    """The last of each experiment."""
    profiles: tuple[Profile, ...] = ()
    """The last of each cell and load."""
    checks: tuple[Result, ...] = ()
    """The trials of a part of their own (`Trial.part`), which are never ranked; the last line of each."""


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
        "noise": adapter(Noise).dump_python(header.noise, mode="json"),
        **({"sought": plain_sought(header.sought)} if header.sought else {}),
    }


def plain_sought(sought: Sought | None) -> dict[str, Any]:
    """Return what a search seeks as JSON-ready values; of a race nothing."""
    plain: dict[str, Any] = adapter(Sought).dump_python(sought, mode="json") if sought else {}
    return plain


def dump(entry: Entry, study: Study | None = None) -> str:
    """Return the line of one result, without its end.

    With the study of the header, the packages beside an app are left out where that tells them.
    """
    kind = _KINDS[type(entry)]
    plain = adapter(NOUNS[kind]).dump_python(entry, mode="json")
    if not isinstance(entry, Finding):
        plain["trial"]["recipe"] = recipes.to_plain(entry.trial.recipe)
        app = entry.trial.app
        if study is not None and app is not None and app.packages == _packages(study, entry.trial.question):
            del plain["trial"]["app"]["packages"]
    return _line({"kind": kind, **plain})


def load(line: bytes | str, study: Study, path: str = "a line") -> Entry:
    """Return the entry of one line. Raises ResultsError, in which `path` is where it came from."""
    data = line.encode() if isinstance(line, str) else line
    return _entry(_object(data, path, 1), study, path, 1)


def plain_trial(trial: Trial) -> dict[str, Any]:
    """Return a trial as JSON-ready values."""
    plain: dict[str, Any] = adapter(Trial).dump_python(trial, mode="json")
    return plain | {"recipe": recipes.to_plain(trial.recipe)}


def read_trial(plain: Mapping[str, Any]) -> Trial:
    """Return a trial from what `plain_trial` made of it."""
    return adapter(Trial).validate_python({**plain, "recipe": _recipe(plain["recipe"])})


def _packages(study: Study, question: object) -> Mapping[str, str] | None:
    """Return what is installed beside the app of a question; None: it is about none."""
    return next(
        (found.app.packages for found in study.questions if found.name == question and found.app is not None),
        None,
    )


def plain_study(study: Study) -> dict[str, Any]:
    """Return a study as JSON-ready values."""
    plain: dict[str, Any] = adapter(Study).dump_python(study, mode="json")
    for question, noun in zip(plain["questions"], study.questions, strict=True):
        question["recipe"] = recipes.to_plain(noun.recipe)
    return plain


def _line(plain: Mapping[str, Any]) -> str:
    return json.dumps(plain, separators=(",", ":"), ensure_ascii=False)


def parse(data: bytes, path: str = "results.jsonl") -> Results:
    """Read a whole file. Raises ResultsError with the line; `path` is only for its sentence.

    A last line without an end is what a crash leaves: it is left out (`Results.torn`). Of a trial,
    experiment or profile that has several lines (it was run again after a failure) the last counts.
    """
    *whole, rest = data.split(b"\n")
    whole_bytes = len(data) - len(rest)
    if not whole:
        what = "it is empty" if not data.strip() else "it does not begin with a header of velodrome's"
        raise ResultsError(path, 0, what)
    header = _header(_object(whole[0], path, 1), path)
    found: dict[tuple[str, str], Entry] = {}
    for number, line in enumerate(whole[1:], 2):
        if line.strip():
            entry = _entry(_object(line, path, number), header.study, path, number)
            found.pop(_name(entry), None)
            found[_name(entry)] = entry
    every = list(found.values())
    trials = [result for result in every if isinstance(result, Measurement | Failed)]
    return Results(
        header,
        tuple(result for result in trials if not result.trial.part),
        whole_bytes,
        bool(rest),
        tuple(result for result in every if isinstance(result, Finding)),
        tuple(result for result in every if isinstance(result, Profile)),
        tuple(result for result in trials if result.trial.part),
    )


def _name(entry: Entry) -> tuple[str, str]:
    """Return the value that all lines of a file must share."""
    if isinstance(entry, Finding):
        return "experiment", entry.experiment.name
    return "profile" if isinstance(entry, Profile) else "trial", entry.trial.key


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
            study=adapter(Study).validate_python(study),
            seed=int(plain["seed"]),
            machine=dict(plain["machine"]),
            velodrome=str(plain["velodrome"]),
            started_at=str(plain.get("started_at", "")),
            noise=adapter(Noise).validate_python(plain["noise"]) if "noise" in plain else SHIPPED,
            sought=adapter(Sought).validate_python(plain["sought"]) if plain.get("sought") else None,
        )
    except (KeyError, TypeError, ValueError) as error:
        raise ResultsError(path, 1, f"its header is damaged: {_what(error)}") from error


def _entry(plain: dict[str, Any], study: Study, path: str, number: int) -> Entry:
    kind = plain.pop("kind", None)
    if kind not in NOUNS:
        raise ResultsError(path, number, f"its kind is {kind!r}, none of {', '.join(NOUNS)}")
    try:
        if "trial" in plain:
            plain["trial"]["recipe"] = _recipe(plain["trial"]["recipe"])
            if isinstance(app := plain["trial"].get("app"), dict):
                app.setdefault("packages", _packages(study, plain["trial"]["question"]) or {})
        entry: Entry = adapter(NOUNS[kind]).validate_python(plain)
    except (KeyError, TypeError, ValueError) as error:
        raise ResultsError(path, number, f"the {kind} in it is damaged: {_what(error)}") from error
    return entry


def _recipe(plain: Mapping[str, Any]) -> Recipe:
    """Read a recipe by the name of its steps: their fields alone do not distinguish steps."""
    return recipes.from_plain(plain)


def _what(error: Exception) -> str:
    """Return the first thing that is wrong, in a line."""
    if isinstance(error, ValidationError):
        first = error.errors(include_url=False, include_input=False)[0]
        return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
    return f"{type(error).__name__} {error}"
