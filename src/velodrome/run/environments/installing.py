"""uv, run for one stack: one at a time for each environment, and with a cure for what it refuses."""

import fcntl
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from velodrome.model.errors import EnvironmentFailedError
from velodrome.run import cache
from velodrome.run.environments.uv import run_uv


@contextmanager
def held(path: Path) -> Iterator[None]:
    """Keep others from making the same environment meanwhile; they wait."""
    with path.open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)  # released with the file, also when its holder is killed
        yield


def packages_in(stack: str, home: Path) -> dict[str, str]:
    """Return the version of every package in an environment, by name. Raises EnvironmentFailedError."""
    said = uv(stack, home, "pip", "list", "--format=json", f"--python={home / 'bin' / 'python'}")
    return {package["name"]: package["version"] for package in json.loads(said)}


def uv(stack: str, home: Path, *arguments: str) -> str:
    """Run uv for a stack and return what it said. Raises EnvironmentFailedError with its last lines and a cure."""
    said = run_uv(arguments, home.parent)
    if said.returncode != 0:
        lines = [line for line in said.stderr.splitlines() if line.strip()][-6:]
        raise EnvironmentFailedError(stack, "its packages could not be installed", _cure(said.stderr), lines)
    return said.stdout


def unsolvable(error: EnvironmentFailedError) -> bool:
    """Return whether there are no versions that go together: the words that say so may be far from uv's last."""
    return error.cure == UNSOLVABLE


UNSOLVABLE = "correct the stack's requires, or choose another interpreter"
CURES = (
    (
        "MYSQLCLIENT_CFLAGS",
        "install what it is built with (Debian: apt install libmariadb-dev pkg-config gcc)",
    ),
    ("No space left on device", f"free some space, or set {cache.VARIABLE} to a folder elsewhere"),
    ("Resource temporarily unavailable", "allow more processes and threads (ulimit -u)"),
    ("Too many open files", "allow more open files (ulimit -n 4096)"),
    ("Permission denied", f"set {cache.VARIABLE} to a folder you may write to"),
    (
        "error sending request",
        "see that the package index can be reached; uv's own settings name another one",
    ),
    ("Failed to fetch", "see that the package index can be reached; uv's own settings name another one"),
    ("No solution found", UNSOLVABLE),
    ("Hash mismatch", "the package index offers other files than the lock names; renew it: make lock"),
    (
        "Failed to build",
        "install what the package needs to be built, or choose an interpreter it has a wheel for",
    ),
)


def _cure(said: str) -> str:
    for sign, cure in CURES:
        if sign in said:
            return cure
    return "what uv says above; then run again"
