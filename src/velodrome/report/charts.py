"""The figures of the report from plain values, as inline SVG: ranking, latency curves, cost, and sparklines.

Each chart is one column wide and scales with it. Colours are CSS variables, for light and dark alike. Only texts may
come from a server; `Drawing` escapes them.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from markupsafe import Markup, escape

from velodrome.model import quantity
from velodrome.report.typeset import MARKS, at, tail

INK, MUTED, GRID, ASIDE, PAPER = "var(--ink)", "var(--muted)", "var(--grid)", "var(--aside)", "var(--paper)"
COLOURS = tuple(f"var(--c{number})" for number in range(8))
DASHES: tuple[list[int], ...] = ([], [6, 3], [2, 2], [8, 3, 2, 3])
WIDTH = 340
ROW = 34
LEFT = 16
LINE_HEIGHT = 12
MARGIN = 12.0
"""Left of the labels of an upright axis."""
LETTER = 6.2
"""Width of a digit at 11 pixels, a little more than in the usual fonts."""
LONGEST_NAME = 36
LARGEST = 1.35
"""Times its own size that a figure is drawn at most: wider, its letters would be larger than the text around it."""


def style_of(place: int) -> tuple[str, list[int]]:
    """Return colour and dash of the contestant at `place`: no two of the first 32 share both."""
    return COLOURS[place % 8], DASHES[(place + place // 8) % 4]


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


Point = tuple[float, float]


class Drawing:
    """Shapes in a plot of `width` × `height` whose top left corner is 0, 0, and the axes around it."""

    def __init__(self, width: float, height: float) -> None:
        self.width, self.height = width, height
        self._shapes: list[Markup] = []

    def line(self, start: Point, end: Point, colour: str, size: float = 1, opacity: float = 1) -> None:
        """Draw a straight line."""
        (x1, y1), (x2, y2) = start, end
        ends = f'x1="{_px(x1)}" y1="{_px(y1)}" x2="{_px(x2)}" y2="{_px(y2)}"'
        faint = f' opacity="{opacity:g}"' if opacity < 1 else ""
        self._add(f'<line {ends} stroke="{colour}" stroke-width="{size:g}"{faint}/>')

    def path(self, points: Sequence[Point], colour: str, size: float, dash: Sequence[int] = ()) -> None:
        """Draw straight lines from point to point."""
        if not points:
            return
        through = "L".join(f"{_px(x)} {_px(y)}" for x, y in points)
        dashed = f' stroke-dasharray="{" ".join(map(str, dash))}"' if dash else ""
        self._add(f'<path d="M{through}" stroke="{colour}" stroke-width="{size:g}"{dashed}/>')

    def area(self, start: Point, end: Point, colour: str, hint: str = "", opacity: float = 1) -> None:
        """Fill a rectangle from corner to corner, with a text that appears under the pointer."""
        (x1, y1), (x2, y2) = start, end
        corner = f'x="{_px(min(x1, x2))}" y="{_px(min(y1, y2))}"'
        place = f'{corner} width="{_px(abs(x2 - x1))}" height="{_px(abs(y2 - y1))}"'
        faint = f' opacity="{opacity:g}"' if opacity < 1 else ""
        self._add(f'<rect {place} fill="{colour}"{faint}><title>{escape(hint)}</title></rect>')

    def dot(self, centre: Point, colour: str, hint: str, *, hollow: bool = False) -> None:
        """Draw a circle with a text that appears under the pointer."""
        x, y = centre
        look = f'r="4" fill="{PAPER if hollow else colour}" stroke="{colour}" stroke-width="1.5"'
        self._add(f'<circle cx="{_px(x)}" cy="{_px(y)}" {look}><title>{escape(hint)}</title></circle>')

    def text(
        self,
        x: float,
        y: float,
        text: str,
        colour: str,
        *,
        size: int = 11,
        anchor: str = "start",
        bold: bool = False,
    ) -> None:
        """Write a text whose middle is at the height `y`."""
        look = f'text-anchor="{anchor}" font-size="{size}"' + (' font-weight="bold"' if bold else "")
        self._add(f'<text x="{_px(x)}" y="{_px(y + size / 3)}" {look} fill="{colour}">{escape(text)}</text>')

    def below(self, ticks: Sequence[tuple[float, str]], left: float, right: float, title: str = "") -> None:
        """Draw the lower axis from `left` to `right` with an upright line for each (x, label)."""
        for x, label in ticks:
            self.line((round(x) + 0.5, 0), (round(x) + 0.5, self.height), GRID)
            self.text(x, self.height + 8, label, MUTED, anchor="middle")
        self.line((left, self.height + 0.5), (right, self.height + 0.5), GRID)
        if title:
            self.text((left + right) / 2, self.height + 22, title, MUTED, anchor="middle")

    def beside(self, ticks: Sequence[tuple[float, str]], right: float, title: str) -> None:
        """Draw the lines and labels of the left axis, titled above its end: nobody has to turn their head."""
        for y, label in ticks:
            self.line((0, round(y) + 0.5), (right, round(y) + 0.5), GRID)
            self.text(-3, y, label, MUTED, anchor="end")
        self.text(0, -12, title, MUTED)

    def svg(
        self, label: str, *, left: float = 0, above: float = 0, below: float = 32, right: float = 4
    ) -> Markup:
        """Return the drawing with room around its plot; `label` is read to those who do not see it."""
        x, y = MARGIN + left, 2 + above
        width, height = x + self.width + right, y + self.height + below
        opening = (
            f'<svg role="img" aria-label="{escape(label)}" style="max-width:{round(width * LARGEST)}px" '
            f'viewBox="0 0 {_px(width)} {_px(height)}"><g fill="none" transform="translate({_px(x)},{_px(y)})">'
        )
        return Markup(opening) + Markup("").join(self._shapes) + Markup("</g></svg>")  # noqa: S704 - escaped above

    def _add(self, shape: str) -> None:
        self._shapes.append(Markup(shape))  # noqa: S704 - numbers, colours of ours, and texts that were escaped


def _px(value: float) -> str:
    """Return a coordinate: a tenth of a pixel is finer than any screen draws it."""
    return f"{round(value, 1) + 0.0:g}"


def ticks_to(most: float) -> list[float]:
    """Return three to five round numbers from 0 to `most`."""
    rough = most / 4
    power = 10 ** math.floor(math.log10(rough)) if rough > 0 else 1
    step = next(step * power for step in (1, 2, 2.5, 5, 10) if step * power >= rough)
    return [step * i for i in range(int(most / step) + 1)]


def steps(low: float, high: float) -> list[float]:
    """Return 1, 2, 5, 10 … between `low` and `high`; only powers of ten where those are many."""
    digits = (1, 2, 5) if math.log10(high / low) < 3 else (1,)
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    found = [digit * 10.0**power for power in powers for digit in digits]
    return [value for value in found if low <= value <= high]


def _label(value: float) -> str:
    return quantity.short(float(f"{value:.6g}"))


def ranking(rows: Sequence[Ranked], label: str) -> Markup:
    """Draw a dot with its interval for each row, a tick where Little's law ends, a bracket around ties."""
    most = max((x for row in rows for x in (row.high, row.ceiling if row.mid else None) if x), default=1.0)
    left, right = LEFT + 2, WIDTH - 6
    drawing = Drawing(WIDTH, len(rows) * ROW)

    def across(rate: float) -> float:
        return left + rate / (most * 1.02) * (right - left)

    drawing.below(
        [(across(tick), _label(tick)) for tick in ticks_to(most)], left, right, "requests per second"
    )
    for place, row in enumerate(rows):
        _draw_rank(drawing, row, place * ROW, across)
    for rank in sorted({row.rank for row in rows if row.rank is not None}):
        places = [place for place, row in enumerate(rows) if row.rank == rank]
        if len(places) > 1:
            first, last = (places[0] + 0.3) * ROW, (places[-1] + 0.72) * ROW
            drawing.path([(10, first), (4, first), (4, last), (10, last)], INK, 1.5)
    return drawing.svg(label)


