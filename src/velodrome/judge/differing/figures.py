"""The figures of two cells that are compared: which, block by block, and what they are in all blocks together.

Right answers a second, CPU per right answer and memory are those of claims (`judge/figures/`). A percentile is taken of
each block and compared; what is shown of it is that of all blocks, histograms merged. Where a block has too few
requests beyond a percentile, blocks are bundled until there are enough.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median

from velodrome.judge.differing import bundling
from velodrome.judge.differing.estimating import Two
from velodrome.judge.figures.cell import Cell
from velodrome.judge.figures.latency import noise
from velodrome.judge.figures.number import Missing, Number, Series
from velodrome.judge.figures.taking import TAKING
from velodrome.judge.histograms import EMPTY, Histogram, decode, merge, needed
from velodrome.model.difference import DIFF_METRICS
from velodrome.model.load import Load, Open
from velodrome.model.measurement import Measurement
from velodrome.model.quantity import grouped
from velodrome.model.study import Question

LATENCIES = tuple(name for name, metric in DIFF_METRICS.items() if metric.percentile)
OF_SPEED = frozenset({"throughput", "cpu", "p50"})
DRIFT_OF_SPEED = 2.0
"""What a machine drifts by between two runs, over what two equal busy servers differ by in a block (`docs/diff.md`).

Of other figures it is 1, and of servers that mostly sleep: their noise holds more than the speed of the machine.
"""
_BUSY = 0.1
"""The noise of a busy server is less."""
BEHIND = 0.9
"""An open loop that got less than this part of its rate was not kept up with."""


@dataclass(frozen=True)
class Compared:
    """A figure of both sides."""

    two: Two
    before: float
    """Of all blocks together."""
    after: float
    bundle: int = 1
    """So many blocks make one value of it."""


def looked_at(question: Question, load: Load) -> tuple[str, ...]:
    """Return the metrics that a load shows: latency in open loops, where there is one."""
    of_latency = isinstance(load.pace, Open) or not any(isinstance(one.pace, Open) for one in question.loads)
    return tuple(name for name in DIFF_METRICS if of_latency or name not in LATENCIES)


def compared(metric: str, before: Cell, after: Cell, load: Load, paired: bool) -> Compared | Missing:
    """Return a figure of both sides, or why there is none. Not of `errors`, see `failing`."""
    percentile = DIFF_METRICS[metric].percentile
    if percentile is not None and load.driver == "velodrome":
        return _latency(percentile, (before, after), load, paired)
    taken_as = _taken_as(metric, load)
    if not taken_as:
        return Missing(f"{load.driver} tells no {metric} of each block")
    numbers = [TAKING[taken_as].take(cell, load) for cell in (before, after)]
    series: list[Series] = []
    for number in numbers:
        found = _series(number)
        if isinstance(found, Missing):
            return found
        series.append(found)
    two = Two(series[0], series[1], 0.0 if paired else _drift(metric, series))
    if not two.design.before or not two.design.after:
        return Missing("no block holds both")
    return Compared(two, fmean(series[0].values.values()), fmean(series[1].values.values()))


def _drift(metric: str, series: Sequence[Series]) -> float:
    busy = max(one.noise for one in series) < _BUSY
    return DRIFT_OF_SPEED if metric in OF_SPEED and busy else 1.0


def _taken_as(metric: str, load: Load) -> str:
    """Return by which figure of claims a metric is taken; empty: by none."""
    if metric == "throughput":
        # That a server falls behind a rate is shown by measurements that are set aside for just that.
        return "answered_rps" if isinstance(load.pace, Open) else "throughput_rps"
    return {"cpu": "cpu_us", "memory": "memory_bytes", "p50": "p50_told_ms", "p99": "p99_told_ms"}.get(
        metric, ""
    )


def _series(number: Number) -> Series | Missing:
    if isinstance(number, Series) and number.limit is not None:
        return Missing(f"it is {number.limit.side} what was measured; {number.limit.cure}")
    if isinstance(number, Series | Missing):
        return number
    return Missing("it is not told block by block")


def _latency(percentile: float, cells: tuple[Cell, Cell], load: Load, paired: bool) -> Compared | Missing:
    sides: list[dict[int, Histogram]] = []
    for cell in cells:
        valid = cell.valid(load)
        if isinstance(valid, Missing):
            return valid
        if isinstance(load.pace, Open) and _answered(valid) < BEHIND * load.pace.rate:
            return Missing(
                f"{cell.runner.called} fell behind {load.label}: latency would tell how long it ran"
            )
        sides.append({one.trial.block: _histogram(one, load) for one in valid})
    if paired:
        shared = sides[0].keys() & sides[1].keys()
        sides = [{block: side[block] for block in sorted(shared)} for side in sides]
    size = max(bundling.size_of(side.values(), percentile) for side in sides)
    if not size:
        least = min(sum(one.total for one in side.values()) for side in sides)
        wanted = grouped(needed(percentile))
        return Missing(f"it needs {wanted} requests, and there were {grouped(least)}: load longer")
    question = cells[0].question
    series = [_bundled(side, size, percentile, question) for side in sides]
    two = Two(series[0], series[1], 0.0 if paired else _drift(f"p{percentile:g}", series))
    if not two.design.before or not two.design.after:
        wanted = grouped(needed(percentile))
        return Missing(f"it needs {wanted} requests on both sides: load longer")
    before, after = (merge(side.values()).percentile_ms(percentile) or 0.0 for side in sides)
    return Compared(two, before, after, size)


def _bundled(side: Mapping[int, Histogram], size: int, percentile: float, question: Question) -> Series:
    values = bundling.values(side, size, percentile)
    part = f"p{percentile:g}".replace(".", "_")
    return Series(values, noise=noise(question, part, median(values.values())) if values else 0.0)


def _histogram(one: Measurement, load: Load) -> Histogram:
    """Return latencies from when requests were due; in a closed loop that is when they were sent."""
    text = one.load.hdr_due if isinstance(load.pace, Open) else one.load.hdr_sent
    try:
        return decode(text or "")
    except ValueError:
        return EMPTY


def _answered(measured: Sequence[Measurement]) -> float:
    span = sum(one.load.duration_s for one in measured)
    return sum(one.load.answers for one in measured) / span if span else 0.0
