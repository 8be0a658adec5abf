"""Why an app could not be imported, or is none, and the cure: from what its own process says of it to an error.

raise error_of(app, variables, {"problem": "attribute", "module": "shop", "name": "ap", "known": ["app"]})

Of an app that raises, `cure` says what it lacked: a module, a variable of the environment, a service.
"""

import os
import shlex
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from velodrome.model import secrets
from velodrome.model.app import App
from velodrome.model.errors import AppEndsError, AppNameError, AppPathError, AppRaisesError, AppUnfitError
from velodrome.run.servers import INHERITED


def error_of(app: App, variables: Collection[str], report: Mapping[str, Any]) -> Exception:
    """Return the error for an app with these variables, as its process (`guest/apps/looking.py`) reported it."""
    problem = report["problem"]
    if problem == "attribute":
        return AppNameError(app.path, report["module"], report["name"], report["known"])
    if problem == "unreadable":
        return AppPathError(
            app.path, f"'{report['attribute']}' is neither a name nor a call with plain values"
        )
    if problem == "unfit":
        return AppUnfitError(app.path, report["described"], report["needs"], awaited=report["awaited"])
    lines = [secrets.mask(line) for line in report["lines"]]
    if problem == "exit":
        return AppEndsError(app.path, f"sys.exit({report['code']})", lines)
    seen = report["named"], report["fields"], report["asked_for"]
    lacking = Lacking(report["missing"], report["variable"], report["unanswered"], *map(tuple, seen))
    how = cure(app.path.partition(":")[0], app.python, app.cwd, lacking, variables)
    return AppRaisesError(app.path, lines, how)


MOST_NAMED = 4
USUAL = (
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "TERM",
    "LANG",
    "PWD",
    "EDITOR",
    "PAGER",
    "DISPLAY",
    "COLUMNS",
    "LINES",
)
"""Variables of any login, which libraries ask for and can do without."""
SESSION = ("PYTHON", "LC_", "XDG_", "SSH_", "VIRTUAL_ENV", "_")
"""How others of a login begin."""


@dataclass(frozen=True)
class Lacking:
    """What it lacked, as `guest/apps/looking.py` tells."""

    missing: str | None
    """A module."""
    variable: str | None
    """Of its environment."""
    unanswered: bool
    """Something that it connects to."""
    named: tuple[str, ...] = ()
    """What the error speaks of and looks like a variable."""
    fields: tuple[str, ...] = ()
    """Of settings, without a value: variables in any case, perhaps with something before."""
    asked_for: tuple[str, ...] = ()
    """Variables that were looked for in vain, from the first on."""

    @property
    def speaks(self) -> bool:
        """Whether the error itself names variables of our own environment, or fields that may be such."""
        return bool(self.fields) or any(name in os.environ for name in self.named)


def cure(module: str, python: str, cwd: str, lacking: Lacking, given: Collection[str] = ()) -> str:
    """Return a sentence to whoever named that module of an app, for that interpreter, in that folder.

    `given` are the variables they hand on.
    """
    if lacking.variable is not None:
        return _of_variable(lacking.variable)
    if lacking.missing is not None:
        return _of_module(module, python, cwd, lacking.missing)
    ours = _ours(lacking, given)
    if lacking.unanswered:
        where = f": it lacks what it looked up in the environment: {_handed(ours)}" if ours else " with --env"
        return (
            "Something it needs does not answer: start it before, also with --setup 'docker compose up -d --wait', "
            f"or say where it is{where}"
        )
    if ours:
        hint = f"Of your environment it sees only what you hand on, and it looked for more: {_handed(ours)}"
        if not lacking.speaks:
            hint += f". If that is not it, see that it imports so: {_tried(module, python, cwd)}"
        return hint
    return (
        "Of your environment it sees only PATH and the like: hand on by --env NAME what its settings need. "
        f"See that it imports so: {_tried(module, python, cwd)}"
    )


def _tried(module: str, python: str, cwd: str) -> str:
    """Return the command that imports it as it was imported; the variables of a user's shell would hide what lacks."""
    kept = " ".join(f'{name}="${name}"' for name in INHERITED if name in os.environ)
    return f"cd {shlex.quote(cwd)} && env -i {kept} {shlex.quote(python)} -c 'import {module}'"


def _of_variable(name: str) -> str:
    if name in os.environ:
        return f"Of your environment it sees only what you hand on: --env {name}"
    return f"It wants a variable, which is not set here either: --env {name}=…"


def _ours(lacking: Lacking, given: Collection[str]) -> list[str]:
    """Return the variables of our own environment that it may have lacked, the likeliest first."""
    hidden = [name for name in os.environ if name not in INHERITED and name not in given]
    spoken = [name for name in lacking.named if name in hidden]
    fields = [name for field in lacking.fields for name in _of_field(field, hidden)]
    if spoken or fields:
        return _first([*spoken, *fields])
    usual = (name for name in lacking.asked_for if name in hidden and name not in USUAL)
    return _first(name for name in usual if not name.startswith(SESSION))


def _of_field(field: str, names: Sequence[str]) -> list[str]:
    """Return the variables that a field of settings may be: `database_url` is SHOP_DATABASE_URL, too."""
    exact = [name for name in names if name.lower() == field.lower()]
    return exact or [name for name in names if name.lower().endswith("_" + field.lower())]


def _first(names: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(names))[:MOST_NAMED]


def _handed(names: Sequence[str]) -> str:
    return " ".join(f"--env {name}" for name in names)


def _of_module(module: str, python: str, cwd: str, missing: str) -> str:
    top = missing.partition(".")[0]
    below = Path(cwd) / "src"
    if (below / top).is_dir() or (below / f"{top}.py").is_file():
        return f"{top} lies in {below}: put that on its path with --env PYTHONPATH=src"
    if module.partition(".")[0] == top:
        return f"It was looked for in {cwd}; name the folder it lies in with --cwd"
    beside = Path(cwd) / ".venv" / "bin" / "python"
    if beside.exists() and str(beside) != python:
        return f"It ran on {python}; perhaps you mean --python {beside}"
    return f"{missing} is not installed for {python}; install it there, or name another with --python"