def _draw_rank(drawing: Drawing, row: Ranked, top: float, across: Callable[[float], float]) -> None:
    aside = row.rank is None
    colour, ink = (ASIDE, ASIDE) if aside else (row.colour, INK)
    name = row.name if len(row.name) <= LONGEST_NAME else f"{row.name[: LONGEST_NAME - 1]}…"
    drawing.text(LEFT, top + 0.32 * ROW, name, ink, size=12)
    drawing.text(WIDTH - 4, top + 0.32 * ROW, row.value, ink, size=12, anchor="end")
    if row.ceiling is not None:
        x = across(row.ceiling)
        drawing.line((x, top + 0.52 * ROW), (x, top + 0.92 * ROW), MUTED, 1.5)
    if row.low is None or row.mid is None or row.high is None:
        return
    y = top + 0.72 * ROW
    drawing.line((across(row.low), y), (across(row.high), y), colour, 4, 0.45)
    drawing.dot((across(row.mid), y), colour, row.hint, hollow=aside)


def latency(curves: Sequence[Curve], low: float, high: float, label: str) -> Markup:
    """Draw latency over percentile on a log-tail axis, each line numbered at its end."""
    drawing = Drawing(WIDTH - 40, 250)
    right = WIDTH - 62
    first = tail(50)
    last = max([2.0, *(tail(p) for curve in curves for p, _ in curve.points if p < 100)])

    def across(place: float) -> float:
        return (place - first) / (last - first) * right

    def up(ms: float) -> float:
        share = math.log(min(max(ms, low), high) / low) / math.log(high / low)
        return (1 - share) * drawing.height

    drawing.below([(across(tail(p)), name) for p, name in MARKS if tail(p) <= last + 0.01], 0, right)
    decades = [(up(value), _label(value)) for value in steps(low, high)]
    drawing.beside(decades, right, "milliseconds")
    for curve in curves:
        points = [(across(place), up(ms)) for place, ms in from_median(curve.points)]
        drawing.path(points, curve.colour, 2, curve.dash)
    ended = [curve for curve in curves if curve.points]
    heights = apart([up(curve.points[-1][1]) for curve in ended], drawing.height)
    for curve, y in zip(ended, heights, strict=True):
        drawing.text(WIDTH - 58, y, f"{curve.number}", curve.colour, bold=True)
    return drawing.svg(label, left=_room(decades), above=19, below=16)


