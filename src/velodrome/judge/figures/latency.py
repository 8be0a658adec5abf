"""Latency: from when requests were due, which a user waits, and from when they were sent, which is all that most
other load generators tell.

A percentile is taken of each block and compared within the block; it is never averaged into one.
"""

from collections.abc import Callable

from velodrome.judge.figures.cell import Cell, Taking
from velodrome.judge.figures.number import Missing, Number, Series
from velodrome.model.load import Load
from velodrome.model.measurement import Latency, Measurement

NOISE_OF = {"mean": 0.05, "p50": 0.05, "p90": 0.1, "p99": 0.3}
"""Standard deviation of the log ratio of two equal servers, by percentile (docs/method.md, «Claims»)."""


def from_due(part: str) -> Callable[[Cell, Load], Number]:
    """Return what takes one part of the latency from due."""
    return lambda cell, load: _taken(cell, load, part, lambda one: one.load.due, "due")


def from_sent(part: str) -> Callable[[Cell, Load], Number]:
    """Return what takes one part of the latency from sent."""
    return lambda cell, load: _taken(cell, load, part, lambda one: one.load.sent, "sent")


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
    return Series(values, noise=NOISE_OF[part])


FIGURES = {
    **{f"{part}_ms": Taking(from_due(part), prefers_open=True) for part in NOISE_OF},
    **{f"{part}_service_ms": Taking(from_sent(part), prefers_open=True) for part in NOISE_OF},
}
