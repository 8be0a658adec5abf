"""The interpreter that a user brings: what is installed for it, and how it is run without a trace in its folders."""

import hashlib
import json
import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from velodrome.model.errors import InterpreterNotFoundError
from velodrome.run import cache
from velodrome.run.environments.interpreter import Interpreter, find
from velodrome.run.environments.uv import quiet_environment
from velodrome.run.supervision import scratch

MODULE = "velodrome.guest.apps.surroundings"
LONGEST_S = 60.0


@dataclass(frozen=True)
class Theirs:
    """What a user's interpreter has."""

    interpreter: Interpreter
    """The one their environment was made of."""
    packages: Mapping[str, str]
    """Version of everything installed, by normalized name."""
    folders: tuple[str, ...]
    """Where these lie, in the order they are imported from."""


def theirs(python: str, guest_tree: Path) -> Theirs:
    """Ask an interpreter, given its path. Takes about 0.1 s. Raises InterpreterNotFoundError."""
    try:
        said = subprocess.run(
            [python, "-m", MODULE],
            env={
                **quiet_environment(),
                "PYTHONPATH": str(guest_tree),
                "PYTHONPYCACHEPREFIX": str(bytecode(python)),
            },
            cwd=guest_tree,  # what lies in the current folder would be imported first
            capture_output=True,
            text=True,
            check=True,
            timeout=LONGEST_S,
        ).stdout
        told = json.loads(said.splitlines()[-1])  # something that a .pth file starts may print as well
    except (OSError, subprocess.SubprocessError, ValueError, IndexError) as error:
        raise InterpreterNotFoundError(python, f"it does not tell what is installed ({error})") from error
    return Theirs(find(python), told["packages"], tuple(told["folders"]))


def bytecode(python: str, cwd: str = "") -> Path:
    """Return where an interpreter keeps compiled modules instead of beside their sources: these are the user's.

    Those of an app in a temporary folder of ours, a revision, go with it: its path will not be seen again.
    """
    kept = scratch.home().folder / "bytecode" if cwd and scratch.holds(cwd) else cache.folder("bytecode")
    return kept / hashlib.sha256(python.encode()).hexdigest()[:16]


def path_with(python: str, before: str) -> str:
    """Return a PATH on which the programs of the user's environment come first, as if it were activated."""
    return os.pathsep.join(filter(None, (os.path.dirname(python), before)))
