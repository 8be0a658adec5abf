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
from velodrome.run.account import acting, current_process, current_variables, hand_over
from velodrome.run.environments.interpreter import Interpreter, find
from velodrome.run.environments.uv import quiet_environment
from velodrome.run.faults import refusals
from velodrome.run.supervision import scratch
from velodrome.run.supervision.python import guest

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
    env = {
        **quiet_environment(),
        **current_variables(),
        "PYTHONPYCACHEPREFIX": str(bytecode(python)),
    }
    begun = guest(python, guest_tree, MODULE, env=env)
    try:
        with refusals():  # which are no fault of what was asked for
            said = subprocess.run(
                begun.argv,
                env=begun.env,
                cwd=begun.cwd,
                capture_output=True,
                text=True,
                check=True,
                timeout=LONGEST_S,
                **current_process(),
            ).stdout
        told = json.loads(said.splitlines()[-1])  # something that a .pth file starts may print as well
    except (OSError, subprocess.SubprocessError, ValueError, IndexError) as error:
        raise InterpreterNotFoundError(python, f"it does not tell what is installed ({error})") from error
    return Theirs(find(python), told["packages"], tuple(told["folders"]))


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
