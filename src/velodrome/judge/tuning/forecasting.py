"""What arithmetic allows a candidate, what would change a recommendation, and whether a server's memory rises.

Little's law bounds a server with slots: slots ÷ the time a request holds a slot. CPU bounds every server: the CPUs its
processes can use at once ÷ what a request costs. Both are upper bounds; queues, locks and neighbours only take from
them (J. D. C. Little, Operations Research 9, 1961; P. J. Denning and J. P. Buzen, «The Operational Analysis of Queueing
Network Models», Computing Surveys 10, 1978, the asymptotic bounds).
"""

import math
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from velodrome.judge.search.holding import slope
from velodrome.model import quantity
from velodrome.model.measurement import Measurement
from velodrome.model.tuning import (
    Candidate,
    Entry,
    Fate,
    FewSlots,
    Forecast,
    Goal,
    Looked,
    Observation,
    Reason,
    Tuned,
)

BUSY = 0.7
"""A process that used so much of its CPU was stopped by that."""
UNUSED = 0.7
"""A closed loop of which so many were not in work at once was stopped by something."""
LEAST_CROWD, MOST_CROWD, CROWDED = 32, 512, 4.0
"""Connections of the look, and how many times those that would be in work by what a request took alone."""
SHARED = 0.35
"""Of a process's memory that another worker of the same server adds, at least; forked workers share the rest."""


def crowd(candidate: Candidate, alone: Observation) -> int:
    """Return how many connections show what it can do: enough to keep a CPU busy while most of them wait.

    A request costs less the busier a server is, so that what it took alone is too much.
    """
    held = 2 * candidate.slots if candidate.slots is not None else MOST_CROWD
    in_work = (alone.mean_ms or 0.0) * 1000 / alone.cpu_us if alone.cpu_us else 0.0
    return max(LEAST_CROWD, min(round(CROWDED * in_work), held, MOST_CROWD))


def look_of(candidate: Candidate, alone: Observation, loaded: Observation, cpus: int) -> Looked | None:
    """Return what two loads of one candidate say of its stack; None where they say nothing."""
    if not alone.mean_ms or not loaded.cpu_us or loaded.throughput_rps <= 0:
        return None
    in_work = loaded.throughput_rps * alone.mean_ms / 1000
    used = loaded.throughput_rps * loaded.cpu_us / 1e6
    could = min(candidate.processes, cpus)
    slots = min(loaded.ask.connections, candidate.slots or math.inf)
    stopped = used < BUSY * could and in_work < UNUSED * slots
    return Looked(
        alone_ms=alone.mean_ms,
        cpu_us=loaded.cpu_us,
        rps=loaded.throughput_rps,
        memory_bytes=loaded.memory_bytes or alone.memory_bytes,
        processes=candidate.processes,
        at_once=max(in_work / candidate.processes, 1.0) if stopped else None,
        slots=candidate.slots_each,
    )


def enough(candidates: Sequence[Candidate], look: Looked) -> Candidate | None:
    """Return the candidate of fewest slots that hold what the looked-at candidate had in work; None: that candidate
    itself."""
    needs = look.rps * look.alone_ms / 1000
    if look.slots is None:
        return None
    able = [
        candidate
        for candidate in candidates
        if candidate.slots is not None
        and candidate.processes == look.processes
        and needs < candidate.slots < look.slots * candidate.processes
    ]
    return min(able, key=lambda candidate: (candidate.slots or 0, candidate.label), default=None)


def with_fewer_slots(look: Looked, candidate: Candidate, loaded: Observation) -> Looked:
    """Return a look with the results of a load of fewer slots."""
    if candidate.slots_each is None or not loaded.cpu_us or loaded.spoilt or loaded.failed:
        return look
    return replace(look, few=FewSlots(candidate.slots_each, loaded.cpu_us))


def forecast(candidate: Candidate, look: Looked, cpus: int) -> Forecast:
    """Return the lowest bound that applies to a candidate."""
    cpu_us = look.costs_us(candidate.slots_each)
    stay_s = max(look.alone_ms, cpu_us / 1000) / 1000
    could = min(candidate.processes, cpus)
    bounds = [
        (could / (cpu_us / 1e6), f"{could} CPU{'' if could == 1 else 's'} ÷ {quantity.number(cpu_us)} µs")
    ]
    if candidate.slots is not None:
        held = quantity.milliseconds(stay_s * 1000)
        bounds.append((candidate.slots / stay_s, f"{quantity.thousands(candidate.slots)} slots ÷ {held} ms"))
    if look.at_once is not None:
        amount = quantity.number(look.at_once)
        bounds.append(
            (
                candidate.processes * look.at_once / stay_s,
                f"{candidate.processes} × {amount} at once ÷ {quantity.milliseconds(stay_s * 1000)} ms",
            )
        )
    rps, arithmetic = min(bounds)
    return Forecast(
        rps, f"{arithmetic} = {quantity.rate(rps)}", rps * stay_s, _memory(look, candidate.processes)
    )


def _memory(look: Looked, processes: int) -> float | None:
    """Return the least memory that so many processes take, by the candidate that was looked at."""
    if look.memory_bytes is None:
        return None
    per_process = look.memory_bytes / look.processes
    return (
        per_process * (1 + SHARED * (processes - 1))
        if processes >= look.processes
        else per_process * processes
    )


