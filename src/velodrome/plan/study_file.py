"""Reads a study file: TOML in, a Study out, or every problem of the file at once, with place and cure."""

import re
import tomllib
from pathlib import Path

from velodrome.model.errors import StudyFileError
from velodrome.model.files import Problem
from velodrome.model.study import Study
from velodrome.plan import forms
from velodrome.plan.budget import contents, see_written
from velodrome.plan.build import build
from velodrome.plan.findings import Findings
from velodrome.plan.known import Known
from velodrome.plan.toml_map import TomlMap

_PLACE = re.compile(r"(.*?)\s*\(at (?:line (\d+), column (\d+)|end of document)\)", re.DOTALL)
_LARGEST = 256_000
"""Bytes of a study; the largest that ships has 12 kB."""


def read(path: Path, known: Known, *, quick: bool = False) -> Study:
    """Read a study from a file, in its quick form if asked to.

    Raises StudyFileError with all its problems, also when it cannot be read, and TooLargeError.
    """
    try:
        text = contents(path, _LARGEST).decode("utf-8-sig")
    except OSError as error:
        reason = f"cannot be read: {error.strerror or error}; give a TOML file, or the name of a study"
        raise StudyFileError(str(path), [Problem(1, 1, reason)]) from error
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise StudyFileError(str(path), [Problem(line, 1, "is not UTF-8 text; save it as UTF-8")]) from error
    return parse(text, str(path), known, quick=quick)


def parse(text: str, path: str, known: Known, *, quick: bool = False) -> Study:
    """Read a study from text; `path` names it in errors, and by its stem where the text has no `name`.

    Raises StudyFileError, TooLargeError.
    """
    see_written(path, text)
    places = TomlMap.of(text)
    try:
        tables = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # ValueError alone: a number of thousands of digits
        raise StudyFileError(path, _unreadable(error, places, text)) from error
    findings = Findings(places)
    study, form = build(tables, Path(path).stem, known, findings)
    if findings.problems:
        raise StudyFileError(path, findings.problems)
    return forms.quick(study, form) if quick else study


def _unreadable(error: Exception, places: TomlMap, text: str) -> list[Problem]:
    """Return what tomllib says of the first fault, and the further ones the other parser found."""
    if isinstance(error, RecursionError):
        return [Problem(1, 1, "tables or lists are nested too deeply; a study needs four levels")]
    match = _PLACE.fullmatch(str(error))
    lines = text.rstrip().split("\n")
    said = match[1] if match else str(error)
    at_the_end = len(lines), len(lines[-1]) + 1
    place = (int(match[2]), int(match[3])) if match and match[2] else at_the_end
    first = Problem(*place, f"not TOML: {said[:1].lower()}{said[1:]}")
    further = [
        Problem(*place, f"not TOML: cannot read '{' '.join(broken.split())[:40]}'")
        for place, broken in places.broken
        if place[0] > first.line and broken.strip()
    ]
    return [first, *further]
