"""Looks at a user's own app: imported in a process of its own, under a warden, within a time, and told what it is.

found = look(Named("shop:create_app", "/home/me/shop/.venv/bin/python", "/home/me/shop"))
found.interface, found.form

Whatever the app does when it is imported ends with that: what it forks, what goes into the background, what
ignores every signal.
"""

import errno
import json
import os
import site
import stat
import time
from collections.abc import Mapping
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
from velodrome.run.apps.curing import Lacking, cure
from velodrome.run.apps.serving import import_path
from velodrome.run.environments import guest_tree
from velodrome.run.environments.interpreter import find
from velodrome.run.environments.theirs import bytecode, path_with
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
    interpreter = find(named.python)
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
