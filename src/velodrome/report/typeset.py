"""Text on its way to a reader: columns, paragraphs, and a server's words made harmless."""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Collection, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from velodrome.model import quantity
from velodrome.model.quantity import Interval

if TYPE_CHECKING:
    from rich.text import Text


def align(column: Sequence[str]) -> list[str]:
    """Pad texts so that their decimal points stand under each other and all have one length.

    What follows the number (` ±2`) is aligned too.
    """
    parts = []
    for text in column:
        value, mark, spread = text.partition(" ±")
        whole, point, decimals = value.partition(".")
        parts.append((whole, point + decimals, mark + spread))
    before, after, beside = (max((len(part[i]) for part in parts), default=0) for i in range(3))
    return [f"{whole:>{before}}{decimals:<{after}}{spread:<{beside}}" for whole, decimals, spread in parts]


FIGURE_SPACE, POINT_SPACE = "\u2007", "\u2008"
"""As wide as a digit, and as a point, in proportional type."""


def align_figures(column: Sequence[str]) -> list[str]:
    """Pad numbers on the right, for right-aligned cells in proportional type to share a decimal point."""
    parts = [text.partition(" ±") for text in column]
    values = _pad([value for value, _, _ in parts])
    spreads = _pad([spread for _, _, spread in parts])
    return [
        f"{value}{mark}{spread}" for value, (_, mark, _), spread in zip(values, parts, spreads, strict=True)
    ]


def _pad(values: Sequence[str]) -> list[str]:
    decimals = [len(value.partition(".")[2]) for value in values]
    most = max(decimals, default=0)
    found = []
    for value, count in zip(values, decimals, strict=True):
        # What is not a number (a dash, nothing) keeps its place.
        point = POINT_SPACE if most and not count and value[-1:].isdigit() else ""
        found.append(value + point + FIGURE_SPACE * (most - count if value[-1:].isdigit() else 0))
    return found


def estimate(interval: Interval) -> str:
    """Return `197 ±2`, at most three digits of it: what an interval of a few blocks deserves."""
    if interval.mid <= 0:
        return quantity.number(interval.mid)
    half = (interval.high - interval.low) / 2
    if half > interval.mid:  # «0 ±200 000» would tell nothing: two blocks that disagree
        ends = f"{quantity.number(interval.low)}, {quantity.number(interval.high)}"
        return f"{quantity.number(interval.mid)} [{ends}]"
    exponent = math.floor(math.log10(interval.mid)) - 2
    step = 10.0**exponent
    if half >= 2 * step:
        return quantity.within(interval.mid, interval.low, interval.high)
    places = max(0, -exponent)
    spread = max(round(half / step), 1) * step
    return (
        f"{quantity.thousands(round(interval.mid, -exponent), places)} ±{quantity.thousands(spread, places)}"
    )


def visible(text: str, layout: str = "") -> str:
    """Return text that a server, a file or an app may have chosen with what a terminal obeys made visible.

    That is every control character (escapes, line ends, backspaces), what turns the direction of writing, and what has
    no width; characters of `layout`, such as the line ends of several lines, stay as they are.
    """
    if text.isprintable():
        return text
    return "".join(
        letter if letter.isprintable() or letter in layout or letter in BLANKS else _escape(letter)
        for letter in text
    )


BLANKS = "\u00a0\u2007\u2008\u2009\u202f"
"""Blanks that figures are set with: not printable in Python's sense, and nothing that a terminal obeys."""
LINES = "\n\t"
"""The layout of a text of several lines, such as an error with the last lines of a server."""


def _escape(letter: str) -> str:
    return letter.encode("unicode_escape").decode()


SPECIAL = re.compile(r"([\\`*_\[\]#|~$])")
MENTION = "@\u200b"
"""Hosts look for mentions in the finished text, so no escape stops a mention; a space of no width does."""


def markdown_escaped(text: str) -> str:
    """Return text that means itself in Markdown: no markup, no HTML, no mention of a user, no new line."""
    harmless = visible(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return SPECIAL.sub(r"\\\1", harmless).replace("@", MENTION)


def plural(count: int, noun: str) -> str:
    """Return `1 connection`, `2 connections`."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}".replace(",", " ")


def wrap(sentence: str, width: int) -> list[str]:
    """Break a sentence into lines of at most `width`, each indented by one."""
    found, line = [], ""
    for word in sentence.split(" "):
        if line and len(line) + 1 + len(word) > width - 1:
            found.append(f" {line}")
            line = word
        else:
            line = f"{line} {word}" if line else word
    return [*found, f" {line}"]


def columns(heads: Sequence[str], rows: Sequence[Sequence[str]], left: Collection[str] = ()) -> list[str]:
    """Return the lines, the first column and those in `left` as words, the others aligned on the decimal point."""
    lines = [""] * (len(rows) + 1)
    for number, (head, column) in enumerate(zip(heads, zip(*rows, strict=True), strict=True)):
        words = number == 0 or head in left
        cells = [head, *(column if words else align(column))]
        width = max(map(len, cells))
        gap = "   " if number else " "
        for at, cell in enumerate(cells):
            lines[at] += gap + (f"{cell:<{width}}" if words else f"{cell:>{width}}")
    return [line.rstrip() for line in lines]


def paragraph(text: str, width: int, indent: int = 3, style: str = "") -> list[Text]:
    """Return the lines of a text, each with `indent` blanks before it, in a terminal of `width` columns."""
    from rich.text import Text  # noqa: PLC0415 - `velodrome load` starts without rich

    margin = " " * indent
    wrapped = textwrap.wrap(text, width - 1, initial_indent=margin, subsequent_indent=margin)
    return [Text(line, style=style) for line in wrapped]


def fold(cells: Sequence[str], sizes: Sequence[int]) -> list[list[str]]:
    """Return the lines that a row of a table takes, each as its cells; none is longer than its column's size."""
    parts = [textwrap.wrap(cell, size) or [""] for cell, size in zip(cells, sizes, strict=True)]
    return [[part[at] if at < len(part) else "" for part in parts] for at in range(max(map(len, parts)))]


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
