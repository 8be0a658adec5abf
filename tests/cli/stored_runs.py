"""Runs on a disk."""

from pathlib import Path

from velodrome.model import results
from velodrome.model.results import Results


def write(folder: Path, run: Results) -> Path:
    folder.mkdir()
    lines = [results.dump_header(run.header), *map(results.dump, run.trials)]
    (folder / "results.jsonl").write_text("\n".join(lines) + "\n")
    return folder
