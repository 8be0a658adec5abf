"""The one place that says how a Python process is started: none imports anything from the folder it is started in.

    begun = own("velodrome.run.drivers.engine_process", "--cpus", "1")
    subprocess.Popen(begun.argv, env=begun.env, cwd=begun.cwd)

`python -m` puts the current folder first on `sys.path`, and so does an empty or relative entry of PYTHONPATH. A
`json.py` or `signal.py` of a user's there would run inside of velodrome, perhaps as root. Four kinds are started:

own         velodrome's own modules, on its own interpreter: `-P`, and no entry of PYTHONPATH that means the folder
alone       files of velodrome's that need nothing but the standard library: `-I -S`
answering   a line of code for an interpreter of the user's: `-I`
guest       modules of the guest tree, on any interpreter from 3.7 on. These know no `-P`, so they run in a folder of
            velodrome's, the tree itself where nothing else is said

A server runs in the folder of its app, or in an empty one (`run/servers/server.py`), and so does what looks at an app
(`run/apps/looking.py`): there the folder is meant to be imported from.
"""

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

HOME = str(Path(__file__).parents[3])
"""The folder that the package `velodrome` lies in."""
FOR_TERMINALS = ("PYTHONSTARTUP", "PYTHONINSPECT")
"""Variables that name what is run before or after a program for somebody at a terminal."""
NAMING_FOLDERS = ("PYTHONHOME", "PYTHONUSERBASE", "PYTHONPYCACHEPREFIX")
"""Variables by which Python finds code; relative ones depend on the current folder."""


@dataclass(frozen=True)
class Start:
    """A process to be started."""

    argv: tuple[str, ...]
    env: Mapping[str, str]
    """The whole environment."""
    cwd: str | None = None
    """None: the folder that this process is in."""


def own(module: str, *arguments: str) -> Start:
    """Return how to run a module of velodrome's as a process of its own, in the current folder."""
    return Start((sys.executable, "-P", "-m", module, *arguments), own_environment())


def own_environment() -> dict[str, str]:
    """Return this process's environment without what would make a Python import from the current folder."""
    kept = {name: value for name, value in os.environ.items() if name not in FOR_TERMINALS}
    for name in NAMING_FOLDERS:
        if not os.path.isabs(kept.get(name, os.sep)):
            del kept[name]
    named = kept.pop("PYTHONPATH", "")
    path = _absolute(named.split(os.pathsep) if named else [])
    return {**kept, "PYTHONPATH": os.pathsep.join(path)} if path else kept


def _absolute(entries: list[str]) -> list[str]:
    """Return the absolute entries; with velodrome's own home, where it was found through one that is not.

    So it is when its source is run as it lies there, `PYTHONPATH=src python -m velodrome`.
    """
    path = [entry for entry in entries if os.path.isabs(entry)]
    try:
        reached = {os.path.abspath(entry) for entry in [*entries, *sys.path[:1]]}
    except OSError:  # the current folder was removed
        return path
    return [*path, HOME] if HOME in reached and HOME not in path else path


def alone(*words: str) -> tuple[str, ...]:
    """Return the arguments that run a file (or `-c`, code) with the standard library and nothing else.

    Whatever the environment says: `-I` does not read it, and `-S` leaves out what is installed. Starts in 20 ms.
    """
    return (sys.executable, "-I", "-S", *words)


def answering(python: str, code: str) -> tuple[str, ...]:
    """Return the arguments that run a line of code on some interpreter, without the current folder or PYTHONPATH."""
    return (python, "-I", "-c", code)


def guest(
    python: str | Path, tree: Path, module: str, *arguments: str, env: Mapping[str, str], cwd: str = ""
) -> Start:
    """Return how to run a module of the guest tree on an interpreter of its environment.

    `env` is the whole environment, but for PYTHONPATH; `cwd` a folder of velodrome's, the tree itself unless given.
    """
    argv = (str(python), "-m", module, *arguments)
    return Start(argv, {**env, "PYTHONPATH": str(tree)}, cwd or str(tree))