@dataclass(frozen=True)
class AtLoad:
    """A point of the figure of latency over load."""

    share: float
    """Of the capacity, 0 to 1."""
    ms: float
    low_ms: float | None
    high_ms: float | None
    """Ends of its interval; None: it has none."""
    hint: str


def over_load(points: Sequence[AtLoad], label: str) -> Markup:
    """Draw latency (log) over the share of the capacity, each point with its interval; nothing without a point."""
    known = [
        ms for point in points for ms in (point.low_ms, point.ms, point.high_ms) if ms is not None and ms > 0
    ]
    if not known:
        return Markup("")
    low, high = min(known) / 1.3, max(known) * 1.3
    drawing = Drawing(WIDTH - 40, 180)

    def placed(share: float, ms: float) -> Point:
        up = math.log(ms / low) / math.log(high / low)
        return share * drawing.width, (1 - up) * drawing.height

    shares = [(placed(share, low)[0], f"{share * 100:g} %") for share in (0.0, 0.25, 0.5, 0.75, 1.0)]
    drawing.below(shares, 0, drawing.width, "of the capacity")
    heights = [(placed(0, ms)[1], _label(ms)) for ms in steps(low, high)]
    drawing.beside(heights, drawing.width, "milliseconds")
    drawing.path([placed(point.share, point.ms) for point in points], COLOURS[0], 2)
    for point in points:
        if point.low_ms is not None and point.high_ms is not None:
            ends = placed(point.share, point.low_ms), placed(point.share, point.high_ms)
            drawing.line(*ends, COLOURS[0], 4, 0.45)
        drawing.dot(placed(point.share, point.ms), COLOURS[0], point.hint)
    return drawing.svg(label, left=_room(heights), above=19)


def _room(ticks: Sequence[tuple[float, str]]) -> float:
    """Return how wide the labels of an upright axis are."""
    return 3 + LETTER * max((len(text) for _, text in ticks), default=0)


