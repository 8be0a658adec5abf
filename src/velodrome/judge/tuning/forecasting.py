"""What arithmetic allows a candidate, by what a short look at its stack showed of the app itself.

Little's law bounds a server with slots: slots ÷ the time a request holds one. CPU bounds every server: the CPUs its
processes can use at once ÷ what a request costs. Both are upper bounds; queues, locks and neighbours only take from
them (J. D. C. Little, Operations Research 9, 1961; P. J. Denning and J. P. Buzen, «The Operational Analysis of Queueing
Network Models», Computing Surveys 10, 1978, the asymptotic bounds).
"""

import math
from collections.abc import Sequence
from dataclasses import replace

from velodrome.model import quantity
from velodrome.model.tuning import Candidate, FewSlots, Forecast, Looked, Told

BUSY = 0.7
"""A process that used so much of its CPU was stopped by that."""
UNUSED = 0.7
"""A closed loop of which so many were not in work at once was stopped by something."""
LEAST_CROWD, MOST_CROWD, CROWDED = 32, 512, 4.0
"""Connections of the look, and how many times those that would be in work by what a request took alone."""
SHARED = 0.35
"""Of a process's memory that another worker of the same server adds, at least; forked ones share the rest."""


def crowd(candidate: Candidate, alone: Told) -> int:
    """Return how many connections show what it can do: enough to keep a CPU busy while most of them wait.

    A request costs less the busier a server is, so that what it took alone is too much.
    """
    held = 2 * candidate.slots if candidate.slots is not None else MOST_CROWD
    in_work = (alone.mean_ms or 0.0) * 1000 / alone.cpu_us if alone.cpu_us else 0.0
    return max(LEAST_CROWD, min(round(CROWDED * in_work), held, MOST_CROWD))


def looked(candidate: Candidate, alone: Told, loaded: Told, cpus: int) -> Looked | None:
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
    """Return the candidate of fewest slots that hold what the looked at one had in work; None: that one itself."""
    needs = look.rps * look.alone_ms / 1000
    if look.slots is None:
        return None
    able = [
        one
        for one in candidates
        if one.slots is not None
        and one.processes == look.processes
        and needs < one.slots < look.slots * one.processes
    ]
    return min(able, key=lambda one: (one.slots or 0, one.label), default=None)


def seen_with_few(look: Looked, candidate: Candidate, loaded: Told) -> Looked:
    """Return a look with what a load of fewer slots said."""
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
        bounds.append((candidate.slots / stay_s, f"{quantity.grouped(candidate.slots)} slots ÷ {held} ms"))
    if look.at_once is not None:
        each = quantity.number(look.at_once)
        bounds.append(
            (
                candidate.processes * look.at_once / stay_s,
                f"{candidate.processes} × {each} at once ÷ {quantity.milliseconds(stay_s * 1000)} ms",
            )
        )
    rps, arithmetic = min(bounds)
    return Forecast(
        rps, f"{arithmetic} = {quantity.rate(rps)}", rps * stay_s, _memory(look, candidate.processes)
    )


def _memory(look: Looked, processes: int) -> float | None:
    """Return the least memory that so many processes take, by the one that was looked at."""
    if look.memory_bytes is None:
        return None
    each = look.memory_bytes / look.processes
    return each * (1 + SHARED * (processes - 1)) if processes >= look.processes else each * processes
