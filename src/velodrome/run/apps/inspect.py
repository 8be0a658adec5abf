"""Inspects a user's own app: imports it in a process of its own, under a warden, within a time, and returns what it is.

found = look(Named("shop:create_app", "/home/me/shop/.venv/bin/python", "/home/me/shop"))
found.interface, found.form

Whatever the app does when it is imported ends with that: what it forks, what goes into the background, what
ignores every signal. Of an app that raises, `cure` says what it lacked.
"""

import errno
import json
import os
import shlex
import site
import stat
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from velodrome.model import secrets
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
from velodrome.run.apps.serving import import_path
from velodrome.run.environments import guest_tree
from velodrome.run.environments.interpreter import bytecode, find_interpreter, path_with
from velodrome.run.servers import INHERITED
from velodrome.run.supervision import scratch
from velodrome.run.supervision.ward import Order, Ward

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


def cure(module: str, python: str, cwd: str, lacking: Lacking, given: Sequence[str] = ()) -> str:
    """Return a sentence to whoever named that module of an app, for that interpreter, in that folder.

    `given` are the variables they hand on.
    """
    if lacking.variable is not None:
        return _of_variable(lacking.variable)
    if lacking.missing is not None:
        return _of_module(module, python, cwd, lacking.missing)
    ours = _ours(lacking, given)
    if lacking.unanswered:
        where = (
            f": of your environment it lacks what it asked for: {_handed(ours)}" if ours else " with --env"
        )
        return (
            "Something it needs does not answer: start it before, also with --setup 'docker compose up -d --wait', "
            f"or say where it is{where}"
        )
    if ours:
        said = f"Of your environment it sees only what you hand on, and it looked for more: {_handed(ours)}"
        if not lacking.speaks:
            said += f". If that is not it, see that it imports so: {_tried(module, python, cwd)}"
        return said
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


def _ours(lacking: Lacking, given: Sequence[str]) -> list[str]:
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


MODULE = "velodrome.guest.apps.looking"
PATIENCE_S = 30.0
"""For one import. Large sites take several seconds."""
LAST_LINES = 8
MOST_BYTES = 64 << 20
"""Of what an app's process writes about it: names of all it imports, some 100 kB for a large site."""
OLDEST_PYTHON = (3, 8)
"""The oldest whose installed packages can be told (importlib.metadata)."""


@dataclass(frozen=True)
class Named:
    """Which app is meant, and where: plain data."""

    app: str
    """`module:attribute`, `module`, or a call: `module:create_app('test')`."""
    python: str
    """Path of its interpreter."""
    cwd: str
    variables: Mapping[str, str] = field(default_factory=dict)
    interface: str = ""
    """Told by its user; empty: to be found out."""
    source: str = ""
    """See `App.source`."""
    within: tuple[str, ...] = ()
    """Folders of which it is to be told what it imports from them."""


@dataclass(frozen=True)
class Found:
    """What it is."""

    path: str
    """`module:attribute`, also where a module alone was named."""
    interface: str
    form: str
    """See `App.form`."""
    told: str
    """For a sentence: `a Flask`."""
    served: Mapping[str, str]
    packages: Mapping[str, str]
    """What is installed beside it: normalized name to version."""
    origin: str
    """Where the package of its module is imported from; empty: that cannot be told."""
    imported: tuple[str, ...]
    """Files in the folders of `within` that were imported, but for what is installed."""


def look(named: Named, patience_s: float = PATIENCE_S) -> Found:
    """Import an app and say what it is. Raises a UsageError of `model/errors/apps.py`, or InterpreterNotFoundError."""
    _refuse_impossible(named)
    with scratch.held("look") as folder:
        hand_over(folder)
        out = folder / "found.json"
        told = _imported(named, out, patience_s)
    if "problem" in told:
        raise _error(named, told)
    every = {name: told[name] for name in Found.__dataclass_fields__}
    return Found(**{**every, "imported": tuple(every["imported"])})


def _refuse_impossible(named: Named) -> None:
    if not os.path.isdir(named.cwd):
        reason = "it is no folder" if os.path.exists(named.cwd) else "there is no such folder"
        raise AppFolderError(named.cwd, reason)
    interpreter = find_interpreter(named.python)
    if interpreter.minor < OLDEST_PYTHON:
        raise AppInterpreterError(named.python, interpreter.version, ".".join(map(str, OLDEST_PYTHON)))
    module = named.app.partition(":")[0]
    if not module or not all(part.isidentifier() for part in module.split(".")):
        raise AppPathError(named.app, f"'{module}' is no name of a module")


def _imported(named: Named, out: Path, patience_s: float) -> Mapping[str, Any]:
    """Return what the process that imports the app tells. Raises AppEndsError or AppHangsError."""
    within = [f"--within={folder}" for folder in named.within]
    argv = (named.python, "-m", MODULE, named.app, f"--out={out}", f"--interface={named.interface}", *within)
    order = Order(argv, _environment(named, str(out.parent)), named.cwd, user=acting())
    with Ward(order) as ward:
        until = time.monotonic() + patience_s
        ended = ward.wait(until - time.monotonic())
        try:
            told: Mapping[str, Any] = json.loads(_written(out))
        except (OSError, ValueError):
            told = {}
        ward.stop(0.0)
    if told:
        return told
    if ended is None:
        raise AppHangsError(named.app, patience_s, ward.tail.lines(LAST_LINES))
    raise AppEndsError(named.app, ended.sentence, ward.tail.lines(LAST_LINES))


def _written(out: Path) -> bytes:
    """Return what the app's process wrote. It could have put anything there: a pipe, a link to another file.

    Raises OSError.
    """
    number = os.open(out, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(number, "rb") as file:
        if not stat.S_ISREG(os.fstat(number).st_mode):
            raise OSError(errno.EINVAL, "not a file", str(out))
        return file.read(MOST_BYTES)


def _environment(named: Named, home: str) -> dict[str, str]:
    kept = {name: os.environ[name] for name in INHERITED if name in os.environ}
    tree = str(guest_tree.export())
    return {
        **kept,
        "LANG": "C.UTF-8",
        "HOME": home,
        "TMPDIR": home,
        # What a user installed for themselves lies in their home.
        "PYTHONUSERBASE": str(Path(account.home, ".local")) if (account := acting()) else site.getuserbase(),
        "PATH": path_with(named.python, kept.get("PATH", "")),
        "PYTHONUNBUFFERED": "1",
        "PYTHONPYCACHEPREFIX": str(bytecode(named.python, named.cwd)),
        **named.variables,
        "PYTHONPATH": import_path(tree, import_path(named.source, named.variables.get("PYTHONPATH", ""))),
    }


def _error(named: Named, told: Mapping[str, Any]) -> Exception:
    problem = told["problem"]
    if problem == "attribute":
        return AppNameError(named.app, told["module"], told["name"], told["known"])
    if problem == "unreadable":
        return AppPathError(
            named.app, f"'{told['attribute']}' is neither a name nor a call with plain values"
        )
    if problem == "unfit":
        return AppUnfitError(named.app, told["told"], told["needs"], awaited=told["awaited"])
    lines = [secrets.mask(line) for line in told["lines"]]
    if problem == "exit":
        return AppEndsError(named.app, f"sys.exit({told['code']})", lines)
    seen = told["named"], told["fields"], told["asked_for"]
    lacking = Lacking(told["missing"], told["variable"], told["unanswered"], *map(tuple, seen))
    how = cure(named.app.partition(":")[0], named.python, named.cwd, lacking, tuple(named.variables))
    return AppRaisesError(named.app, lines, how)