def from_median(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return (place on the log-tail axis, milliseconds) from p50 on: what is left of it has no room on the axis."""
    median = at(points, tail(50))
    found = [(tail(p), ms) for p, ms in points if 50 < p < 100 and ms > 0]
    return [(tail(50), median), *found] if median else found


def cost(points: Sequence[Cost], front: Sequence[tuple[float, float]], label: str) -> Markup:
    """Draw requests per CPU-second over memory, numbered, and the line of those nobody beats in both."""
    drawing = Drawing(WIDTH - 50, 230)
    most = max(point.per_cpu_second for point in points) * 1.08
    memory = max(point.memory_mb for point in points) * 1.12

    def placed(x: float, y: float) -> Point:
        return x / memory * drawing.width, (1 - y / most) * drawing.height

    drawing.below([(placed(x, 0)[0], _label(x)) for x in ticks_to(memory)], 0, drawing.width, "memory, MB")
    rates = [(placed(0, y)[1], _label(y)) for y in ticks_to(most)]
    drawing.beside(rates, drawing.width, "requests per CPU-second")
    stairs: list[Point] = []
    for x, y in (placed(*point) for point in front):
        stairs += [(x, stairs[-1][1]), (x, y)] if stairs else [(x, y)]
    drawing.path(stairs, MUTED, 1.5, (3, 3))
    dots = [placed(point.memory_mb, point.per_cpu_second) for point in points]
    for point, centre in zip(points, dots, strict=True):
        drawing.dot(centre, point.colour, point.hint)
    for point, (x, y) in zip(points, _beside(dots), strict=True):
        drawing.text(x, y, f"{point.number}", point.colour, anchor="middle", bold=True)
    return drawing.svg(label, left=_room(rates), above=19)


def _beside(dots: Sequence[Point]) -> list[Point]:
    """Return for each dot the side of it at which no other dot or number stands."""
    taken = list(dots)
    found = []
    for x, y in dots:
        sides = [(x + 12, y), (x, y - 13), (x, y + 13), (x - 12, y), (x + 11, y - 10), (x - 11, y + 10)]
        crowd = [sum(abs(sx - tx) < 12 and abs(sy - ty) < 11 for tx, ty in taken) for sx, sy in sides]
        found.append(sides[crowd.index(min(crowd))])
        taken.append(found[-1])
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


SPARK_WIDTH, SPARK_HEIGHT = 160.0, 32.0
SPARK_GAP = 6.0
"""Between blocks, which ran minutes apart."""

Block = Sequence[float | None]


def sparkline(blocks: Sequence[Block], stalls: Sequence[Sequence[bool]], colour: str) -> Markup:
    """Draw a line the size of a word: one quantity second by second, blocks side by side, from zero to its maximum.

    `stalls` marks the seconds in which nothing was answered.
    """
    most = max((value for block in blocks for value in block if value is not None), default=0.0) or 1.0
    count = sum(len(block) for block in blocks)
    if not count:
        return Markup("")
    step = (SPARK_WIDTH - SPARK_GAP * (len(blocks) - 1)) / count
    shapes, left = [], 0.0
    for block, stalled in zip(blocks, stalls, strict=True):
        for second, is_stall in enumerate(stalled):
            if is_stall:
                share = len(block) / len(stalled)
                x, width = left + second * share * step, share * step
                shapes.append(
                    f'<rect x="{x:.1f}" y="0" width="{width:.1f}" height="{SPARK_HEIGHT:g}" class="stall"/>'
                )
        shapes.append(f'<path d="{_path(block, left, step, most)}" stroke="{colour}"/>')
        left += len(block) * step + SPARK_GAP
    frame = f'viewBox="0 0 {SPARK_WIDTH:g} {SPARK_HEIGHT:g}" preserveAspectRatio="none" aria-hidden="true"'
    zero = f'<path class="zero" d="M0 {SPARK_HEIGHT - 1:g}H{SPARK_WIDTH:g}"/>'
    # Safe as it is: nothing in it but numbers and a colour of ours.
    return Markup(f'<svg class="spark" {frame}>{zero}{"".join(shapes)}</svg>')  # noqa: S704


def _path(block: Block, left: float, step: float, most: float) -> str:
    """Return the line through a block; it breaks where a value is missing."""
    parts, pen_down = [], False
    for place, value in enumerate(block):
        if value is None:
            pen_down = False
            continue
        y = (SPARK_HEIGHT - 1) - value / most * (SPARK_HEIGHT - 3)
        # A second is as wide as its line: one sample alone still shows.
        x = left + place * step
        parts.append(f"{'L' if pen_down else 'M'}{x:.1f} {y:.1f}L{x + step:.1f} {y:.1f}")
        pen_down = True
    return "".join(parts)
