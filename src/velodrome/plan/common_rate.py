"""The rate of a comparison's open loop, found before the race: every contestant that may win can carry it.

    look_at({"uvicorn": 1160.0, "granian": 2100.0, "waitress": 300.0}, 1.5)     # .rate 810, .slowest "uvicorn"

Latencies compare at the same rate only. A rate that is given beforehand is either so low that every server looks alike,
or so high that some measure nothing but their own queue. So a short closed loop of every contestant comes first, the
*look*. The rate is 70 % of what the slowest answered of those that reach half of the best:

- who reaches less than half of the best is out of the question for throughput, and would pull the rate down to where
  nobody has a queue;
- at 70 % of its capacity a server has a queue that shows (for Poisson arrivals and constant service times the mean
  wait is 0.7 ÷ (2 · 0.3) = 1.2 service times; Kleinrock, «Queueing Systems» I, 1975, M/D/1), and a look that is 10 or
  20 % off still leaves it able to keep up;
- the plan of the race, all blocks of it, has this one rate, so blocks stay comparable and a server starts once in each.

Whoever cannot carry it is loaded at it all the same: that it falls behind is its result.
"""

import math
from collections.abc import Mapping

from velodrome.model.study import Look

IN_QUESTION = 0.5
"""Share of the best contestant's throughput from which on a contestant sets the rate."""
UTILISATION = 0.7
"""Share of the slowest contestant's throughput that becomes the rate."""
RULE = "70 % of what the slowest answers of those that reach half of the best"


def look_at(answered_rps: Mapping[str, float], seconds: float) -> Look:
    """Return what a look found, by label; without a rate where nobody gave a right answer."""
    answering = {label: rps for label, rps in answered_rps.items() if rps > 0}
    if not answering:
        return Look(seconds, {})
    best = max(answering.values())
    in_question = {label: rps for label, rps in answering.items() if rps >= IN_QUESTION * best}
    slowest = min(in_question, key=lambda label: (in_question[label], label))
    return Look(seconds, answering, two_digits(UTILISATION * in_question[slowest]), slowest)


def leader(look: Look) -> str:
    """Return the label of who answered most, or nothing."""
    return max(look.answered_rps, key=lambda label: (look.answered_rps[label], label), default="")


def two_digits(rate: float) -> float:
    """Return a rate cut to two digits: 812.3 to 810.0; more would claim a precision that a look does not have."""
    step = 10.0 ** (math.floor(math.log10(rate)) - 1)
    return round(math.floor(rate / step + 1e-9) * step, 9)
