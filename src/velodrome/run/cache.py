"""Where velodrome keeps what it can make again: environments and copies of the guest tree."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from velodrome.model.errors import CacheError, NoHomeError
from velodrome.run.supervision.account import acting

VARIABLE = "VELODROME_CACHE"
SHARED = Path("/var/cache/velodrome")
"""Where root keeps it when servers run as an ordinary user: root's own, for others to read."""


def root() -> Path:
    """Return where the cache is, whether it is there or not: $VELODROME_CACHE, else the user's cache of this system.

    Raises NoHomeError.
    """
    if chosen := os.environ.get(VARIABLE):
        return Path(chosen).absolute()
    if acting() is not None:
        return SHARED  # the home of root is closed to whom servers run as
    if sys.platform != "darwin" and (kept := os.environ.get("XDG_CACHE_HOME")):
        return Path(kept).absolute() / "velodrome"
    try:
        home = Path.home()
    except RuntimeError as error:
        raise NoHomeError(os.getuid()) from error
    return (home / "Library" / "Caches" if sys.platform == "darwin" else home / ".cache") / "velodrome"


def folder(name: str) -> Path:
    """Return (and make) a folder of the cache, which can be written. Raises CacheError, NoHomeError."""
    made = root() / name
    with written(made):
        made.mkdir(parents=True, exist_ok=True)
        # One that is there already may be somebody else's, or of a file system that is mounted read-only.
        if not os.access(made, os.W_OK | os.X_OK):
            probe = made / f".written-{os.getpid()}"
            probe.touch()
            probe.unlink()
    return made


@contextmanager
def written(path: Path) -> Iterator[None]:
    """Say of what the system refuses within the block that the cache cannot be written. Raises CacheError."""
    try:
        yield
    except OSError as error:
        raise CacheError(str(path), error.errno or 0) from error
