"""The figures of the report from plain values: ranking, latency curves, cost; each one column wide."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt
from markupsafe import Markup

from velodrome.report.axis import lookup, steps, ticks_to
from velodrome.report.svg import ASIDE, INK, MUTED, PAPER, drawn
from velodrome.report.text_plot import MARKS, at, tail

WIDTH = 340
ROW = 34
LEFT = 16
LINE_HEIGHT = 12
OVER: dict[str, Any] = {
    "titleAngle": 0,
    "titleAlign": "left",
    "titleAnchor": "end",
    "titleX": 0,
    "titleY": -8,
}
"""An upright axis is titled above its end: nobody has to turn their head."""


@dataclass(frozen=True)
class Ranked:
    """A row of the ranking. Rates per second."""

    name: str
    value: str
    low: float | None
    mid: float | None
    high: float | None
    ceiling: float | None
    rank: int | None
    colour: str
    hint: str
    """What appears under the pointer; the same stands in the text."""


@dataclass(frozen=True)
class Curve:
    """A line of the latency figure: (percentile, milliseconds)."""

    number: int
    points: Sequence[tuple[float, float]]
    colour: str
    dash: Sequence[int]


@dataclass(frozen=True)
class Cost:
    """A point of the cost figure."""

    number: int
    memory_mb: float
    per_cpu_second: float
    colour: str
    hint: str


def ranking(rows: Sequence[Ranked], label: str) -> Markup:
    """Draw a dot with its interval for each row, a tick where Little's law ends, a bracket around ties."""
    most = max((x for row in rows for x in (row.high, row.ceiling if row.mid else None) if x), default=1.0)
    across = alt.Scale(domain=[0, most * 1.02], range=[LEFT + 2, WIDTH - 6], nice=False)
    ticks = ticks_to(most)
    axis = alt.Axis(
        values=ticks, labelExpr=lookup(ticks), title="requests per second", grid=True, ticks=False
    )
    x = alt.X("mid:Q", scale=across, axis=axis)
    down = alt.Scale(domain=[0, len(rows)], range=[0, len(rows) * ROW])
    y = alt.Y("y:Q", scale=down, axis=None)
    data = [_ranked(place, row) for place, row in enumerate(rows)]
    base = alt.Chart(alt.InlineData(values=data))
    known = base.transform_filter("isValid(datum.mid)")
    name = base.mark_text(align="left", fontSize=12, baseline="middle", aria=False).encode(
        x=alt.value(LEFT), y=alt.Y("y_text:Q", scale=down, axis=None), text="name:N", color=_own("ink")
    )
    value = base.mark_text(align="right", fontSize=12, baseline="middle", aria=False).encode(
        x=alt.value(WIDTH - 4), y=alt.Y("y_text:Q", scale=down, axis=None), text="value:N", color=_own("ink")
    )
    span = known.mark_rule(strokeWidth=4, opacity=0.45, aria=False).encode(
        x=alt.X("low:Q", scale=across, axis=axis), x2="high:Q", y=y, color=_own("colour")
    )
    dot = known.mark_point(filled=True, size=64, opacity=1, strokeWidth=1.5).encode(
        x=x, y=y, fill=_own("fill"), stroke=_own("colour"), description="hint:N"
    )
    ceiling = (
        base.transform_filter("isValid(datum.ceiling)")
        .mark_rule(strokeWidth=1.5, aria=False, color=MUTED)
        .encode(
            x=alt.X("ceiling:Q", scale=across, axis=axis),
            y=alt.Y("y_high:Q", scale=down, axis=None),
            y2="y_low:Q",
        )
    )
    layers = [name, value, ceiling, span, dot, *_brackets(rows, down)]
    return drawn(alt.layer(*layers).properties(width=WIDTH, height=len(rows) * ROW), label)


def _ranked(place: int, row: Ranked) -> dict[str, Any]:
    aside = row.rank is None
    return {
        "name": row.name if len(row.name) <= 36 else f"{row.name[:35]}…",
        "value": row.value,
        "low": row.low,
        "mid": row.mid,
        "high": row.high,
        "ceiling": row.ceiling,
        "hint": row.hint,
        "colour": ASIDE if aside else row.colour,
        "fill": PAPER if aside else row.colour,
        "ink": ASIDE if aside else INK,
        "y": place + 0.72,
        "y_text": place + 0.32,
        "y_high": place + 0.52,
        "y_low": place + 0.92,
    }


