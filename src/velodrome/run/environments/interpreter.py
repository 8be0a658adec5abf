"""Interpreters: from what a user names (`3.12`, a path, nothing) to the real executable, its version and its packages.

A user's own interpreter reports what is installed for it (`theirs`), and leaves no trace in its folders (`bytecode`).
"""

import functools
import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from uv import find_uv_bin

from velodrome.model.errors import InterpreterNotFoundError, UvMissingError
from velodrome.run import cache
from velodrome.run.account import Account, acting, current_process, current_variables, hand_over
from velodrome.run.faults import refusals
from velodrome.run.supervision import scratch
from velodrome.run.supervision.python import answering, guest, guest_answer

ASK = (
    "import sys, json, platform; print(json.dumps([getattr(sys, '_base_executable', sys.executable), "
    "platform.python_version(), list(sys.version_info[:2]), platform.python_implementation()]))"
)


FOREIGN = (
    "VIRTUAL_ENV",
    "CONDA_PREFIX",
    "PYTHONPATH",
    "PYTHONHOME",
    "PYTHONSTARTUP",
    "__PYVENV_LAUNCHER__",
    "UV_PYTHON",
)
"""Variables by which the environment velodrome itself runs in would leak into interpreters that it asks."""


@dataclass(frozen=True)
class Interpreter:
    """A Python on this machine."""

    path: Path
    """The interpreter itself: neither a shim (pyenv), which confuses uv, nor that of a virtual environment."""
    version: str
    """Full, e.g. `3.12.1`."""
    minor: tuple[int, int]
    implementation: str
    """`CPython`, `PyPy`, …"""


@functools.cache
def find_uv() -> str:
    """Return the path of uv, installed with velodrome or else on PATH. Raises UvMissingError."""
    try:
        return os.fspath(find_uv_bin())
    except FileNotFoundError:
        found = shutil.which("uv")
        if found is None:
            raise UvMissingError from None
        return found


def quiet_environment() -> dict[str, str]:
    """Return this process's environment without what would lead an interpreter astray."""
    return {key: value for key, value in os.environ.items() if key not in FOREIGN}


def find_interpreter(wanted: str | None = None) -> Interpreter:
    """Return the interpreter meant by a path, a version such as `3.12`, or None: the interpreter velodrome runs on.

    It is run once, as whom servers run as. Raises InterpreterNotFoundError.
    """
    return _find(wanted, acting())


@functools.cache
def _find(wanted: str | None, _account: Account | None) -> Interpreter:
    if wanted is None:
        return _query(sys.executable, sys.executable)
    if os.sep in wanted:
        return _query(wanted, wanted)
    for candidate in (_by_uv(wanted), _by_pyenv(wanted)):
        if candidate is not None:
            return _query(candidate, wanted)
    raise InterpreterNotFoundError(wanted, "there is none of that version on this machine")


def _query(path: str, wanted: str) -> Interpreter:
    try:
        with refusals():  # which are no fault of the interpreter wanted
            finished = subprocess.run(
                answering(path, ASK),
                capture_output=True,
                text=True,
                timeout=30,
                check=False,
                env={**quiet_environment(), **current_variables()},
                **current_process(),
            )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise InterpreterNotFoundError(wanted, _why(path, error)) from error
    if finished.returncode != 0:
        last = finished.stderr.strip().splitlines()[-1:] or [f"exit status {finished.returncode}"]
        raise InterpreterNotFoundError(wanted, f"it does not run ({last[0]})")
    try:
        executable, version, minor, implementation = json.loads(finished.stdout)
    except ValueError as error:
        raise InterpreterNotFoundError(wanted, "it does not behave like a Python interpreter") from error
    return Interpreter(Path(executable), version, (minor[0], minor[1]), implementation)


def _why(path: str, error: Exception) -> str:
    account = acting()
    folder = account and (account.first_closed(path) or account.first_closed(os.path.realpath(path)))
    if account and folder:
        return (
            f"user {account.name}, as which servers run, may not enter {folder}. Name an interpreter that this user "
            "can run, such as --python /usr/bin/python3, or another user with --user"
        )
    return f"it does not run ({error})"


def _by_uv(version: str) -> str | None:
    finished = subprocess.run(
        [find_uv(), "python", "find", "--no-python-downloads", "--no-project", "--system", version],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        cwd="/",  # a uv.toml of the current folder is not for us
        env={**quiet_environment(), **current_variables()},
        **current_process(),
    )
    return finished.stdout.strip() or None if finished.returncode == 0 else None


def _by_pyenv(version: str) -> str | None:
    """Look where pyenv keeps interpreters; its shims answer only for the versions that are switched on."""
    root = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    if not root.is_dir():
        return None
    found = [home for home in root.iterdir() if home.name == version or home.name.startswith(version + ".")]
    newest = sorted(found, key=lambda home: [int(part) for part in home.name.split(".") if part.isdigit()])
    return str(newest[-1] / "bin" / "python") if newest else None


MODULE = "velodrome.guest.apps.surroundings"
LONGEST_S = 60.0


@dataclass(frozen=True)
class Theirs:
    """What a user's interpreter has."""

    interpreter: Interpreter
    """The interpreter their environment was made of."""
    packages: Mapping[str, str]
    """Version of everything installed, by normalized name."""
    folders: tuple[str, ...]
    """Where these lie, in the order they are imported from."""


def theirs(python: str, guest_tree: Path) -> Theirs:
    """Ask an interpreter, given its path. Takes about 0.1 s. Raises InterpreterNotFoundError."""
    env = {
        **quiet_environment(),
        **current_variables(),
        "PYTHONPYCACHEPREFIX": str(bytecode(python)),
    }
    begun = guest(python, guest_tree, MODULE, env=env)
    try:
        with refusals():  # which are no fault of the interpreter wanted
            finished = guest_answer(begun, LONGEST_S)
        finished.check_returncode()
        answer = json.loads(
            finished.stdout.splitlines()[-1]
        )  # something that a .pth file starts may print as well
    except (OSError, subprocess.SubprocessError, ValueError, IndexError) as error:
        raise InterpreterNotFoundError(python, f"it does not report what is installed ({error})") from error
    return Theirs(find_interpreter(python), answer["packages"], tuple(answer["folders"]))


def bytecode(python: str, cwd: str = "") -> Path:
    """Return where an interpreter keeps compiled modules instead of beside their sources: these are the user's.

    Those of an app in a temporary folder of ours, a revision, go with it: its path will not be seen again.
    """
    passing = bool(cwd) and scratch.holds(cwd)
    place = scratch.home().folder / "bytecode" if passing else cache.folder("bytecode")
    kept = place / hashlib.sha256(python.encode()).hexdigest()[:16]
    if not passing:
        cache.use(kept, python)
    if acting() is not None:
        kept.mkdir(parents=True, exist_ok=True)
        hand_over(kept)
    return kept


def path_with(python: str, before: str) -> str:
    """Return a PATH on which the programs of the user's environment come first, as if it were activated."""
    return os.pathsep.join(filter(None, (os.path.dirname(python), before)))
