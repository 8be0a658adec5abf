"""An examination as one HTML page that needs nothing else: diagnoses as cards, both arms, the timeline, the slope.

It has no script. Everything that came from an app passes the template's escaping.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from markupsafe import Markup

from velodrome.model import quantity
from velodrome.model.diagnosis import Diagnosis, Evidence, Examination, Ruling, Sampled, Stall, Timeline
from velodrome.model.quantity import duration, significant
from velodrome.report import names, writing
from velodrome.report.charts import (
    COLOURS,
    GRID,
    INK,
    LETTER,
    MUTED,
    WIDTH,
    Drawing,
    steps,
    ticks_to,
)
from velodrome.report.diagnoses import (
    change,
    comes_of,
    costs,
    disturbed_lines,
    no_cause,
    proof,
    relative,
    slo_lines,
    stack_of,
    unexplained,
    where,
)
from velodrome.report.html import environment, template_text
from velodrome.report.typeset import plural, visible

ARMS: Mapping[str, str] = {"rps": "requests per second", "p99_ms": "p99, milliseconds"}
"""What both arms are drawn by."""
ROW = 38
WIDE = 940
LANE, GAP, BAR = 22.0, 26.0, 16.0
"""Height of a lane of the timeline, of its title above it, and of a bar in it."""
STACKS = 6
"""Stacks with a lane of their own, those that held the loop up longest."""
LONGEST_TITLE = 130
LEAST = 1.5
"""Width of what is too short to be seen, in pixels."""
BLOCKED, COMPUTED = COLOURS[1], COLOURS[0]
NOT_TOLD = "this system does not report it"

Level = Sequence[float]
"""Low end, middle, high end."""


def arms_figure(data: Mapping[str, Any], metric: str) -> Markup:
    """Draw each block of both arms as a dot and each arm's interval as a bar, from zero on."""
    names = [visible(str(data["before"])), visible(str(data["after"]))]
    blocks = [[float(block[side][metric]) for block in data["blocks"]] for side in ("before", "after")]
    levels: list[Level] = [data["levels"][side][metric] for side in ("before", "after")]
    most = max(*blocks[0], *blocks[1], *(level[2] for level in levels)) or 1.0
    drawing = Drawing(WIDTH, 2 * ROW)
    left, right = 2.0, WIDTH - 6.0

    def across(value: float) -> float:
        return left + value / (1.04 * most) * (right - left)

    drawing.below([(across(tick), _label(tick)) for tick in ticks_to(most)], left, right, ARMS[metric])
    for row, (name, values, level) in enumerate(zip(names, blocks, levels, strict=True)):
        low, mid, high = level
        colour = COLOURS[(1, 2)[row]]
        value = f"{quantity.number(mid)} [{quantity.number(low)}, {quantity.number(high)}]"
        drawing.text(left, row * ROW + 9, _short(name, 34), INK, size=12)
        drawing.text(right, row * ROW + 9, value, INK, size=12, anchor="end")
        y = row * ROW + 26.0
        drawing.line((across(low), y), (across(min(high, 1.04 * most)), y), colour, 6, 0.35)
        for number, point in enumerate(values):
            drawing.dot(
                (across(point), y), colour, f"block {number + 1}: {quantity.number(point)}", hollow=True
            )
        drawing.dot((across(mid), y), colour, f"{name}: {value}")
    return drawing.svg(f"Both arms by {ARMS[metric]}: {names[0]} against {names[1]}")


