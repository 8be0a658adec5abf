"""How long one turn of the recipes' CPU loop takes on an interpreter: asked once, told to all its servers.

Servers that are compared must do the same work. One that calibrated itself beside a busy neighbour would do
less of it and win.
"""

import subprocess
from pathlib import Path

from velodrome.model.errors import CalibrationError
from velodrome.run.account import current_process
from velodrome.run.environments.environment import Environment
from velodrome.run.supervision import python

MODULE = "velodrome.guest.codegen.steps"
TIMES = 3
"""The fastest of so many processes counts: noise only adds."""
LONGEST_S = 30.0


def turn_ns(environment: Environment, guest_tree: Path) -> str:
    """Return the nanoseconds of one turn, as text. Takes about half a second. Raises CalibrationError."""
    return min((_once(environment, guest_tree) for _ in range(TIMES)), key=float)


def _once(environment: Environment, guest_tree: Path) -> str:
    try:
        begun = python.guest(environment.python, guest_tree, MODULE, env={"PYTHONNOUSERSITE": "1"})
        told = subprocess.run(
            begun.argv,
            env=begun.env,
            cwd=begun.cwd,
            capture_output=True,
            text=True,
            check=True,
            timeout=LONGEST_S,
            **current_process(),
        ).stdout.strip()
        float(told)
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        raise CalibrationError(str(environment.python), str(error)) from error
    return told
