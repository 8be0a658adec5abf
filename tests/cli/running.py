"""The command line as a user runs it: a process of its own, to its end."""

import os
import subprocess
import sys
from pathlib import Path

Ended = subprocess.CompletedProcess[str]


def velodrome(where: Path | None, *words: str, **variables: str) -> Ended:
    """Run `velodrome WORDS` in a folder (None: this one), with environment variables beside ours."""
    return subprocess.run(
        [sys.executable, "-m", "velodrome", *words],
        capture_output=True,
        text=True,
        check=False,
        timeout=110,
        cwd=where,
        env={**os.environ, **variables},
    )


def with_own_cache(where: Path, *words: str) -> Ended:
    """Run it in a folder that holds its cache too."""
    return velodrome(where, *words, VELODROME_CACHE=str(where / "cache"))