def _brackets(rows: Sequence[Ranked], down: alt.Scale) -> list[alt.Chart]:
    """Return a bracket at the left edge for every rank that several rows share."""
    found = []
    for rank in sorted({row.rank for row in rows if row.rank is not None}):
        places = [place for place, row in enumerate(rows) if row.rank == rank]
        if len(places) < 2:
            continue
        first, last = places[0] + 0.3, places[-1] + 0.72
        ends = {"first": first, "last": last}
        upright = alt.Chart(alt.InlineData(values=[ends])).mark_rule(color=INK, strokeWidth=1.5, aria=False)
        found.append(
            upright.encode(x=alt.value(4), y=alt.Y("first:Q", scale=down, axis=None), y2="last:Q"),
        )
        hooks = alt.Chart(alt.InlineData(values=[{"at": first}, {"at": last}]))
        found.append(
            hooks.mark_rule(color=INK, strokeWidth=1.5, aria=False).encode(
                x=alt.value(4), x2=alt.value(10), y=alt.Y("at:Q", scale=down, axis=None)
            )
        )
    return found


def latency(curves: Sequence[Curve], low: float, high: float, label: str) -> Markup:
    """Draw latency over percentile on a log-tail axis, each line numbered at its end."""
    height = 250
    last = max((tail(p) for curve in curves for p, _ in curve.points if p < 100), default=2.0)
    last = max(last, 2.0)
    percentiles = [tail(p) for p, _ in MARKS if tail(p) <= last + 0.01]
    texts = {tail(p): name for p, name in MARKS}
    across = alt.Scale(domain=[tail(50), last], range=[0, WIDTH - 62], nice=False)
    up = alt.Scale(type="log", domain=[low, high], nice=False)
    axis = alt.Axis(values=percentiles, labelExpr=lookup(percentiles, texts), title=None, ticks=False)
    decades = steps(low, high)
    left = alt.Axis(
        values=decades, labelExpr=lookup(decades), **OVER, title="milliseconds", ticks=False, domain=False
    )
    layers: list[alt.Chart] = []
    for curve in curves:
        points = [{"x": x, "y": min(max(ms, low), high)} for x, ms in from_median(curve.points)]
        mark = alt.Chart(alt.InlineData(values=points)).mark_line(
            strokeWidth=2, color=curve.colour, strokeDash=list(curve.dash), interpolate="monotone", aria=False
        )
        layers.append(
            mark.encode(x=alt.X("x:Q", scale=across, axis=axis), y=alt.Y("y:Q", scale=up, axis=left))
        )
    ends = [(c.number, c.points[-1][1], c.colour) for c in curves if c.points]
    heights = apart(
        [(1 - math.log(max(ms, low) / low) / math.log(high / low)) * height for _, ms, _ in ends], height
    )
    data = [
        {"text": f"{number}", "y": y, "colour": colour}
        for (number, _, colour), y in zip(ends, heights, strict=True)
    ]
    numbers = alt.Chart(alt.InlineData(values=data)).mark_text(
        align="left", fontSize=11, fontWeight="bold", aria=False
    )
    layers.append(
        numbers.encode(
            x=alt.value(WIDTH - 58),
            y=alt.Y("y:Q", scale=alt.Scale(domain=[0, height], range=[0, height]), axis=None),
            text="text:N",
            color=_own("colour"),
        )
    )
    chart = alt.layer(*layers).resolve_scale(y="independent").properties(width=WIDTH - 40, height=height)
    return drawn(_one_axis(chart), label)


def _one_axis(chart: alt.LayerChart) -> alt.LayerChart:
    """Keep the left axis of the first layer only: independent scales would draw it once per line."""
    for layer in chart.layer[1:-1]:
        layer.encoding.y.axis = None
    return chart


