"""Whether the figures of a measurement agree with each other, and with themselves over time."""

import math
from collections.abc import Sequence
from statistics import median

from velodrome.model.load import Open, Schedule
from velodrome.model.measurement import Flag, FlagKind, Severity
from velodrome.run.validity.evidence import Check, Evidence, count, milliseconds, percent

LITTLE = 0.1
"""Relative: three times the spread of throughput between repeats on a small virtual machine (3.5 %)."""
LITTLE_LEAST = 0.5
"""Requests in flight: below one, a mean of samples is too coarse to judge by."""
TREND = 0.2
"""Relative change from first to last second: more than five times that spread."""
TREND_LATENCY = 0.5
"""The same for p50 in an open loop, which moves more than throughput does."""
SIGNIFICANT = 1.96
"""Standard deviations of Kendall's S under no trend: 5 % two-sided."""
SECONDS = 5
"""Fewer whole seconds cannot show a trend: even in perfect order they pass no test at 5 %."""
DIP = 0.5
"""Part of the median second: half the work missing is a stall, not noise."""
BEHIND = 0.1
"""Share of the requests due that were still owed at the end of the span."""


def littles_law(evidence: Evidence) -> Flag | None:
    """Mean concurrency must be throughput x mean latency (Little 1961, doi:10.1287/opre.9.3.383).

    Closed loop: the requested connections. Open loop: requests in flight as sampled, where the server kept up
    (the law is about a steady state, which a rate that changes has not). Requests that straddle the ends of the
    span are worth latency / duration, which is allowed for; in a closed loop the longest latency, because each
    connection has a request in flight, and a server that prefers some connections lets the others wait longest. Those
    that wait all through the span have no latency at all: where the engine saw that connections were not served evenly,
    fewer by the law than there are is the server's doing (`unfair`), as it is where the others lay in its listen queue:
    a busy event loop may take in one connection a turn. Where connections are opened for single requests
    the time from due counts: opening is in it.
    """
    facts = evidence.facts
    from_due = evidence.reopens and evidence.closed and facts.due.mean is not None
    latency = facts.due if from_due else facts.sent
    mean_ms = latency.mean
    if (
        facts.latency_corrected
        or isinstance(evidence.load.pace, Schedule)
        or mean_ms is None
        or facts.throughput_rps <= 0
        or evidence.failures > 0.01 * facts.requests
    ):
        return None
    if fell_behind(evidence) is not None:
        return None
    latency_s = mean_ms / 1e3
    by_law = facts.throughput_rps * latency_s
    wanted = facts.at_once or (evidence.closed.connections * evidence.load.streams if evidence.closed else 0)
    actual = float(wanted) if evidence.closed else facts.mean_in_flight
    if actual is None:
        return None
    longest_s = max(latency_s, (latency.max or 0.0) / 1e3) if evidence.closed else latency_s
    allowed = actual * (LITTLE + longest_s / max(facts.duration_s, 1e-9)) + LITTLE_LEAST
    if abs(by_law - actual) <= allowed or (by_law < actual and "unfair" in facts.engine_flags):
        return None
    lay = actual - by_law
    if evidence.closed and 0 < lay <= (evidence.sampled.queue.peak or 0) + allowed:
        return Flag(
            FlagKind.UNFAIR,
            Severity.NOTE,
            f"About {count(lay)} of {count(actual)} connections lay in the server's listen queue while the others got "
            "the answers: it takes in new connections slowly while it is busy.",
            "Read latency from an open loop. Where clients connect anew often, give it fewer requests at once, or put "
            "a proxy in front that keeps connections.",
            {"outside": lay, "connections": actual},
        )
    whose = "connections were requested" if evidence.closed else "requests were in flight on average"
    whose = "messages to all were kept on their way" if evidence.closed and facts.at_once else whose
    return Flag(
        FlagKind.LITTLES_LAW,
        Severity.INVALID,
        f"{count(facts.throughput_rps)}/s × {milliseconds(mean_ms)} makes {count(by_law)} requests in "
        "flight, "
        f"but {count(actual)} {whose}: at least one of these figures is wrong.",
        "Look for connections that are never made, for a saturated generator, or a run too short for its "
        "latency.",
        {"by_law": by_law, "actual": actual, "throughput_rps": facts.throughput_rps, "mean_ms": mean_ms},
    )


