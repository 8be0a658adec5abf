"""The run of a study that a benchmark looks into: raced now, or one that there is."""

import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from velodrome.model.results import Results
from velodrome.run.racing.store import read


def results(study: Path, folders: Sequence[str]) -> Results:
    """Return what is in the first folder named; without one, run the study first."""
    if folders:
        return read(Path(folders[0]))
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "run"
        command = ["-m", "velodrome", "run", str(study), "--out", str(folder), "--wait"]
        subprocess.run([sys.executable, *command], check=True)
        return read(folder)
