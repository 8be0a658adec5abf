"""Inspects a user's own app: imports it in a process of its own, under a warden, within a time, to see what it is.

app = look(App("shop:create_app", "", "/home/me/shop/.venv/bin/python", "/home/me/shop"))
app.interface, app.form

Whatever the app does when it is imported ends with that: what it forks, what goes into the background, what
ignores every signal. Of an app that raises, `cure` says what it lacked: a module, a variable of the environment, a
service.
"""

import errno
import json
import os
import shlex
import site
import stat
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from velodrome.model import secrets
from velodrome.model.app import App
from velodrome.model.errors import (
    AppEndsError,
    AppFolderError,
    AppHangsError,
    AppInterpreterError,
    AppNameError,
    AppPathError,
    AppRaisesError,
    AppUnfitError,
)
from velodrome.run.account import acting, hand_over
from velodrome.run.apps.revisions import Revision
from velodrome.run.apps.serving import import_path
from velodrome.run.environments import guest_tree
from velodrome.run.environments.interpreter import bytecode, find_interpreter, path_with
from velodrome.run.servers import INHERITED
from velodrome.run.supervision import scratch
from velodrome.run.supervision.ward import Order, Ward

MODULE = "velodrome.guest.apps.looking"
PATIENCE_S = 30.0
"""For one import. Large sites take several seconds."""
LAST_LINES = 8
MOST_BYTES = 64 << 20
"""Of what an app's process writes about it: names of all it imports, some 100 kB for a large site."""
OLDEST_PYTHON = (3, 8)
"""The oldest whose installed packages can be listed (importlib.metadata)."""
NOBODY = "http://127.0.0.1:9"
"""Where a third party would be while an app is only looked at: the port of `discard`."""
NO_VARIABLES: Mapping[str, str] = {}


def look(
    app: App,
    variables: Mapping[str, str] = NO_VARIABLES,
    revision: Revision | None = None,
    patience_s: float = PATIENCE_S,
) -> App:
    """Import an app and return it with what it is: its full path, interface, form, packages and so on.

    `app` says where it is, and its interface where its user named it; `variables` are those its user sets for it. With
    a `revision`, all its files must come from there. Raises NotFromRevisionError, InterpreterNotFoundError and the
    UsageErrors of `model/errors/apps.py`.
    """
    _refuse_impossible(app)
    within = revision.elsewhere if revision is not None else ()
    with scratch.hold_folder("look") as folder:
        hand_over(folder)
        report = _import_app(app, variables, within, folder / "found.json", patience_s)
    if "problem" in report:
        raise error_of(app, variables, report)
    found = replace(
        app,
        path=report["path"],
        interface=report["interface"],
        form=report["form"],
        what=report["described"],
        framework=report["framework"],
        served=report["served"],
        packages=report["packages"],
    )
    if revision is not None:
        revision.refuse_others(found.path, (report["origin"], *report["imported"]))
    return found


def _refuse_impossible(app: App) -> None:
    if not os.path.isdir(app.cwd):
        reason = "it is no folder" if os.path.exists(app.cwd) else "there is no such folder"
        raise AppFolderError(app.cwd, reason)
    interpreter = find_interpreter(app.python)
    if interpreter.minor < OLDEST_PYTHON:
        raise AppInterpreterError(app.python, interpreter.version, ".".join(map(str, OLDEST_PYTHON)))
    module = app.path.partition(":")[0]
    if not module or not all(part.isidentifier() for part in module.split(".")):
        raise AppPathError(app.path, f"'{module}' is no name of a module")


def _import_app(
    app: App, variables: Mapping[str, str], within: Sequence[str], out: Path, patience_s: float
) -> Mapping[str, Any]:
    """Return what the process that imports the app says: also which files it imports from the folders `within`.

    Raises AppEndsError or AppHangsError.
    """
    folders = [f"--within={folder}" for folder in within]
    interface = f"--interface={app.named_interface}"
    argv = (app.python, "-m", MODULE, app.path, f"--out={out}", interface, *folders)
    order = Order(argv, _environment(app, variables, str(out.parent)), app.cwd, user=acting())
    with Ward(order) as ward:
        until = time.monotonic() + patience_s
        ended = ward.wait(until - time.monotonic())
        try:
            report: Mapping[str, Any] = json.loads(_read_output(out))
        except (OSError, ValueError):
            report = {}
        ward.stop(0.0)
    if report:
        return report
    if ended is None:
        raise AppHangsError(app.path, patience_s, ward.tail.lines(LAST_LINES))
    raise AppEndsError(app.path, ended.sentence, ward.tail.lines(LAST_LINES))


def _read_output(out: Path) -> bytes:
    """Return what the app's process wrote. It could have put anything there: a pipe, a link to another file.

    Raises OSError.
    """
    number = os.open(out, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(number, "rb") as file:
        if not stat.S_ISREG(os.fstat(number).st_mode):
            raise OSError(errno.EINVAL, "not a file", str(out))
        return file.read(MOST_BYTES)


def _environment(app: App, variables: Mapping[str, str], home: str) -> dict[str, str]:
    kept = {name: os.environ[name] for name in INHERITED if name in os.environ}
    tree = str(guest_tree.export())
    return {
        **kept,
        "LANG": "C.UTF-8",
        "HOME": home,
        "TMPDIR": home,
        # What a user installed for themselves lies in their home.
        "PYTHONUSERBASE": str(Path(account.home, ".local")) if (account := acting()) else site.getuserbase(),
        "PATH": path_with(app.python, kept.get("PATH", "")),
        "PYTHONUNBUFFERED": "1",
        "PYTHONPYCACHEPREFIX": str(bytecode(app.python, app.cwd)),
        **variables,
        "PYTHONPATH": import_path(tree, import_path(app.source, variables.get("PYTHONPATH", ""))),
    }


def error_of(app: App, variables: Collection[str], report: Mapping[str, Any]) -> Exception:
    """Return the error for an app with these variables, as its process (`guest/apps/looking.py`) reported it."""
    problem = report["problem"]
    if problem == "attribute":
        return AppNameError(app.path, report["module"], report["name"], report["known"], report["holder"])
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
            hint += f". If that is not it, see that it imports so: {_import_command(module, python, cwd)}"
        return hint
    return (
        "Of your environment it sees only PATH and the like: hand on by --env NAME what its settings need. "
        f"See that it imports so: {_import_command(module, python, cwd)}"
    )


def _import_command(module: str, python: str, cwd: str) -> str:
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
