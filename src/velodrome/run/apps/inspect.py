"""Inspects a user's own app: imports it in a process of its own, under a warden, within a time, to see what it is.

app = look(App("shop:create_app", "", "/home/me/shop/.venv/bin/python", "/home/me/shop"))
app.interface, app.form

Whatever the app does when it is imported ends with that: what it forks, what goes into the background, what
ignores every signal. What is wrong with an app that cannot be imported, `import_errors` says.
"""

import errno
import json
import os
import site
import stat
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from velodrome.model.app import App
from velodrome.model.errors import (
    AppEndsError,
    AppFolderError,
    AppHangsError,
    AppInterpreterError,
    AppPathError,
)
from velodrome.run.account import acting, hand_over
from velodrome.run.apps.import_errors import error_of
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
    with scratch.held("look") as folder:
        hand_over(folder)
        report = _imported(app, variables, within, folder / "found.json", patience_s)
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


def _imported(
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
            report: Mapping[str, Any] = json.loads(_written(out))
        except (OSError, ValueError):
            report = {}
        ward.stop(0.0)
    if report:
        return report
    if ended is None:
        raise AppHangsError(app.path, patience_s, ward.tail.lines(LAST_LINES))
    raise AppEndsError(app.path, ended.sentence, ward.tail.lines(LAST_LINES))


def _written(out: Path) -> bytes:
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