def slope_figure(data: Mapping[str, Any]) -> Markup:
    """Draw throughput over connections (log), the line that it would follow, and CPUs in use at each point."""
    points = [(int(count), float(rps), float(cpus)) for count, rps, cpus in data["points"] if rps > 0]
    if len(points) < 2:
        return Markup("")
    low, mid, high = data["in_work"]
    top = max(rps for _, rps, _ in points)
    first = points[0][1] / points[0][0]
    drawing = Drawing(WIDTH - 44, 190)
    last = max(points[-1][0], 2)

    def placed(count: float, rps: float) -> tuple[float, float]:
        return math.log(count) / math.log(last) * drawing.width, (1 - rps / (1.1 * top)) * drawing.height

    counts = [step for step in steps(1, last) if math.log2(step) % 1 == 0] or [1.0, float(last)]
    powers = [2.0**n for n in range(int(math.log2(last)) + 1)]
    shown = powers[:: 1 + len(powers) // 7] if len(powers) > len(counts) else counts
    drawing.below([(placed(tick, 0)[0], f"{tick:g}") for tick in shown], 0, drawing.width, "connections")
    heights = [(placed(1, tick)[1], _label(tick)) for tick in ticks_to(1.05 * top)]
    drawing.beside(heights, drawing.width, "requests per second")
    full = min(top * 1.08 / first, float(last))
    ideal = [placed(count, first * count) for count in _between(1.0, full)]
    drawing.path(ideal, MUTED, 1.5, (3, 3))
    drawing.path([placed(count, rps) for count, rps, _ in points], COLOURS[0], 2)
    for count, rps, cpus in points:
        hint = f"{count} connections: {quantity.rate(rps)}, {cpus:.2f} CPUs busy"
        drawing.dot(placed(count, rps), COLOURS[0], hint)
    text = f"{significant(mid)} [{significant(low)}, {significant(high)}] in work at once"
    drawing.text(drawing.width - 2, drawing.height - 12, text, INK, size=12, anchor="end")
    room = 3 + LETTER * max(len(text) for _, text in heights)
    half = (
        LETTER * len(f"{shown[-1]:g}") / 2
    )  # of the last number below, which stands in the middle of its line
    return drawing.svg("Throughput over connections", left=room, above=19, right=4 + half)


def _between(low: float, high: float, count: int = 24) -> list[float]:
    """Return numbers from `low` to `high`, evenly on a logarithmic axis."""
    return [low * (high / low) ** (step / (count - 1)) for step in range(count)]


class _Lanes:
    """Lanes under each other, one time axis below all of them."""

    def __init__(self, seconds: float, count: int) -> None:
        self.seconds = seconds
        self.drawing = Drawing(WIDE, count * (LANE + GAP))
        self._count, self._at = count, 0
        for tick in ticks_to(seconds):
            x = self.across(tick)
            self.drawing.line((x, 0), (x, self.drawing.height), GRID)
            self.drawing.text(x, self.drawing.height + 10, f"{tick:g}", MUTED, anchor="middle")
        self.drawing.text(WIDE / 2, self.drawing.height + 25, "seconds", MUTED, anchor="middle")

    def across(self, at_s: float) -> float:
        return min(max(at_s / self.seconds, 0.0), 1.0) * WIDE

    def lane(self, title: str, colour: str = INK) -> float:
        """Begin a lane; return the height of its lower end."""
        top = self._at * (LANE + GAP)
        self._at += 1
        self.drawing.text(0, top + 14, _short(title, LONGEST_TITLE), colour, size=12)
        below = top + GAP + LANE - 4
        self.drawing.line((0, below), (WIDE, below), GRID)
        return below

    def bar(
        self, when: tuple[float, float], below: float, colour: str, hint: str, share: float = 1.0
    ) -> None:
        """Draw from `when` for so many seconds; `share` of the lane's height."""
        left = self.across(when[0])
        right = max(self.across(sum(when)), left + LEAST)
        self.drawing.area((left, below - share * BAR), (right, below), colour, hint)


def timeline_figure(recorded: Timeline, *, loop: bool = True) -> Markup:
    """Draw what happened when; each lane above the other for the same second. `loop`: the app has an event loop."""
    shown = _worst(recorded)
    lanes = _Lanes(max(recorded.seconds, 1e-9), 1 + loop + len(shown) + len(COUNTERS))
    if loop:
        _stalls(lanes, recorded.stalls)
    for number, place in enumerate(shown):
        colour = COLOURS[(2 + number) % len(COLOURS)]
        below = lanes.lane(f"  in {visible(recorded.stacks[place][0])}", MUTED)
        for stall in recorded.stalls:
            if stall.stack == place:
                hint = "\n".join(map(visible, recorded.stacks[place][1:]))
                lanes.bar((stall.at_s, stall.seconds), below, colour, hint)
    _collections(lanes, recorded)
    for counter in COUNTERS:
        _draw_counter(lanes, recorded.counts, counter)
    return lanes.drawing.svg("What happened when, lane by lane", below=34)


def _stalls(lanes: _Lanes, stalls: Sequence[Stall]) -> None:
    """Draw when the event loop was late."""
    late = sum(stall.seconds for stall in stalls)
    below = lanes.lane(
        f"Event loop late: {len(stalls)} times, {significant(late, 2)} s in all"
        if stalls
        else "Event loop: never late"
    )
    for stall in stalls:
        colour = BLOCKED if stall.blocked_s >= stall.ran_s else COMPUTED
        share = stall.blocked_s / stall.seconds if stall.seconds else 0.0
        hint = (
            f"at {stall.at_s:.2f} s for {significant(1000 * stall.seconds)} ms, blocked for {share:.0%} of it"
        )
        lanes.bar((stall.at_s, stall.seconds), below, colour, hint)


def _worst(recorded: Timeline) -> list[int]:
    """Return the stacks that held the loop up longest."""
    held: dict[int, float] = {}
    for stall in recorded.stalls:
        if stall.stack is not None:
            held[stall.stack] = held.get(stall.stack, 0.0) + stall.seconds
    return sorted(held, key=lambda place: -held[place])[:STACKS]


def _collections(lanes: _Lanes, recorded: Timeline) -> None:
    whole = [collection for collection in recorded.collections if collection.generation >= 2]
    title = (
        f"Collections of garbage: {len(recorded.collections)} of 1 ms or longer, {len(whole)} of the whole heap"
        if recorded.collections
        else "Collections of garbage: none of 1 ms or longer"
    )
    below = lanes.lane(title)
    for collection in recorded.collections:
        hint = (
            f"generation {collection.generation} at {collection.at_s:.2f} s for "
            f"{significant(1000 * collection.seconds)} ms"
        )
        share = 1.0 if collection.generation >= 2 else 0.5
        lanes.bar((collection.at_s, collection.seconds), below, COLOURS[4], hint, share)


@dataclass(frozen=True)
class Counter:
    """A counter with a lane of its own."""

    what: str
    take: Callable[[Sampled], float | None]
    unit: str
    colour: str


COUNTERS = (
    Counter("Kept from the CPU by a quota (throttled)", lambda counts: counts.throttled_s, "s", COLOURS[7]),
    Counter("Listen queue overflowed", lambda counts: counts.overflows, "connections", COLOURS[3]),
    Counter("CPUs busy", lambda counts: counts.cpus, "CPUs", COLOURS[6]),
)


def _draw_counter(lanes: _Lanes, counts: Sequence[Sampled], counter: Counter) -> None:
    """Draw a counter sample by sample, each as wide as the time since the last."""
    values = [(count.at_s, counter.take(count)) for count in counts]
    known = [value for _, value in values if value is not None]
    most = max(known, default=0.0)
    if not known:
        lanes.lane(f"{counter.what}: {NOT_TOLD}", MUTED)
        return
    text = f"at most {significant(most)} {counter.unit} between two samples" if most else "not once"
    below = lanes.lane(f"{counter.what}: {text}")
    before = 0.0
    for at_s, value in values:
        if value:
            hint = f"{before:.1f} to {at_s:.1f} s: {significant(value)} {counter.unit}"
            lanes.bar((before, at_s - before), below, counter.colour, hint, value / most)
        before = at_s


def _label(value: float) -> str:
    return quantity.short(float(f"{value:.6g}"))


def _short(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


@dataclass(frozen=True)
class Card:
    """A cause."""

    id: str
    proven: str
    where: str
    reason: str
    costs: Sequence[str]
    cure: str
    change: Sequence[tuple[str, str]]
    frames: Sequence[str]
    load: str
    figures: Sequence[Markup]


def render(found: Examination) -> str:
    """Return the page."""
    found = relative(found)
    slope = next(
        (screen for screen in found.screens if screen.kind == "slope" and "points" in screen.data), None
    )
    timeline = found.timeline
    context = {
        "title": visible(found.title),
        "lead": visible(f"{found.stack} · took {duration(found.seconds)}"),
        "headline": _headline(found),
        "summary": [visible(line) for line in _summary(found)],
        "causes": [_card(diagnosis) for diagnosis in found.causes],
        "timeline": timeline_figure(timeline, loop=_has_loop(found)) if timeline else None,
        "has_loop": _has_loop(found),
        "timeline_about": _timeline_about(found),
        "screens": [visible(screen.said) for screen in found.screens],
        "slope": slope_figure(slope.data) if slope else None,
        "others": list(_others(found)),
        # Style is ours, not data: autoescape would break it.
        "css": Markup(template_text("report.css")),  # noqa: S704
    }
    return environment().get_template("doctor.html").render(context)


def write(path: Path, found: Examination) -> None:
    """Write the page. Raises OutputError."""
    writing.write(path, render(found))


def _headline(found: Examination) -> str:
    if not found.causes:
        return no_cause(found).capitalize()
    return f"{plural(len(found.causes), 'cause')} proven"


def _summary(found: Examination) -> Iterator[str]:
    yield from slo_lines(found)
    if found.unexplained is not None:
        yield (
            f"{found.unexplained:.0%} of the time of a request under full load are explained neither by a cause nor by "
            "what the request needs itself."
        )
    elif left := unexplained(found):
        yield f"What is left is {left}."
    yield from disturbed_lines(found)


def _card(diagnosis: Diagnosis) -> Card:
    stack = stack_of(diagnosis)
    arms = next((evidence for evidence in diagnosis.evidence if evidence.kind == "arms"), None)
    return Card(
        diagnosis.id,
        {"cure": "proven by its cure", "dose": "proven by a larger dose"}.get(diagnosis.proof, ""),
        visible(where(diagnosis)),
        visible("; ".join(filter(None, (diagnosis.reason.rstrip("."), comes_of(diagnosis))))),
        list(costs(diagnosis.effect)),
        names.sentence_case(visible(diagnosis.cure.what.rstrip("."))) if diagnosis.cure else "",
        [(sign, visible(line)) for sign, line in change(diagnosis)],
        [visible(str(frame)) for frame in stack.data["frames"]] if stack else [],
        visible(proof(diagnosis)),
        _figures(arms) if arms else [],
    )


def _figures(arms: Evidence) -> list[Markup]:
    if not arms.data.get("blocks") or "levels" not in arms.data:
        return []
    return [arms_figure(arms.data, metric) for metric in ARMS]


def _timeline_about(found: Examination) -> str:
    if found.timeline is None:
        return ""
    beside = " beside its event loop" if _has_loop(found) else ""
    return visible(
        f"{duration(found.timeline.seconds)} of a closed loop ({found.timeline.load}) on the app as it is, with a "
        f"heartbeat{beside}: what stands under each other happened in the same moment."
    )


def _has_loop(found: Examination) -> bool:
    """Whether the screens saw an event loop; where they did not look, stalls are of one."""
    seen = [
        screen.data["loop"] for screen in found.screens if screen.kind == "counter" and "loop" in screen.data
    ]
    return bool(seen[0]) if seen else True


def _others(found: Examination) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    headings = {Ruling.CANNOT_TELL: "Cannot tell", Ruling.NOT_A_CAUSE: "Not the cause"}
    for ruling, heading in headings.items():
        rows = [(diagnosis.id, visible(diagnosis.reason)) for diagnosis in found.of(ruling)]
        if rows:
            yield heading, rows
    if found.untried:
        yield "Not tried", [(untried.id, visible(untried.why)) for untried in found.untried]
