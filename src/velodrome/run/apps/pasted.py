"""What is pasted, started as it stands: the lines of a shell that a user is given to deploy their app.

    serving = as_it_stands(serving, app, lines, environment)
    with Server(serving, bounds, cpus) as server: ...

A user installs what the first line names, in the versions that were measured, and runs the rest in the app's folder,
with their environment's `python` first in PATH. So it is here, but for two things: what would be installed is there
already, and a file that the lines write is written into a copy of the folder, made of links, instead of beside the
user's own files. Nothing of velodrome is seen by the process: no guest tree, none of its variables.
"""

import os
import re
import shlex
from collections.abc import Mapping
from dataclasses import replace

from velodrome.model.app import App
from velodrome.run.environments.environment import Environment
from velodrome.run.servers import Serving

INSTALLS = "python -m pip install "
_WRITES = re.compile(r"^cat > (\S+) <<'END'$", re.MULTILINE)


def unlike(lines: str, packages: Mapping[str, str]) -> str:
    """Return which packages would be installed in other versions than those that are there; empty: none."""
    first = lines.partition("\n")[0]
    pins = shlex.split(first.removeprefix(INSTALLS)) if first.startswith(INSTALLS) else []
    named = (pin.partition("==") for pin in pins)
    other = [f"{name}=={version}" for name, _, version in named if packages.get(_normal(name)) != version]
    return ", ".join(other)


def _normal(name: str) -> str:
    """Return a package's name as environments list it, without extras."""
    return re.sub(r"[-_.]+", "-", name.partition("[")[0]).lower()


def script(lines: str, folder: str = "") -> str:
    """Return what a POSIX shell is given: the lines without those that install, and the server in the shell's place.

    With a `folder`, everything in it is linked into the current folder first; what the lines write replaces a link.
    """
    every = lines.split("\n")
    if every[0].startswith(INSTALLS):
        del every[0]
    links = []
    if folder:
        inside = shlex.quote(folder)
        links = [f'for one in {inside}/* {inside}/.[!.]*; do if [ -e "$one" ]; then ln -s "$one" .; fi; done']
        links += [f"rm -f {shlex.quote(name)}" for name in _WRITES.findall(lines)]
    return "\n".join([*links, *every[:-1], f"exec env {every[-1]}"])


def as_it_stands(raced: Serving, app: App, lines: str, environment: Environment) -> Serving:
    """Return how the lines are run, given how the app is served in a race."""
    theirs = (*app.variables, *(party.variable for party in app.third_parties))
    # Where the interpreter keeps bytecode is no part of what is measured, and their folder stays as it is.
    kept = {name: raced.variables[name] for name in (*theirs, "PYTHONPYCACHEPREFIX")}
    path = os.pathsep.join([str(environment.python.parent), raced.variables["PATH"]])
    writes = bool(_WRITES.search(lines))
    return replace(
        raced,
        cwd="" if writes else app.cwd,
        variables={**kept, "PATH": path},
        shell=script(lines, app.cwd if writes else ""),
    )
