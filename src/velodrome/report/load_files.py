"""Files of a load for other tools: its seconds as CSV, its latencies as HdrHistogram log or percentile table.

CSV, for a spreadsheet or a plot. A cell is empty where nothing was measured; the last column repeats in every line
where the limit of the whole load was:

    at_s,requests,ok,errors,in_flight,waiting,p50_ms,p99_ms,max_ms,limit
    0,4998,4998,0,2,0,0.31,1.91,4.2,schedule

HdrHistogram log (`.hlog`): a line for each histogram: `Tag=due` and `Tag=sent`, for messages to a room
`Tag=deliveries`, and the phases that were measured: `connect`, `tls`, `first_byte`, `last_byte`. Values are
nanoseconds. Format: https://github.com/HdrHistogram/HdrHistogram (HistogramLogWriter, version 1.3).

Percentile table (AbstractHistogram.java, outputPercentileDistribution), five lines for each halving of the remaining
tail, values in milliseconds:

           Value     Percentile TotalCount 1/(1-Percentile)

           0.308 0.500000000000      25000           2.00
"""

import csv
import math
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from io import StringIO
from itertools import accumulate
from pathlib import Path
from typing import Any

from velodrome.report.writing import write

CSV_COLUMNS = ("at_s", "requests", "ok", "errors", "in_flight", "waiting", "p50_ms", "p99_ms", "max_ms")


def csv_text(document: Mapping[str, Any]) -> str:
    """Return the lines of a `velodrome/load/1` document, the first with the names of the columns."""
    out = StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([*CSV_COLUMNS, "limit"])
    for second in document["series"]:
        cells = [second[name] for name in CSV_COLUMNS]
        writer.writerow([*map(_cell, cells), document["limit"]["at"]])
    return out.getvalue()


def _cell(value: float | None) -> str:
    return "" if value is None else f"{value:.12g}"


def write_csv(path: Path, document: Mapping[str, Any]) -> None:
    """Write the file. Raises OutputError when it cannot be written."""
    write(path, csv_text(document))


def hlog_lines(document: Mapping[str, Any]) -> list[str]:
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
    phases = document.get("phases_ms") or {}
    rows += [(phase, latency) for phase, latency in phases.items() if latency is not None]
    for tag, latency in rows:
        histogram = document["hdr"][tag]
        if histogram is not None:
            longest = latency["max"] or 0.0
            found.append(f"Tag={tag},0.000,{document['duration_s']:.3f},{longest:.3f},{histogram}")
    return found


def write_hlog(path: Path, document: Mapping[str, Any]) -> None:
    """Write the log. Raises OutputError when the file cannot be written."""
    write(path, "\n".join(hlog_lines(document)) + "\n")


TICKS = 5
PERCENTILE_HEAD = f"{'Value':>12} {'Percentile':>14} {'TotalCount':>10} {'1/(1-Percentile)':>14}"


def percentile_lines(values_ms: Sequence[float], counts: Sequence[int], remark: str = "") -> list[str]:
    """Return the lines; `values_ms` rise, and of each there are as many as `counts` says."""
    found = [PERCENTILE_HEAD, ""]
    total = sum(counts)
    for value, share, below in _ticks(values_ms, counts):
        inverse = f" {1 / (1 - share):>14.2f}" if share < 1 else ""
        found.append(f"{value:>12.3f} {share:>14.12f} {below:>10}{inverse}")
    mean = sum(v * c for v, c in zip(values_ms, counts, strict=True)) / total if total else 0.0
    squares = sum(c * (v - mean) ** 2 for v, c in zip(values_ms, counts, strict=True))
    deviation = math.sqrt(squares / total) if total else 0.0
    longest = values_ms[-1] if values_ms else 0.0
    found.append(f"#[Mean    = {mean:>12.3f}, StdDeviation   = {deviation:>12.3f}]")
    found.append(f"#[Max     = {longest:>12.3f}, Total count    = {total:>12}]")
    return [*found, f"#[{remark}]"] if remark else found


def _ticks(values_ms: Sequence[float], counts: Sequence[int]) -> Iterator[tuple[float, float, int]]:
    """Yield (value, percentile as a share, values up to it), up to the largest, whose percentile is 1."""
    sums = list(accumulate(counts))
    if not sums:
        return
    total, share = sums[-1], 0.0
    while share < 1:
        place = bisect_left(sums, max(1.0, share * total - 1e-6))
        if sums[place] == total:
            break
        yield values_ms[place], share, sums[place]
        halvings = math.floor(math.log2(1 / (1 - share))) + 1
        share += 1 / (TICKS * 2**halvings)
    yield values_ms[-1], 1.0, total
