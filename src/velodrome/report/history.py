"""Over time: throughput, p99, CPU and memory of every contestant, second by second; where it stood still."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from markupsafe import Markup

from velodrome.model import quantity
from velodrome.model.measurement import Measurement, ServerSample
from velodrome.model.verdict import Answer
from velodrome.report import names
from velodrome.report.page import Styles, anchor
from velodrome.report.sparkline import Block, sparkline
from velodrome.report.typeset import plural

COLUMNS = ("requests/s", "p99, ms", "CPU, % of one", "memory, MB")
ENOUGH_TO_SEE_A_STALL = 5
"""Answers a second; a server slower than this has empty seconds without standing still."""


SHORTEST_S = 0.1
"""Of a last second shorter than this no rate is told."""


@dataclass(frozen=True)
class Strip:
    """One contestant: a line for each quantity and the range of its values."""

    name: str
    anchor: str
    lines: Sequence[tuple[str, Markup, str]]
    """Title, drawing, range."""
    stalled_s: int


@dataclass(frozen=True)
class History:
    """One question under one load."""

    about: str
    load: str
    see: str
    strips: Sequence[Strip]


def histories(answer: Answer, measured: Sequence[Measurement], style: Styles) -> list[History]:
    """Return the history of a question under each of its loads; nothing for a load without series."""
    loads = list(dict.fromkeys(m.trial.load.label for m in measured))
    found = []
    for load in loads:
        here = [m for m in measured if m.trial.load.label == load]
        by_label = _by_label(here)
        strips = [
            _strip(answer, s.contestant, names.of_standing(s), by_label[s.contestant], style)
            for s in answer.standings
            if s.contestant in by_label
        ]
        about = names.sentence_case(answer.about)
        found.append(History(about, names.load_label(load), _see(strips, here), strips))
    return found


def _by_label(measured: Sequence[Measurement]) -> Mapping[str, Sequence[Measurement]]:
    found: dict[str, list[Measurement]] = {}
    for one in sorted(measured, key=lambda m: m.trial.block):
        found.setdefault(one.trial.label, []).append(one)
    return found


def _see(strips: Sequence[Strip], measured: Sequence[Measurement]) -> str:
    seconds = max((len(m.load.series) for m in measured), default=0)
    blocks = len({m.trial.block for m in measured})
    what = f"{plural(blocks, 'block')} of {seconds} s side by side, each line from zero. "
    if not seconds:
        by = names.joined(sorted({m.load.driver for m in measured}))
        return f"{plural(blocks, 'block')} side by side, each line from zero. {by} does not tell of single seconds."
    stalled = [strip for strip in strips if strip.stalled_s]
    if not stalled:
        return f"{what}A shaded second would be one without an answer; there is none."
    told = names.joined(f"{strip.name} ({strip.stalled_s} s)" for strip in stalled)
    return f"{what}Shaded: seconds without a single answer, of {told}."


def _strip(answer: Answer, label: str, name: str, blocks: Sequence[Measurement], style: Styles) -> Strip:
    stalls = [stalled(m) for m in blocks]
    quantities: tuple[Sequence[Block], ...] = (
        [rates(m) for m in blocks],
        [[s.p99_ms for s in m.load.series] for m in blocks],
        [cpu_shares(m.server.samples) for m in blocks],
        [[s.rss_bytes / 1e6 for s in m.server.samples] for m in blocks],
    )
    colour = style[label][0]
    lines = [
        (title, sparkline(values, stalls, colour), _range(values, title))
        for title, values in zip(COLUMNS, quantities, strict=True)
    ]
    return Strip(name, anchor(answer.question, label), lines, sum(map(sum, stalls)))


def stalled(measurement: Measurement) -> list[bool]:
    """Return for each second whether nothing was answered in it although something usually is."""
    answered = [second.ok for second in measurement.load.series]
    usual = statistics.median(answered) if answered else 0
    return [usual >= ENOUGH_TO_SEE_A_STALL and ok == 0 for ok in answered]


def rates(measurement: Measurement) -> list[float | None]:
    """Return right answers per second in each second; the last one may be cut short by the end of the span."""
    lengths = (min(1.0, measurement.load.duration_s - at) for at in range(len(measurement.load.series)))
    pairs = zip(measurement.load.series, lengths, strict=True)
    return [second.ok / length if length > SHORTEST_S else None for second, length in pairs]


def cpu_shares(samples: Sequence[ServerSample]) -> list[float | None]:
    """Return the percentage of one CPU used between each two samples."""
    start = ServerSample(0.0, 0.0, 0, 0, 0, None, None)
    found: list[float | None] = []
    for before, after in pairwise([start, *(sample for sample in samples if sample.at_s > 0)]):
        passed = after.at_s - before.at_s
        found.append(100 * (after.cpu_s - before.cpu_s) / passed if passed > 0 else None)
    return found


def _range(blocks: Sequence[Block], title: str) -> str:
    """Return `184–201`, or one number where both ends read the same."""
    values = [value for block in blocks for value in block if value is not None]
    if not values:
        return quantity.MISSING
    form = quantity.milliseconds if "ms" in title else quantity.number
    low, high = form(min(values)), form(max(values))
    return low if low == high else f"{low}–{high}"
