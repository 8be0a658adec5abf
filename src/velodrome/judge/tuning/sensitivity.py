"""What would change a recommendation: a slower third party, or a higher rate; from the model the race measured by.

Each candidate is taken to reach the same part of what arithmetic allows it as it did when it was measured; one that was
not, the part that others of its stack reached. Then the wait of a request is made longer, and the rate higher.
"""

import statistics
from collections.abc import Iterator, Sequence
from dataclasses import replace

from velodrome.judge.tuning.forecasting import forecast
from velodrome.model import quantity
from velodrome.model.recommendation import Reason
from velodrome.model.tuning import Candidate, Entry, Fate, Goal, Looked, Tuned

WAITS, LEAST_WAIT_MS = 0.2, 1.0
"""Of its time a request must wait so much, and this at least, before a third party's latency is worth a sentence."""
LONGER = (1.25, 1.5, 2.0, 3.0, 5.0, 10.0)
CLEARLY = 1.1
OUT = (Fate.FAILED, Fate.TOO_BIG)


def changes(tuned: Tuned, cpus: int, rate: float = 0.0) -> tuple[Reason, ...]:
    """Return what would change the recommendation; none where nothing is recommended."""
    best = tuned.best
    if best is None or best.candidate.contestant.stack not in tuned.looks:
        return ()
    return (*_of_wait(tuned, best, cpus), *_of_rate(tuned, best, cpus, rate))


def _of_wait(tuned: Tuned, best: Entry, cpus: int) -> Iterator[Reason]:
    look = tuned.looks[best.candidate.contestant.stack]
    if look.wait_ms < max(WAITS * look.alone_ms, LEAST_WAIT_MS) or tuned.goal is not Goal.CAPACITY:
        return
    now = _able(tuned, best, cpus, 1.0)
    for factor in LONGER:
        mine = _able(tuned, best, cpus, factor)
        able = {one.candidate.label: _able(tuned, one, cpus, factor) for one in _others(tuned, best)}
        other = max(able, key=able.__getitem__, default="")
        if other and able[other] > CLEARLY * mine:
            wait = look.wait_ms * factor
            yield Reason(
                "wait",
                wait,
                other,
                f"if a request waited {quantity.number(factor)} times as long ({_ms(wait)} instead of "
                f"{_ms(look.wait_ms)}), this would do {quantity.rate(mine)} and {other} {quantity.rate(able[other])}",
            )
            return
    twice = _able(tuned, best, cpus, 2.0)
    yield Reason(
        "wait",
        look.wait_ms * LONGER[-1],
        "",
        f"a slower third party changes nothing up to {quantity.number(LONGER[-1])} times its {_ms(look.wait_ms)}: "
        f"twice as slow, this does {quantity.rate(twice)} instead of {quantity.rate(now)}, and no other does more",
    )


def _of_rate(tuned: Tuned, best: Entry, cpus: int, rate: float) -> Iterator[Reason]:
    if tuned.goal is Goal.CAPACITY:
        if best.value is not None and best.forecast is not None:
            most = best.value.high
            # A first look in a slow moment forecasts less than was measured since: then arithmetic tells nothing.
            higher = best.forecast.rps > most
            allows = f"; arithmetic allows this one {best.forecast.arithmetic}" if higher else ""
            yield Reason("rate", most, "", f"above {quantity.rate(most)} none of these carries it{allows}")
        return
    if best.forecast is None:
        return
    most = best.forecast.rps
    more = [one for one in _others(tuned, best) if one.forecast and one.forecast.rps > CLEARLY * most]
    other = min(more, key=lambda one: one.value.mid if one.value else float("inf"), default=None)
    instead = other.candidate.label if other else ""
    then = f"; then {instead}" if instead else "; then it takes more CPUs"
    yield Reason(
        "rate",
        most,
        instead,
        f"by arithmetic this carries at most {best.forecast.arithmetic}, which is {quantity.number(most / rate)} times "
        f"the rate asked{then}",
    )


def _others(tuned: Tuned, best: Entry) -> Sequence[Entry]:
    return [
        one for one in tuned.entries if one is not best and one.forecast is not None and one.fate not in OUT
    ]


def _able(tuned: Tuned, entry: Entry, cpus: int, factor: float) -> float:
    """Return what a candidate would do if requests waited so many times as long."""
    look = tuned.looks[entry.candidate.contestant.stack]
    longer = replace(look, alone_ms=look.alone_ms + (factor - 1) * look.wait_ms)
    return _part(tuned, entry) * _allowed(entry.candidate, longer, cpus)


def _allowed(candidate: Candidate, look: Looked, cpus: int) -> float:
    return forecast(candidate, look, cpus).rps


def _part(tuned: Tuned, entry: Entry) -> float:
    """Return which part of what arithmetic allows a candidate reaches."""
    if entry.value is not None and entry.forecast is not None:
        return entry.value.mid / entry.forecast.rps
    stack = entry.candidate.contestant.stack
    known = [
        one.value.mid / one.forecast.rps
        for one in tuned.entries
        if one.value is not None and one.forecast is not None and one.candidate.contestant.stack == stack
    ]
    return statistics.median(known) if known else 0.8


def _ms(value: float) -> str:
    return f"{quantity.milliseconds(value)} ms"