def fell_behind(evidence: Evidence) -> Flag | None:
    """An open loop the server could not carry: its queue grew to the end, so latency measures the run's
    length.
    """
    pace, facts = evidence.load.pace, evidence.facts
    if not isinstance(pace, Open) or evidence.failures > 0.01 * facts.requests:
        return None
    first_ms = facts.series[0].p50_ms if facts.series else None
    natural = min((first_ms or evidence.wait_ms) / 1e3 / max(facts.duration_s, 1e-9), 0.25)
    owed = 1 - facts.throughput_rps / pace.rate
    # Of few arrivals the number itself scatters.
    if owed <= BEHIND + natural + pace.scatter(facts.duration_s):
        return None
    return Flag(
        FlagKind.NOT_STATIONARY,
        Severity.INVALID,
        f"The server carried {count(facts.throughput_rps)}/s of the {count(pace.rate)}/s offered: its queue "
        "grew to the "
        "end, so this latency depends on how long the run was.",
        f"Compare latency at a rate all can carry, below {count(facts.throughput_rps * 0.8)}/s for this contestant.",
        {"throughput_rps": facts.throughput_rps, "rate": pace.rate},
    )


def trend(evidence: Evidence) -> Flag | None:
    """Throughput (closed loop) or p50 (open loop) that rises or falls all through the span.

    Mann-Kendall test (Mann 1945, doi:10.2307/1907187) for its presence, Theil-Sen slope (Sen 1968,
    doi:10.1080/01621459.1968.10480934) for its size: neither minds an odd second.
    """
    facts = evidence.facts
    if isinstance(evidence.load.pace, Schedule):
        return None  # the rate changes, so what comes of it does
    whole = [second for second in facts.series if second.at_s + 1 <= facts.duration_s + 0.01]
    if evidence.closed:
        name, least, values = "throughput", TREND, [float(second.ok) for second in whole]
    else:
        name, least = "p50", TREND_LATENCY
        values = [second.p50_ms for second in whole if second.p50_ms is not None]
    change = relative_change(values)
    if change is None or abs(change) < least or (name == "p50" and abs(change) * median(values) < 1.0):
        return None
    return Flag(
        FlagKind.NOT_STATIONARY,
        Severity.INVALID,
        f"Over {len(values)} seconds {name} {'rose' if change > 0 else 'fell'} by {percent(abs(change))}, "
        "steadily: the server had not settled.",
        "Warm up longer (--warmup), run longer, and look at CPU and memory over time for what changes.",
        {"change": change, "seconds": len(values)},
    )


def relative_change(values: Sequence[float]) -> float | None:
    """Return the change from first to last value over the median, if a trend is significant; else None."""
    number = len(values)
    if number < SECONDS:
        return None
    pairs = [(i, j) for i in range(number) for j in range(i + 1, number)]
    score = sum((values[j] > values[i]) - (values[j] < values[i]) for i, j in pairs)
    deviation = math.sqrt(number * (number - 1) * (2 * number + 5) / 18)
    middle = median(values)
    if (abs(score) - 1) / deviation < SIGNIFICANT or middle <= 0:
        return None
    slope = median((values[j] - values[i]) / (j - i) for i, j in pairs)
    return slope * (number - 1) / middle


def dip(evidence: Evidence) -> Flag | None:
    """A second in which less than half of the usual was served: a stall of server or machine."""
    whole = [
        second for second in evidence.facts.series if second.at_s + 1 <= evidence.facts.duration_s + 0.01
    ]
    if len(whole) < SECONDS or isinstance(evidence.load.pace, Schedule):
        return None
    usual = median(second.ok for second in whole)
    worst = min(whole, key=lambda second: second.ok)
    # Ten requests a second come to fewer than five by chance alone once in a while; a hundred never do.
    if usual < 50 or worst.ok >= DIP * usual:
        return None
    return Flag(
        FlagKind.NOT_STATIONARY,
        Severity.NOTE,
        f"In the second from {worst.at_s:.0f} s on {worst.ok:,} requests were served, usually "
        f"{count(usual)}: "
        "something stalled.",
        "See whether it comes back in other blocks: a server's pause does, a neighbour's does not.",
        {"at_s": worst.at_s, "ok": worst.ok, "usual": usual},
    )


OF_CONSISTENCY: tuple[Check, ...] = (littles_law, fell_behind, trend, dip)
