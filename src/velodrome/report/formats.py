"""The files that a judged run gets: each format is a module here, or comes from another package.

    report = Format("markdown", "report.md", write)      a module-level value, in a module of this folder or behind an
                                                          entry point of the group `velodrome.reports`

A format is given all there is, so that it can show what it likes; it may refuse with OutputError only.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from velodrome.guest import plugins
from velodrome.model.errors import OutputError
from velodrome.model.measurement import Failed, Measurement
from velodrome.model.verdict import Verdict


@dataclass(frozen=True)
class JudgedRun:
    """What a report is made from."""

    verdict: Verdict
    results: Sequence[Measurement | Failed]
    header: Mapping[str, Any]
    """The first line of results.jsonl as plain data."""
    stacks: Mapping[str, str] = field(default_factory=dict)
    """Collapsed stacks of the profiles, by the path that the verdict names."""


@dataclass(frozen=True)
class Format:
    """A format of reports."""

    name: str
    file: str
    """Its name in the folder of the run."""
    write: Callable[[Path, JudgedRun], None]
    """Write the file whole or not at all. Raises OutputError."""


FORMATS = plugins.Kind("report", Format, "velodrome.report", "velodrome.reports", mixed=True)


def write_reports(folder: Path, run: JudgedRun) -> dict[str, str]:
    """Write every format into the folder of a run.

    Returns for each format that could not be loaded why not, by where it comes from. Raises the first OutputError
    after all were tried: where a large one has no room, a small one may have.
    """
    broken = {}
    unwritten = []
    for entry in plugins.entries(FORMATS):
        if entry.error:
            broken[entry.origin] = entry.error
            continue
        try:
            entry.thing.write(folder / entry.thing.file, run)
        except OutputError as error:
            unwritten.append(error)
    if unwritten:
        raise unwritten[0]
    return broken
