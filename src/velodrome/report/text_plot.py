"""A percentile curve in text: latency (log) over percentile (log of the tail), due and sent in one picture.

ms
9.8 │                              ●
    │                       ●●●●●●●
1.0 │               ●●●●○○○○
0.3 │●●●●●●●●●●●●●●●
    └──────────────────────────────
     p50     p90     p99     p99.9
"""

import math
from collections.abc import Sequence
from itertools import pairwise

from velodrome.model import quantity

Curve = Sequence[tuple[float, float]]
"""(percentile from 0 to 100, milliseconds), rising."""

MARKS = ((50.0, "p50"), (90.0, "p90"), (99.0, "p99"), (99.9, "p99.9"), (99.99, "p99.99"))
DUE, SENT = "●", "○"


def tail(percentile: float) -> float:
    """Return where a percentile stands on a log-tail axis: 50 → 0.3, 90 → 1, 99 → 2, 99.9 → 3."""
    return -math.log10(1 - percentile / 100)


def at(curve: Curve, place: float) -> float | None:
    """Return the latency at `place` of the log-tail axis, on straight lines (log-log) between points."""
    points = [(tail(p), math.log10(ms)) for p, ms in curve if ms > 0 and p < 100]
    for (x0, y0), (x1, y1) in pairwise(points):
        if x0 <= place <= x1:
            share = (place - x0) / (x1 - x0) if x1 > x0 else 0.0
            return float(10 ** (y0 + share * (y1 - y0)))
    return None


def plot(due: Curve, sent: Curve, width: int = 72, height: int = 7) -> list[str]:
    """Return the lines of the picture; nothing when fewer than two points are known."""
    known = [ms for _, ms in (*due, *sent) if ms > 0]
    if len(due) < 2 or not known:
        return []
    low, high = math.log10(min(known)), math.log10(max(known))
    high = max(high, low + 0.3)
    first, last = tail(due[0][0]), tail(due[-1][0])
    labels = [quantity.milliseconds(10 ** (low + (high - low) * row / (height - 1))) for row in range(height)]
    gutter = max(map(len, labels))
    columns = max(20, width - gutter - 4)
    cells = [[" "] * columns for _ in range(height)]
    for curve, mark in ((sent, SENT), (due, DUE)):
        for column in range(columns):
            value = at(curve, first + (last - first) * column / (columns - 1))
            if value is not None:
                row = round((math.log10(value) - low) / (high - low) * (height - 1))
                cells[row][column] = mark
    lines = [f" {'ms':>{gutter}}   {DUE} from when due   {SENT} from when sent, where it differs"]
    for row in reversed(range(height)):
        label = labels[row] if row % 2 == 0 else ""
        lines.append(f" {label:>{gutter}} │{''.join(cells[row])}".rstrip())
    lines.append(f" {'':>{gutter}} └{'─' * columns}")
    lines.append(_axis(gutter, columns, first, last))
    return lines


def _axis(gutter: int, columns: int, first: float, last: float) -> str:
    """Return the line of percentiles under the picture, `max` at its end."""
    line = [" "] * (columns + 2)
    for percentile, name in MARKS:
        if first <= tail(percentile) <= last:
            column = round((tail(percentile) - first) / (last - first) * (columns - 1))
            start = min(max(column - len(name) // 2, 0), columns - len(name))
            if start + len(name) < columns - 4:
                line[start : start + len(name)] = name
    line[columns - 3 : columns] = "max"
    return f" {'':>{gutter}}  {''.join(line).rstrip()}"
