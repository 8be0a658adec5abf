"""Latencies as an HdrHistogram log (`.hlog`), the form other tools plot and merge.

Two tagged lines, `Tag=due` and `Tag=sent`; values are nanoseconds, as the header says.
Format: https://github.com/HdrHistogram/HdrHistogram (HistogramLogWriter, version 1.3).
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from velodrome.model.errors import OutputError


def lines(document: Mapping[str, Any]) -> list[str]:
    """Return the lines of the log for a `velodrome/load/1` document."""
    found = [
        "#[Histogram log format version 1.3]",
        "#[Values: nanoseconds; tag due: from when a request was due, tag sent: from when it was sent]",
        '"StartTimestamp","Interval_Length","Interval_Max","Interval_Compressed_Histogram"',
    ]
    for tag in ("due", "sent"):
        longest = document["latency_ms"][tag]["max"] or 0.0
        histogram = document["hdr"][tag]
        found.append(f"Tag={tag},0.000,{document['duration_s']:.3f},{longest:.3f},{histogram}")
    return found


def write(path: Path, document: Mapping[str, Any]) -> None:
    """Write the log. Raises OutputError when the file cannot be written."""
    try:
        path.write_text("\n".join(lines(document)) + "\n")
    except OSError as error:
        raise OutputError(str(path), error.strerror or str(error)) from error
