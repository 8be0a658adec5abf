"""How many more blocks would settle how small a difference, and how long they would take."""

from collections.abc import Sequence
from datetime import datetime
from itertools import pairwise
from math import log
from statistics import median

from velodrome.judge.comparing import Comparison, Pair
from velodrome.model.measurement import Failed, Measurement
from velodrome.model.quantity import duration

TARGETS = (0.03, 0.05, 0.1, 0.2)
MOST_BLOCKS = 60
"""Nobody waits for more: a coarser difference is offered instead."""
START_S = 1.0
"""Start and stop of a server, where the times of trials cannot tell."""


def to_settle(comparison: Comparison, pair: Pair, block_s: float) -> str:
    """Return «6 more blocks (2 min) would settle a difference of 3 %», or nothing where that is settled."""
    for target in TARGETS:
        needed = _blocks(comparison, pair, log(1 + target))
        if needed is None:
            continue
        more = needed - pair.blocks
        if more <= 0:
            return ""
        blocks = f"{more} more block{'' if more == 1 else 's'} ({duration(more * block_s)})"
        return f"{blocks} would settle a difference of {target * 100:.0f} %"
    return (
        f"even {MOST_BLOCKS} blocks would not settle a difference of {TARGETS[-1] * 100:.0f} % here: the "
        "machine is too restless; use a quieter one, or longer spans"
    )


def more_blocks(comparison: Comparison, pair: Pair, distance: float, block_s: float) -> str:
    """Return how many more blocks would tell a ratio from a bound that is `distance` away, in logs."""
    needed = _blocks(comparison, pair, distance)
    if needed is None:
        return f"it is so near that even {MOST_BLOCKS} blocks would not tell"
    more = max(needed - pair.blocks, 1)
    return f"{more} more block{'' if more == 1 else 's'} ({duration(more * block_s)}) would tell"


def block_s(results: Sequence[Measurement | Failed], labels: Sequence[str], question: str) -> float:
    """Return the seconds a block of these contestants in this question takes, by when its trials began."""
    gaps = _gaps(results)
    per_trial = median(gaps) if gaps else None
    loads = {
        (result.trial.load.label): result.trial.load
        for result in results
        if result.trial.question == question
    }
    told = START_S + sum(load.warmup_s + load.duration_s for load in loads.values())
    return len(labels) * (max(told, per_trial * len(loads)) if per_trial else told)


def _blocks(comparison: Comparison, pair: Pair, half: float) -> int | None:
    """Return the fewest blocks with which half the interval, in logs, is narrower, None if too many."""
    low, high = 1, MOST_BLOCKS
    if comparison.half_width(pair, high) > half:
        return None
    while low < high:
        middle = (low + high) // 2
        if comparison.half_width(pair, middle) <= half:
            high = middle
        else:
            low = middle + 1
    return low


def _gaps(results: Sequence[Measurement | Failed]) -> list[float]:
    times = []
    for result in results:
        try:
            times.append(datetime.fromisoformat(result.started_at).timestamp())
        except ValueError:
            continue
    times.sort()
    # Longer ones are pauses between a run and its resumption, not trials.
    return [later - earlier for earlier, later in pairwise(times) if 0 < later - earlier < 600]
