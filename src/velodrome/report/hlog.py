"""Latencies as an HdrHistogram log (`.hlog`), the form other tools plot and merge.

A line for each histogram: `Tag=due` and `Tag=sent`, of messages to a room `Tag=deliveries`, and the phases that were
had: `connect`, `tls`, `first_byte`, `last_byte`. Values are nanoseconds, as the header says; it also says where the
limit was.
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
        "#[Values: nanoseconds; tag due: from when a request was due, tag sent: from when it was sent,"
        " tag deliveries: from when a message was due until each member had it; connect, tls, first_byte, last_byte:"
        " the phases]",
        *([f"#[{document['limit']['sentence']}]"] if "limit" in document else []),
        '"StartTimestamp","Interval_Length","Interval_Max","Interval_Compressed_Histogram"',
    ]
    rows = [(tag, document["latency_ms"][tag]) for tag in ("due", "sent")]
    if document.get("deliveries") is not None:
        rows.append(("deliveries", document["deliveries"]["latency_ms"]["due"]))
    told = document.get("phases_ms") or {}
    rows += [(phase, latency) for phase, latency in told.items() if latency is not None]
    for tag, latency in rows:
        histogram = document["hdr"][tag]
        if histogram is not None:
            longest = latency["max"] or 0.0
            found.append(f"Tag={tag},0.000,{document['duration_s']:.3f},{longest:.3f},{histogram}")
    return found


def write(path: Path, document: Mapping[str, Any]) -> None:
    """Write the log. Raises OutputError when the file cannot be written."""
    try:
        path.write_text("\n".join(lines(document)) + "\n")
    except OSError as error:
        raise OutputError(str(path), error.strerror or str(error)) from error
