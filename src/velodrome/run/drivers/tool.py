"""A load generator that others wrote: where it is, in which version, and how it is installed.

found = wrk.tool.find()
found.path, found.version
"""

import os
import re
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from velodrome.model.errors import DriverMissingError, DriverTooOldError

PATIENCE_S = 10.0
"""To tell its version, which takes milliseconds."""
NUMBERS = re.compile(r"\d+(?:\.\d+)+")


@dataclass(frozen=True)
class Found:
    """One that is installed here and can be driven."""

    path: str
    version: str


@dataclass(frozen=True)
class Tool:
    """What is known of a generator."""

    name: str
    about: str
    """What it can carry, in a line."""
    oldest: str
    """The oldest version whose arguments and output are as here."""
    cure: str
    """How to install it."""
    version_argument: str = "--version"
    version_in: Callable[[str, str], str] = lambda said, path: said
    """Given what it said and where it is, return the text that holds its version."""

    def find(self) -> Found:
        """Return where it is. Raises DriverMissingError or DriverTooOldError, both with the cure."""
        path = _where(self.name)
        if path is None:
            raise DriverMissingError(self.name, self.cure)
        version = self.version_of(path)
        if not version or _numbers(version) < _numbers(self.oldest):
            raise DriverTooOldError(self.name, path, version, self.oldest, self.cure)
        return Found(path, version)

    def version_of(self, path: str) -> str:
        """Return the version of the program at a path; empty when it does not tell one."""
        return _version(self, path, os.stat(path).st_mtime_ns)


def places() -> list[str]:
    """Return the folders that are searched, in order: PATH, then where Go and Cargo put programs."""
    home = Path.home()
    found = os.environ.get("PATH", os.defpath).split(os.pathsep)
    found += [os.environ.get("GOBIN", "")]
    found += [os.path.join(part, "bin") for part in os.environ.get("GOPATH", "").split(os.pathsep) if part]
    found += [str(home / "go" / "bin"), os.path.join(os.environ.get("CARGO_HOME", ""), "bin")]
    return [place for place in [*found, str(home / ".cargo" / "bin")] if os.path.isabs(place)]


def _where(name: str) -> str | None:
    return shutil.which(name, path=os.pathsep.join(places()))


@lru_cache(maxsize=32)
def _version(tool: Tool, path: str, changed_ns: int) -> str:
    """Ask a program for its version; empty when it does not tell one. `changed_ns` makes a new one be asked."""
    try:
        done = subprocess.run(
            [path, tool.version_argument],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=PATIENCE_S,
            check=False,  # wrk tells its version and ends with status 1
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    said = (done.stdout + done.stderr).decode(errors="replace")
    number = NUMBERS.search(tool.version_in(said, path))
    return number.group() if number else ""


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))
