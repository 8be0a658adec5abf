"""The highest rate that still holds: of the question's open loops, block by block.

A rate holds where 97 % of it was answered right, the p99 from due stayed within a bound (that of the check, else four
times what the recipe waits) and under 1 % of the requests failed. The rates are a grid: the true limit lies between
the one that holds and the next, and its width is part of the number's uncertainty.
"""

import math
from itertools import pairwise

from velodrome.judge.field import failures
from velodrome.judge.figures.cell import Cell, Taking, spoilt
from velodrome.judge.figures.number import Limit, Missing, Number, Series, Side
from velodrome.model.load import Load, Open
from velodrome.model.measurement import Measurement

ACHIEVED = 0.97
WAITS = 4.0
"""Times what the recipe waits by itself: from there on, requests wait for each other."""
LEAST_BOUND_MS = 50.0
"""For recipes that wait little or not at all."""
ERRORS = 0.01


def sustained(cell: Cell, load: Load) -> Number:
    """Return the highest rate that holds in each block, of the open loops with that load's driver."""
    loads = sorted(
        (one for one in cell.question.loads if isinstance(one.pace, Open) and one.driver == load.driver),
        key=_rate,
    )
    if not loads:
        return Missing(f"{cell.question.name} has no open loop")
    bound_ms = cell.bound_ms or max(WAITS * cell.question.recipe.wait_ms, LEAST_BOUND_MS)
    held: dict[int, dict[float, bool]] = {}
    for one in loads:
        for result in cell.runner.under(one):
            if not spoilt(result):
                held.setdefault(result.trial.block, {})[_rate(one)] = holds(result, one, bound_ms)
        for block in cell.failures(one):
            held.setdefault(block, {})[_rate(one)] = False
    if not held:
        reason = cell.seen(loads[0])
        return reason if isinstance(reason, Missing) else Missing(f"nothing of {cell.runner.called} was run")
    return _series(held, [_rate(one) for one in loads])


def holds(one: Measurement, load: Load, bound_ms: float) -> bool:
    """Return whether a server kept up with an open loop."""
    # Another generator may tell no more than its own latency; it is then all there is to hold a bound against.
    p99 = one.load.due.p99 if load.driver == "velodrome" else one.load.sent.p99
    return (
        one.load.throughput_rps >= ACHIEVED * _rate(load)
        and p99 is not None
        and p99 <= bound_ms
        and failures(one, load) < ERRORS * max(one.load.requests, 1)
    )


def _series(held: dict[int, dict[float, bool]], rates: list[float]) -> Series:
    values, side = {}, None
    for block, by_rate in held.items():
        highest = max((rate for rate, held_it in by_rate.items() if held_it), default=None)
        if highest is None:
            values[block], side = min(by_rate), Side.AT_MOST
            continue
        values[block] = highest
        if highest == max(by_rate) and side is not Side.AT_MOST:
            side = Side.AT_LEAST
    steps = [math.log(later / rate) for rate, later in pairwise(rates) if later > rate]
    # Uniform between two rates of the grid: its standard deviation is the step over the root of 12.
    grain = max(steps, default=0.0) / math.sqrt(12)
    return Series(values, grain, limit=Limit(side, "ask other rates") if side else None)


def _rate(load: Load) -> float:
    assert isinstance(load.pace, Open)
    return load.pace.rate


FIGURES = {"sustained_rps": Taking(sustained, prefers_open=True)}
