"""Experiments of a study, as its file tells them.

[[experiments]]
name = "marker"
kind = "canary"
stacks = ["gunicorn-gevent", "uvicorn"]      # and whatever else the kind has
"""

from collections.abc import Mapping

from velodrome.model.claim import Experiment, Setting
from velodrome.plan.contestants import PACKAGE, VERSION
from velodrome.plan.findings import Findings, nearest, shown
from velodrome.plan.known import Known
from velodrome.plan.schema import ExperimentTable
from velodrome.plan.toml_map import Path

STACK_SETTINGS = ("stack", "stacks")
"""Settings of these names hold names of stacks, whatever the kind."""


def read_experiment(entry: object, at: Path, known: Known, findings: Findings) -> Experiment | None:
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
    key: str, value: object, defaults: Mapping[str, Setting], at: Path, findings: Findings
) -> Setting | None:
    """Return a setting as the kind wants it: of the type that its default has."""
    if key not in defaults:
        findings.add(at, f"this kind has no such setting; {nearest(key, defaults)}")
        return None
    default = defaults[key]
    if isinstance(default, tuple):
        if isinstance(value, list) and all(isinstance(one, str) for one in value):
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


def _check_version(line: str, at: Path, findings: Findings) -> None:
    """A name and an exact version, as of contestants: an installer reads further lines and options too."""
    name, equals, version = line.partition("=")
    if not (equals and PACKAGE.fullmatch(name) and VERSION.fullmatch(version)):
        findings.add(at, f'{shown(line)} is not a version of a package; give one such as "tornado=5.1.1"')


def _check_stacks(value: Setting | None, at: Path, known: Known, findings: Findings) -> None:
    for index, name in enumerate((value,) if isinstance(value, str) else _texts(value)):
        if name and name not in known.stacks:
            place = at if isinstance(value, str) else (*at, index)
            near = nearest(name, known.stacks)
            findings.add(place, f"no stack is called '{name}'; {near}. All: velodrome stacks")
