"""Guest programs of experiments: what they run in, and what they tell.

made = environment_of("tornado", settings, lab)
facts = told(made, lab, "velodrome.guest.experiments.blocked_loop", "crowd", "--tasks=100")
"""

import json
import subprocess
from collections.abc import Mapping
from typing import Any

from velodrome.guest import catalog
from velodrome.model.claim import Setting
from velodrome.model.errors import ProgramError
from velodrome.run.account import current_process, hand_over
from velodrome.run.environments.environment import Environment
from velodrome.run.lab import Lab
from velodrome.run.supervision import scratch
from velodrome.run.supervision.python import guest

VERSIONS: Mapping[str, Setting] = {"python": "", "packages": ()}
"""Settings to run on another interpreter, with other versions: `packages = ["tornado=5.1.1"]`."""
PROGRAM_S = 45.0
"""A program may take this long; its experiment's deadline is longer."""


def environment_of(name: str, settings: Mapping[str, Setting], lab: Lab) -> Environment:
    """Return the environment of a stack, with the versions of it that the settings set.

    Raises KeyError for a stack that is not there, EnvironmentFailedError, InterpreterNotFoundError.
    """
    stack = lab.stacks[name]
    asked = settings.get("packages", ())
    set_to = dict(line.split("=", 1) for line in (asked if isinstance(asked, tuple) else ()))
    needed = {line.partition("==")[0].lower() for line in catalog.requires(stack)}
    packages = {package: version for package, version in set_to.items() if package.lower() in needed}
    return lab.environment(stack, str(settings.get("python", "")) or None, packages)


def told(made: Environment, lab: Lab, module: str, *arguments: str, limit_s: float = PROGRAM_S) -> Any:
    """Run a guest program to its end and return the JSON of its last line. Raises ProgramError."""
    with scratch.held("program") as folder:
        hand_over(folder)
        env = {"PYTHONNOUSERSITE": "1", "HOME": str(folder), "LANG": "C.UTF-8"}
        begun = guest(made.python, lab.guest_tree, module, *arguments, env=env, cwd=str(folder))
        try:
            done = subprocess.run(
                begun.argv,
                capture_output=True,
                text=True,
                timeout=limit_s,
                check=False,
                cwd=begun.cwd,
                env=begun.env,
                **current_process(),
            )
        except subprocess.TimeoutExpired as error:
            raise ProgramError(module, f"it did not end within {limit_s:g} s") from error
    lines = done.stdout.strip().splitlines()
    try:
        return json.loads(lines[-1])
    except (IndexError, ValueError) as error:
        last = done.stderr.strip().splitlines()[-3:]
        raise ProgramError(module, f"exit status {done.returncode}", tuple(last)) from error
