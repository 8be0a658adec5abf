"""Contestants and experiments of a study file.

[[experiments]]
name = "marker"
kind = "canary"
stacks = ["gunicorn-gevent", "uvicorn"]      # and whatever else the kind has
"""

import re
from collections.abc import Mapping
from difflib import get_close_matches

from velodrome.guest.stack import KnobValue, Stack
from velodrome.model.claim import Experiment, Setting
from velodrome.model.trial import Contestant
from velodrome.plan.findings import Findings, Known, Place, nearest, shown
from velodrome.plan.schema import ContestantTable, ExperimentTable

OTHER_KEYS = ("name", "packages", "python")
"""Of the table, beside knobs."""
_HIGHEST_KNOB = 100_000
PACKAGE = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?")
VERSION = re.compile(r"[0-9][A-Za-z0-9._!+-]*")


def read_contestant(entry: object, at: Place, known: Known, findings: Findings) -> Contestant | None:
    """Return the contestant that a name or a table tells, or None after recording all that is wrong with it."""
    before = findings.count
    table = findings.check(ContestantTable, {"stack": entry} if isinstance(entry, str) else entry, at)
    if table is None:
        return None
    stack = known.stacks.get(table.stack)
    if stack is None:
        near = nearest(table.stack, known.stacks)
        findings.add(at, f"no stack is called '{table.stack}'; {near}. All: velodrome stacks")
        return None
    knobs = _knobs(stack, table.model_extra or {}, at, findings)
    for package, version in table.packages.items():
        _check_package(package, version, (*at, "packages", package), findings)
    if findings.count > before:
        return None
    return Contestant(stack.name, knobs, dict(table.packages), table.python, table.name or "")


def _knobs(stack: Stack, given: Mapping[str, object], at: Place, findings: Findings) -> dict[str, KnobValue]:
    knobs: dict[str, KnobValue] = {}
    for knob, value in given.items():
        wrong = _wrong_knob(stack, knob, value)
        if wrong:
            findings.add((*at, knob), wrong)
        elif value != stack.knobs[knob] and isinstance(value, int | str):
            # `workers = 1` where 1 is the default is the same contestant, and gets the same label.
            knobs[knob] = value
    return knobs


def _wrong_knob(stack: Stack, knob: str, value: object) -> str:
    if knob not in stack.knobs:
        known = [*stack.knobs, *get_close_matches(knob, OTHER_KEYS)]
        return f"{stack.name} has no such knob; {nearest(knob, known)}"
    if isinstance(stack.knobs[knob], int):
        if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= _HIGHEST_KNOB:
            return f"{shown(value)} is not a count; give a whole number from 1 to 100 000"
        return ""
    choices = stack.choices.get(knob, ())
    if not isinstance(value, str) or (choices and value not in choices):
        return f"{shown(value)} is not a choice of {stack.name}; give one of: {', '.join(choices) or 'texts'}"
    return ""


def _check_package(package: str, version: object, at: Place, findings: Findings) -> None:
    """A name and an exact version, nothing that an installer would read as an option or an address."""
    if not PACKAGE.fullmatch(package):
        findings.add(at, f"'{package}' is not the name of a package; give one such as tornado")
    if not isinstance(version, str) or not VERSION.fullmatch(version):
        findings.add(at, f'{shown(version)} is not a version; give an exact one as text, such as "5.1.1"')


STACK_SETTINGS = ("stack", "stacks")
"""Settings of these names hold names of stacks, whatever the kind."""


def read_experiment(entry: object, at: Place, known: Known, findings: Findings) -> Experiment | None:
    """Return the experiment that a table tells, or None after recording all that is wrong with it."""
    before = findings.count
    table = findings.check(ExperimentTable, entry, at)
    if table is None:
        return None
    defaults = known.experiments.get(table.kind)
    if defaults is None:
        near = nearest(table.kind, known.experiments)
        findings.add((*at, "kind"), f"no kind of experiment is called '{table.kind}'; {near}")
        return None
    settings = {
        key: _setting(key, value, defaults, (*at, key), findings)
        for key, value in (table.model_extra or {}).items()
    }
    for index, line in enumerate(_texts(settings.get("packages"))):
        _check_version(line, (*at, "packages", index), findings)
    for key in STACK_SETTINGS:
        _check_stacks(settings.get(key), (*at, key), known, findings)
    if findings.count > before:
        return None
    chosen = {key: value for key, value in settings.items() if value is not None and value != defaults[key]}
    return Experiment(table.name or table.kind, table.kind, chosen, table.deadline)


def _setting(
    key: str, value: object, defaults: Mapping[str, Setting], at: Place, findings: Findings
) -> Setting | None:
    """Return a setting as the kind wants it: of the type that its default has."""
    if key not in defaults:
        findings.add(at, f"this kind has no such setting; {nearest(key, defaults)}")
        return None
    default = defaults[key]
    if isinstance(default, tuple):
        if isinstance(value, list) and all(isinstance(item, str) for item in value):
            return tuple(value)
    elif isinstance(value, bool) == isinstance(default, bool):
        if isinstance(default, float) and isinstance(value, int | float):
            return float(value)
        if isinstance(value, bool | int | str) and isinstance(value, type(default)):
            return value
    findings.add(at, f"{shown(value)} is not {_wanted(default)}")
    return None


def _wanted(default: Setting) -> str:
    match default:
        case bool():
            return "a switch; give true or false"
        case float():
            return f"a number; give one such as {default:g}"
        case int():
            return f"a whole number; give one such as {default}"
        case str():
            return f"a text; give one such as '{default}'"
    return f"a list of texts; give one such as {list(default)}"


def _texts(value: Setting | None) -> tuple[str, ...]:
    return value if isinstance(value, tuple) else ()


def _check_version(line: str, at: Place, findings: Findings) -> None:
    """A name and an exact version, as of contestants: an installer reads further lines and options too."""
    name, equals, version = line.partition("=")
    if not (equals and PACKAGE.fullmatch(name) and VERSION.fullmatch(version)):
        findings.add(at, f'{shown(line)} is not a version of a package; give one such as "tornado=5.1.1"')


def _check_stacks(value: Setting | None, at: Place, known: Known, findings: Findings) -> None:
    for index, name in enumerate((value,) if isinstance(value, str) else _texts(value)):
        if name and name not in known.stacks:
            place = at if isinstance(value, str) else (*at, index)
            near = nearest(name, known.stacks)
            findings.add(place, f"no stack is called '{name}'; {near}. All: velodrome stacks")
