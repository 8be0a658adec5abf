"""Contestants of a study, as its file tells them."""

import re
from collections.abc import Mapping
from difflib import get_close_matches

from velodrome.guest.stack import KnobValue, Stack
from velodrome.model.trial import Contestant
from velodrome.plan.findings import Findings, nearest, shown
from velodrome.plan.known import Known
from velodrome.plan.schema import ContestantTable
from velodrome.plan.toml_map import Path

OTHER_KEYS = ("name", "packages", "python")
"""Of the table, beside knobs."""
_HIGHEST_KNOB = 100_000
PACKAGE = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?")
VERSION = re.compile(r"[0-9][A-Za-z0-9._!+-]*")


def read_contestant(entry: object, at: Path, known: Known, findings: Findings) -> Contestant | None:
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


def _knobs(stack: Stack, given: Mapping[str, object], at: Path, findings: Findings) -> dict[str, KnobValue]:
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


def _check_package(package: str, version: object, at: Path, findings: Findings) -> None:
    """A name and an exact version, nothing that an installer would read as an option or an address."""
    if not PACKAGE.fullmatch(package):
        findings.add(at, f"'{package}' is not the name of a package; give one such as tornado")
    if not isinstance(version, str) or not VERSION.fullmatch(version):
        findings.add(at, f'{shown(version)} is not a version; give an exact one as text, such as "5.1.1"')
