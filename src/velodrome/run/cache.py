"""Where velodrome keeps what it can make again: environments and copies of the guest tree."""

import os
import sys
from pathlib import Path

from velodrome.run.supervision.account import acting

VARIABLE = "VELODROME_CACHE"
SHARED = Path("/var/cache/velodrome")
"""Where root keeps it when servers run as an ordinary user: root's own, for others to read."""


def folder(name: str) -> Path:
    """Return (and make) a folder of the cache: $VELODROME_CACHE, else the user's cache of this system."""
    if chosen := os.environ.get(VARIABLE):
        root = Path(chosen).absolute()
    elif acting() is not None:
        root = SHARED  # the home of root is closed to whom servers run as
    elif sys.platform == "darwin":
        root = Path.home() / "Library" / "Caches" / "velodrome"
    else:
        root = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "velodrome"
    made = root / name
    made.mkdir(parents=True, exist_ok=True)
    return made