# What would change a recommendation: a slower third party, or a higher rate; from the model of the race.
#
# Each candidate is taken to reach the same part of what arithmetic allows it as it did when it was measured; a
# candidate that was not, the part that others of its stack reached. Then the wait of a request is made longer, and the
# rate higher.

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
        able = {entry.candidate.label: _able(tuned, entry, cpus, factor) for entry in _others(tuned, best)}
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
            # A first look in a slow moment forecasts less than was measured since: then arithmetic bounds nothing.
            higher = best.forecast.rps > most
            allows = f"; arithmetic allows this one {best.forecast.arithmetic}" if higher else ""
            yield Reason("rate", most, "", f"above {quantity.rate(most)} none of these carries it{allows}")
        return
    if best.forecast is None:
        return
    most = best.forecast.rps
    more = [entry for entry in _others(tuned, best) if entry.forecast and entry.forecast.rps > CLEARLY * most]
    other = min(more, key=lambda entry: entry.value.mid if entry.value else float("inf"), default=None)
    instead = other.candidate.label if other else ""
    then = f"; then {instead}" if instead else "; then it takes more CPUs"
    yield Reason(
        "rate",
        most,
        instead,
        f"by arithmetic this carries at most {best.forecast.arithmetic}, which is {quantity.number(most / rate)} times "
        f"the requested rate{then}",
    )


def _others(tuned: Tuned, best: Entry) -> Sequence[Entry]:
    return [
        entry
        for entry in tuned.entries
        if entry is not best and entry.forecast is not None and entry.fate not in OUT
    ]


def _able(tuned: Tuned, entry: Entry, cpus: int, factor: float) -> float:
    """Return what a candidate would do if requests waited so many times as long."""
    look = tuned.looks[entry.candidate.contestant.stack]
    longer = replace(look, alone_ms=look.alone_ms + (factor - 1) * look.wait_ms)
    return _part(tuned, entry) * _share_allowed(entry.candidate, longer, cpus)


def _share_allowed(candidate: Candidate, look: Looked, cpus: int) -> float:
    return forecast(candidate, look, cpus).rps


def _part(tuned: Tuned, entry: Entry) -> float:
    """Return which part of what arithmetic allows a candidate reaches."""
    if entry.value is not None and entry.forecast is not None:
        return entry.value.mid / entry.forecast.rps
    stack = entry.candidate.contestant.stack
    known = [
        other.value.mid / other.forecast.rps
        for other in tuned.entries
        if other.value is not None
        and other.forecast is not None
        and other.candidate.contestant.stack == stack
    ]
    return statistics.median(known) if known else 0.8


def _ms(value: float) -> str:
    return f"{quantity.milliseconds(value)} ms"


# Whether a server's memory rises with every request, and by how much.
#
# A server that was just started grows for a while: threads are made, caches and arenas fill. So the second half of a
# load is looked at, and memory leaks where the slope of a straight line through it is clear of its own error (as in
# `judge/search/holding.py`) and worth a report: what would not double in a day is no leak. A cache that fills
# looks the same for a while, but slows down: only what is seen for long, and as steep in the end, counts as going on.

SURE = 5.0
"""Standard errors below the slope: of seven values, so few as eight seconds have, one in a thousand is that far off."""
DAY_S = 86_400.0
LONG_S, AS_STEEP = 25.0, 0.8
"""Memory that goes on rising does so for so many seconds, and its second half is so steep at least as the first."""
LEAST_BYTES = 64.0
"""A request. Less is the noise of an allocator's pages."""


@dataclass(frozen=True)
class Leak:
    """Memory that rises."""

    bytes_per_request: float
    at_rps: float
    seen_s: float = 0.0
    """For so long it was seen to."""
    goes_on: bool = False
    """Whether that is `LONG_S` at least, and it rose no slower in the end."""

    def seconds_to(self, limit_bytes: int, now_bytes: int, rate: float) -> float:
        """Return how long it takes at a rate until the limit is reached; 0: it is."""
        return max(limit_bytes - now_bytes, 0) / (self.bytes_per_request * rate)


def leak(measured: Measurement) -> Leak | None:
    """Return by how much memory rises; None: it does not, or too little was seen."""
    samples = measured.server.samples
    late = samples[len(samples) // 2 :]
    found = slope([(sample.at_s, float(sample.rss_bytes)) for sample in late])
    rate = measured.load.throughput_rps
    if found is None or rate <= 0:
        return None
    surely = found.per_s - SURE * found.error
    per_request = found.per_s / rate
    doubles_s = late[-1].rss_bytes / found.per_s if found.per_s > 0 else DAY_S
    if surely <= 0 or per_request < LEAST_BYTES or doubles_s > DAY_S:
        return None
    seen_s = late[-1].at_s - late[0].at_s
    halves = [
        slope([(sample.at_s, float(sample.rss_bytes)) for sample in half])
        for half in (late[: len(late) // 2], late[len(late) // 2 :])
    ]
    first, second = (half.per_s if half is not None else 0.0 for half in halves)
    return Leak(per_request, rate, seen_s, goes_on=seen_s >= LONG_S and second >= AS_STEEP * first > 0)
