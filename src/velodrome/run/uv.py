"""uv: where it is, and how it is run from here."""

import os
import shutil
import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from uv import find_uv_bin

from velodrome.model.errors import UvMissingError

FOREIGN = (
    "VIRTUAL_ENV",
    "CONDA_PREFIX",
    "PYTHONPATH",
    "PYTHONHOME",
    "PYTHONSTARTUP",
    "__PYVENV_LAUNCHER__",
    "UV_PYTHON",
)
"""Variables by which the environment velodrome itself runs in would leak into those it makes."""


@cache
def find_uv() -> str:
    """Return the path of uv, installed with velodrome or else on PATH. Raises UvMissingError."""
    try:
        return os.fspath(find_uv_bin())
    except FileNotFoundError:
        found = shutil.which("uv")
        if found is None:
            raise UvMissingError from None
        return found


def quiet_environment() -> dict[str, str]:
    """Return this process's environment without what would lead uv or an interpreter astray."""
    return {key: value for key, value in os.environ.items() if key not in FOREIGN}


def run_uv(arguments: Sequence[str], cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run uv to its end and return what it said; the caller judges the exit status.

    `cwd` is a folder of velodrome's own, so that no project file near the user's decides what uv does;
    the user's own configuration of uv (mirrors, certificates) counts.
    """
    return subprocess.run(
        [find_uv(), "--no-progress", "--color=never", *arguments],
        cwd=cwd,
        env=quiet_environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
