"""The command line as a user runs it, a process of its own, to its end; or within this one, where it starts nothing."""

import contextlib
import os
import subprocess
import sys
from pathlib import Path

from typer.testing import CliRunner

from velodrome.cli._application import application
from velodrome.model.errors import VelodromeError

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


def within(where: Path, *words: str) -> tuple[int, str]:
    """Return exit code and what was written of a command that does nothing: saves a second, as long as its imports."""
    with contextlib.chdir(where):
        invoked = CliRunner().invoke(application(), words)
    error = invoked.exception
    assert error is None or isinstance(error, VelodromeError | SystemExit), error
    if isinstance(error, VelodromeError):
        return error.exit_code, f"{invoked.stdout}{error}"
    return invoked.exit_code, invoked.output
