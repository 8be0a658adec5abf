"""uv: where it is, and how it is run from here."""

import os
import shutil
import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from tempfile import TemporaryFile

from uv import find_uv_bin

from velodrome.model.errors import UvMissingError
from velodrome.run.supervision.ward import Order, Ward

LAST_LINES = 200
"""Of what uv says on standard error: more than it ever tells about one failure."""

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
    """Run uv to its end and return what it said; the caller judges the exit status. Ends when velodrome does.

    `cwd` is a folder of velodrome's own, so that no project file near the user's decides what uv does;
    the user's own configuration of uv (mirrors, certificates) counts.
    """
    argv = (find_uv(), "--no-progress", "--color=never", *arguments)
    with TemporaryFile() as said, Ward(Order(argv, quiet_environment(), str(cwd)), said.fileno()) as ward:
        while (ended := ward.wait(3600.0)) is None:
            continue
        ward.stop()
        said.seek(0)
        out = said.read().decode(errors="replace")
        return subprocess.CompletedProcess(argv, ended.code, out, "\n".join(ward.tail.lines(LAST_LINES)))
