"""Latency: from when requests were due, which a user waits, and from when they were sent, which is all that most
other load generators tell.

A percentile is taken of each block and compared within the block; it is never averaged into one.
"""

import math
from collections.abc import Callable, Mapping
from statistics import median

from velodrome.judge import histograms
from velodrome.judge.figures.cell import Cell, Taking
from velodrome.judge.figures.number import Missing, Number, Series
from velodrome.judge.histograms import Histogram
from velodrome.model.load import Load
from velodrome.model.measurement import Latency, Measurement
from velodrome.model.study import Question

NOISE_OF = {"mean": 0.05, "p50": 0.05, "p75": 0.05, "p90": 0.2, "p99": 0.3}
"""Standard deviation of the log ratio of two equal servers, by percentile (docs/method.md, «Claims»)."""
NOISE_OF_EXTREMES = 0.3
LEAST_NOISE = 0.005
NOISE_OF_TAIL = {"p99_9": 0.4}
"""The same beyond p99, which no claim rests on."""
FLOOR_MS = {"mean": 0.08, "p50": 0.08, "p75": 0.1, "p90": 0.15, "p99": 1.0, "p99_9": 3.0}
"""What waking up adds, and differs by, however short the latency is."""


def from_due(part: str) -> Callable[[Cell, Load], Number]:
    """Return what takes one part of the latency from due."""
    return lambda cell, load: _taken(cell, load, part, lambda one: one.load.due, "due")


def from_sent(part: str) -> Callable[[Cell, Load], Number]:
    """Return what takes one part of the latency from sent."""
    return lambda cell, load: _taken(cell, load, part, lambda one: one.load.sent, "sent")


def as_told(part: str) -> Callable[[Cell, Load], Number]:
    """Return what takes one part of the latency that a driver shows first: from due if it knows, else its own."""

    def take(cell: Cell, load: Load) -> Number:
        knows = any(one.load.due.p50 is not None for one in cell.runner.under(load))
        return (from_due if knows else from_sent)(part)(cell, load)

    return take


def _taken(
    cell: Cell, load: Load, part: str, latency: Callable[[Measurement], Latency], since: str
) -> Number:
    found = cell.valid(load)
    if isinstance(found, Missing):
        return found
    values = {}
    for one in found:
        value: float | None = getattr(latency(one), part)
        if value is not None and value > 0:
            values[one.trial.block] = value
    if not values:
        other = (
            "; its service time is another metric" if since == "due" and load.driver != "velodrome" else ""
        )
        return Missing(f"{load.driver} told no {part} from {since} under {load.label}{other}")
    return Series(values, noise=noise(cell.question, part, median(values.values())))


def noise(question: Question, part: str, value_ms: float) -> float:
    """Return how much two equal servers differ: what the recipe and the link wait is the same for both."""
    waits_ms = question.recipe.wait_ms + (question.link.rtt_ms if question.link else 0.0)
    return _presumed(part, value_ms, max(value_ms - waits_ms, 0.0) / value_ms)


def noise_of(percentile: float, value_ms: float) -> float:
    """Return the same of a server of which nothing is known but this latency, for any percentile."""
    known = {50.0: "p50", 75.0: "p75", 90.0: "p90", 99.0: "p99", 100.0: "p99_9"}
    return _presumed(next(part for most, part in known.items() if percentile <= most), value_ms, 1.0)


def _presumed(part: str, value_ms: float, own: float) -> float:
    shares = NOISE_OF | NOISE_OF_TAIL
    return math.hypot(shares[part] * own, FLOOR_MS[part] / value_ms, LEAST_NOISE)


def slowest(cell: Cell, load: Load) -> Number:
    """The longest latency from sent: of a longer span longer, and of one request alone."""
    found = cell.valid(load)
    if isinstance(found, Missing):
        return found
    return _series({one.trial.block: one.load.sent.max for one in found}, load, "slowest request")


def by_histogram(
    part: str, what: Callable[[Histogram], float | None], told: str
) -> Callable[[Cell, Load], Number]:
    """Return what takes a number from the histogram of latencies from sent, or as the driver tells it."""

    def take(cell: Cell, load: Load) -> Number:
        found = cell.valid(load)
        if isinstance(found, Missing):
            return found
        values = {
            one.trial.block: what(histograms.decode(one.load.hdr_sent))
            if one.load.hdr_sent
            else getattr(one.load.sent, part, None)
            for one in found
        }
        return _series(values, load, told)

    return take


def _series(values: Mapping[int, float | None], load: Load, told: str) -> Number:
    there = {block: value for block, value in values.items() if value}
    if not there:
        return Missing(f"{load.driver} told no {told} under {load.label}")
    return Series(there, noise=NOISE_OF_EXTREMES)


FIGURES = {
    **{f"{part}_ms": Taking(from_due(part), prefers_open=True) for part in NOISE_OF if part != "p75"},
    **{f"{part}_service_ms": Taking(from_sent(part), prefers_open=True) for part in NOISE_OF},
    **{f"{part}_told_ms": Taking(as_told(part), prefers_open=True) for part in ("p50", "p99")},
    "max_service_ms": Taking(slowest, prefers_open=True),
    "min_service_ms": Taking(
        by_histogram("min", lambda one: one.min_ms, "fastest request"), prefers_open=True
    ),
    "stdev_service_ms": Taking(
        by_histogram("stdev", lambda one: one.stdev_ms, "deviation"), prefers_open=True
    ),
}
