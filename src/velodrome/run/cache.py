"""Where velodrome keeps what it can make again: environments and copies of the guest tree."""

import os
import sys
from pathlib import Path

VARIABLE = "VELODROME_CACHE"


def folder(name: str) -> Path:
    """Return (and make) a folder of the cache: $VELODROME_CACHE, else the user's cache of this system."""
    if chosen := os.environ.get(VARIABLE):
        root = Path(chosen).absolute()
    elif sys.platform == "darwin":
        root = Path.home() / "Library" / "Caches" / "velodrome"
    else:
        root = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "velodrome"
    made = root / name
    made.mkdir(parents=True, exist_ok=True)
    return made
