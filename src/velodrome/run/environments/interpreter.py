"""Interpreters: from what a user names (`3.12`, a path, nothing) to the real executable and its version."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from velodrome.model.errors import InterpreterNotFoundError
from velodrome.run.account import Account, acting, current_process, current_variables
from velodrome.run.environments.uv import find_uv, quiet_environment
from velodrome.run.faults import refusals
from velodrome.run.supervision.python import answering

ASK = (
    "import sys, json, platform; print(json.dumps([getattr(sys, '_base_executable', sys.executable), "
    "platform.python_version(), list(sys.version_info[:2]), platform.python_implementation()]))"
)


@dataclass(frozen=True)
class Interpreter:
    """A Python on this machine."""

    path: Path
    """The interpreter itself: neither a shim (pyenv), which confuses uv, nor one of a virtual environment."""
    version: str
    """Full, e.g. `3.12.1`."""
    minor: tuple[int, int]
    implementation: str
    """`CPython`, `PyPy`, …"""


def find(asked: str | None = None) -> Interpreter:
    """Return the interpreter meant by a path, a version such as `3.12`, or None: the one velodrome runs on.

    It is run once, as whom servers run as. Raises InterpreterNotFoundError.
    """
    return _found(asked, acting())


@cache
def _found(asked: str | None, _account: Account | None) -> Interpreter:
    if asked is None:
        return _ask(sys.executable, sys.executable)
    if os.sep in asked:
        return _ask(asked, asked)
    for candidate in (_by_uv(asked), _by_pyenv(asked)):
        if candidate is not None:
            return _ask(candidate, asked)
    raise InterpreterNotFoundError(asked, "there is none of that version on this machine")


def _ask(path: str, asked: str) -> Interpreter:
    try:
        with refusals():  # which are no fault of what was asked for
            said = subprocess.run(
                answering(path, ASK),
                capture_output=True,
                text=True,
                timeout=30,
                check=False,
                env={**quiet_environment(), **current_variables()},
                **current_process(),
            )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise InterpreterNotFoundError(asked, _why(path, error)) from error
    if said.returncode != 0:
        last = said.stderr.strip().splitlines()[-1:] or [f"exit status {said.returncode}"]
        raise InterpreterNotFoundError(asked, f"it does not run ({last[0]})")
    try:
        executable, version, minor, implementation = json.loads(said.stdout)
    except ValueError as error:
        raise InterpreterNotFoundError(asked, "it does not behave like a Python interpreter") from error
    return Interpreter(Path(executable), version, (minor[0], minor[1]), implementation)


def _why(path: str, error: Exception) -> str:
    account = acting()
    folder = account and (account.closed(path) or account.closed(os.path.realpath(path)))
    if account and folder:
        return (
            f"user {account.name}, whom servers run as, may not enter {folder}. Name an interpreter that this user can "
            "run, such as --python /usr/bin/python3, or another user with --user"
        )
    return f"it does not run ({error})"


def _by_uv(version: str) -> str | None:
    said = subprocess.run(
        [find_uv(), "python", "find", "--no-python-downloads", "--no-project", "--system", version],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        cwd="/",  # a uv.toml of the current folder is not for us
        env={**quiet_environment(), **current_variables()},
        **current_process(),
    )
    return said.stdout.strip() or None if said.returncode == 0 else None


def _by_pyenv(version: str) -> str | None:
    """Look where pyenv keeps interpreters; its shims answer only for the versions that are switched on."""
    root = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    if not root.is_dir():
        return None
    found = [home for home in root.iterdir() if home.name == version or home.name.startswith(version + ".")]
    newest = sorted(found, key=lambda home: [int(part) for part in home.name.split(".") if part.isdigit()])
    return str(newest[-1] / "bin" / "python") if newest else None