def from_median(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return (place on the log-tail axis, milliseconds) from p50 on: what is left of it has no room on the axis."""
    median = at(points, tail(50))
    found = [(tail(p), ms) for p, ms in points if 50 < p < 100 and ms > 0]
    return [(tail(50), median), *found] if median else found


def cost(points: Sequence[Cost], front: Sequence[tuple[float, float]], label: str) -> Markup:
    """Draw requests per CPU-second over memory, numbered, and the line of those nobody beats in both."""
    height = 230
    most = max(point.per_cpu_second for point in points) * 1.08
    memory = max(point.memory_mb for point in points) * 1.12
    across = alt.Scale(domain=[0, memory], nice=False)
    up = alt.Scale(domain=[0, most], nice=False)
    below, beside = ticks_to(memory), ticks_to(most)
    x_axis = alt.Axis(values=below, labelExpr=lookup(below), title="memory, MB", ticks=False)
    y_axis = alt.Axis(
        values=beside,
        labelExpr=lookup(beside),
        **OVER,
        title="requests per CPU-second",
        ticks=False,
        domain=False,
    )
    line = alt.Chart(alt.InlineData(values=[{"x": x, "y": y} for x, y in front])).mark_line(
        color=MUTED, strokeWidth=1.5, strokeDash=[3, 3], interpolate="step-after", aria=False
    )
    data = [
        {"x": p.memory_mb, "y": p.per_cpu_second, "colour": p.colour, "hint": p.hint, "text": f"{p.number}"}
        for p in points
    ]
    base = alt.Chart(alt.InlineData(values=data)).encode(
        x=alt.X("x:Q", scale=across, axis=x_axis), y=alt.Y("y:Q", scale=up, axis=y_axis)
    )
    dots = base.mark_point(filled=True, size=70, opacity=1).encode(color=_own("colour"), description="hint:N")
    placed = _beside(points, memory, most, height)
    numbers = alt.Chart(alt.InlineData(values=placed)).mark_text(fontSize=11, fontWeight="bold", aria=False)
    texts = numbers.encode(
        x=alt.X("x:Q", scale=across, axis=x_axis),
        y=alt.Y("y:Q", scale=up, axis=y_axis),
        text="text:N",
        color=_own("colour"),
    )
    front_line = line.encode(x=alt.X("x:Q", scale=across, axis=x_axis), y=alt.Y("y:Q", scale=up, axis=y_axis))
    return drawn(alt.layer(front_line, dots, texts).properties(width=WIDTH - 50, height=height), label)


def _beside(points: Sequence[Cost], memory: float, most: float, height: int) -> list[dict[str, Any]]:
    """Put each number at the side of its point where no other point or number stands."""
    to_x, to_y = (WIDTH - 50) / memory, height / most
    taken = [(p.memory_mb * to_x, p.per_cpu_second * to_y) for p in points]
    found = []
    for point in points:
        x, y = point.memory_mb * to_x, point.per_cpu_second * to_y
        sides = [(x + 12, y), (x, y + 13), (x, y - 13), (x - 12, y), (x + 11, y + 10), (x - 11, y - 10)]
        crowd = [sum(abs(sx - tx) < 12 and abs(sy - ty) < 11 for tx, ty in taken) for sx, sy in sides]
        sx, sy = sides[crowd.index(min(crowd))]
        taken.append((sx, sy))
        found.append({"x": sx / to_x, "y": sy / to_y, "text": f"{point.number}", "colour": point.colour})
    return found


def pareto(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return those of (memory, requests per CPU-second) that no other beats in both."""
    found: list[tuple[float, float]] = []
    for memory, rate in sorted(points, key=lambda point: (point[0], -point[1])):
        if not found or rate > found[-1][1]:
            found.append((memory, rate))
    return found


def apart(heights: Sequence[float], room: float, gap: float = LINE_HEIGHT) -> list[float]:
    """Move positions as little as they need to stand `gap` apart, in their order, within `room`."""
    order = sorted(range(len(heights)), key=lambda i: heights[i])
    placed = [heights[i] for i in order]
    for i in range(1, len(placed)):
        placed[i] = max(placed[i], placed[i - 1] + gap)
    if placed and placed[-1] > room:
        placed[-1] = room
        for i in range(len(placed) - 2, -1, -1):
            placed[i] = min(placed[i], placed[i + 1] - gap)
    found = [0.0] * len(heights)
    for i, y in zip(order, placed, strict=True):
        found[i] = y
    return found


def _own(field: str) -> alt.Color:
    """Take the colour as it is in the data."""
    return alt.Color(f"{field}:N", scale=None, legend=None)
