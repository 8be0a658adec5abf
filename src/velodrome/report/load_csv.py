"""The seconds of a load as CSV, for a spreadsheet or a plot.

    at_s,requests,ok,errors,in_flight,waiting,p50_ms,p99_ms,max_ms,limit
    0,4998,4998,0,2,0,0.31,1.91,4.2,schedule

A cell is empty where nothing was measured. The last column says, in every line, where the limit of the whole load was.
"""

import csv
from collections.abc import Mapping
from io import StringIO
from pathlib import Path
from typing import Any

from velodrome.report.json import save

COLUMNS = ("at_s", "requests", "ok", "errors", "in_flight", "waiting", "p50_ms", "p99_ms", "max_ms")


def text(document: Mapping[str, Any]) -> str:
    """Return the lines of a `velodrome/load/1` document, the first with the names of the columns."""
    out = StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([*COLUMNS, "limit"])
    for second in document["series"]:
        cells = [second[name] for name in COLUMNS]
        writer.writerow([*map(_cell, cells), document["limit"]["at"]])
    return out.getvalue()


def _cell(value: float | None) -> str:
    return "" if value is None else f"{value:.12g}"


def write(path: Path, document: Mapping[str, Any]) -> None:
    """Write the file. Raises OutputError when it cannot be written."""
    save(path, text(document))
