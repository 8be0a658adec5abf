"""What a server does at parts of its capacity, and beyond it: latency over load, and overload.

    metric = shown_metric(conditions)                 # the SLO's percentile, else the p99 from due
    point = latency_at(0.8, 119.0, metric, measured)  # LoadLatency(share=0.8, ms=88.0, …)
    pace = schedule(412.0, 1.5, 3.0, "poisson")       # half of it, one and a half of it for a while, half of it again
    after_overload(1.5, 412.0, measured)              # Overload(goodput_rps=405.0, back_s=4.0, …)

Latency is the same percentile at every part, of the histograms of all boots together: percentiles are never averaged.

Of an overload, a queue that grows and requests that fail are results: no flag for them spoils the load. What the lab
did (a generator without CPU, stolen CPU) does.

**Goodput** is the right answers that arrived while the overload lasted, per second of it. **Normal** is a second whose
p99, of what was answered in it, is at most twice that of the slowest second before the overload, at the same rate, or
1 ms above it where that is more, and in which no larger share of the requests failed than in the worst second before.
**Back to normal** is the first of three such seconds in a row, counted from the end of the overload; nothing is known
of parts of a second. A server that serves everybody in turn and forgets nobody works off its queue in
(times − 1) ÷ (1 − share before and after) of the length of the overload: at 150 % and then 50 %, in once its length.
"""

from collections.abc import Iterable, Iterator, Sequence

from velodrome.judge.histograms import decode, merge
from velodrome.judge.load_figures import requests_needed
from velodrome.judge.search.holding import of_the_lab, of_the_moment
from velodrome.model.condition import Condition, LoadMetric, comparisons, load_metric
from velodrome.model.load import Arrivals, Schedule, Step
from velodrome.model.measurement import Failed, FlagKind, LoadSecond, Measurement, Severity
from velodrome.model.results import Result
from velodrome.model.search import LoadLatency, Overload

# --- Overload.

TIMES = (1.2, 1.5)
"""Of the estimate of the capacity."""
USUAL = 0.5
"""Of the capacity, before and after: a service that has room."""
BEFORE, DURING, AFTER = 1, 2, 5
"""Lengths, in those of the first loads of the search."""
LEAST_S = 2.0
"""Of that length: fewer seconds before it would not show what is normal."""
SLOWER, LEAST_MS = 2.0, 1.0
"""A normal second has at most so many times the p99 of the slowest second before, or so many milliseconds more."""
IN_A_ROW = 3
"""Normal seconds, until it is believed."""
SPOIL = {kind for kind in FlagKind if kind.of_the_lab or kind.of_the_moment} - {
    FlagKind.CAPPED_BY_CONNECTIONS
}
"""Flags for which such a load says nothing of the server. That all connections are in use is no reason: who waits for
a connection waits, and that counts from when the request was due."""


def schedule(capacity: float, times: float, look_s: float, arrivals: Arrivals) -> Schedule:
    """Return the load: usual, too much, usual again. `look_s` is the length of the search's first loads, seconds."""
    unit = max(round(look_s), LEAST_S)
    usual = USUAL * capacity
    return Schedule(
        (
            Step(usual, BEFORE * unit),
            Step(times * capacity, DURING * unit),
            Step(usual, AFTER * unit),
        ),
        arrivals,
    )


def after_overload(times: float, pace: Schedule, found: Result) -> Overload:
    """Return what one load by a `schedule` came to."""
    before, during, after = pace.steps

    def came_to(
        goodput: float | None = None,
        failed: float | None = None,
        normal: float | None = None,
        back: float | None = None,
        why: str = "",
    ) -> Overload:
        return Overload(
            times,
            during.rate,
            during.duration_s,
            goodput,
            failed,
            before.rate,
            normal,
            back,
            after.duration_s,
            why,
        )

    if isinstance(found, Failed):
        return came_to(why=found.reason)
    flag = next(
        (flag for flag in found.flags if flag.severity is Severity.INVALID and flag.kind in SPOIL), None
    )
    if flag is not None:
        return came_to(why=flag.sentence)
    if len(found.load.steps) < len(pace.steps):
        return came_to(why="the load ended before the overload was over")
    step = found.load.steps[1]
    failed = 1 - step.ok / step.requests if step.requests else None
    died = next((death for death in found.flags if death.kind is FlagKind.SERVER_DIED), None)
    if died is not None:
        return came_to(step.throughput_rps, failed, why=died.sentence)
    ends_s = before.duration_s + during.duration_s
    normal = normal_ms(found.load.series, before.duration_s)
    back = back_to_normal(found.load.series, before.duration_s, ends_s, after.duration_s)
    return came_to(step.throughput_rps, failed, normal, back)


def normal_ms(series: Sequence[LoadSecond], before_s: float) -> float | None:
    """Return the p99 up to which a second is normal, milliseconds; None: nothing was answered before the overload."""
    known = [second.p99_ms for second in series if second.at_s + 1 <= before_s and second.p99_ms is not None]
    return max(SLOWER * max(known), max(known) + LEAST_MS) if known else None


def back_to_normal(
    series: Sequence[LoadSecond], before_s: float, ends_s: float, watched_s: float
) -> float | None:
    """Return the seconds from the end of an overload, at `ends_s` of the load, until p99 is normal again.

    None: it was not within `watched_s`, or nothing is known of what is normal. A second in which nothing came to an end
    is normal only if nothing was in flight.
    """
    limit = normal_ms(series, before_s)
    if limit is None:
        return None
    failing = max(_failed(second) for second in series if second.at_s + 1 <= before_s)
    after = [second for second in series if ends_s <= second.at_s and second.at_s + 1 <= ends_s + watched_s]
    normal = [
        (second.p99_ms <= limit if second.p99_ms is not None else not second.in_flight)
        and _failed(second) <= failing
        for second in after
    ]
    for first in range(len(after) - IN_A_ROW + 1):
        if all(normal[first : first + IN_A_ROW]):
            return after[first].at_s - ends_s
    return None


def _failed(second: LoadSecond) -> float:
    return second.errors / second.requests if second.requests else 0.0


# --- Latency over load.

SHARES = (0.2, 0.5, 0.8, 0.95)
"""Of the estimate of the capacity."""
BOOTS = 3
"""Starts of the server that each of them is loaded on, one after the other."""
LONGEST_S = 20.0
"""Of one load, however many requests the percentile needs at a low rate."""
SPARE = 1.3
"""So many times the requests that the percentile needs are sent, on all boots together."""


def shown_metric(conditions: Iterable[Condition]) -> LoadMetric:
    """Return the first percentile of a response or service time that conditions name, else the p99 from due."""
    named = (comparison.metric for condition in conditions for comparison in comparisons(condition))
    found = (metric for metric in named if metric.percentile is not None and metric.span in {"due", "sent"})
    return next(found, load_metric("p99"))


def seconds_at(rate: float, metric: LoadMetric, least: float) -> float:
    """Return how long one load at a rate is, seconds: all boots together have enough requests, if that is bearable."""
    needed = SPARE * requests_needed(metric) / BOOTS / rate
    return max(least, min(needed, LONGEST_S))


def in_turn(boot: int) -> tuple[float, ...]:
    """Return the shares in the order in which a boot, counted from 0, is loaded with them.

    Each boot begins with another, so that what one load leaves behind (a heap that has grown, caches that are warm)
    does not always help or harm the same rate.
    """
    first = boot % len(SHARES)
    return SHARES[first:] + SHARES[:first]


def latency_at(share: float, rate: float, metric: LoadMetric, found: Sequence[Result]) -> LoadLatency:
    """Return what loads at a rate come to; those that the lab or the machine spoilt do not count."""
    counted = [result for result in found if isinstance(result, Measurement) and not _spoilt(result)]
    percentile = metric.percentile or 99.0
    texts = [result.load.hdr_sent if metric.span == "sent" else result.load.hdr_due for result in counted]
    merged = merge(decode(text) for text in texts if text)
    ms = merged.supported_ms(percentile)
    interval = merged.interval_ms(percentile)
    low, high = interval if interval is not None and interval[1] is not None else (None, None)
    why = "" if counted else next(_reasons(found), "nothing was measured")
    return LoadLatency(share, rate, percentile, ms, low, high, merged.total, len(_boots(counted)), why)


def _boots(found: Iterable[Measurement]) -> set[int]:
    return {measurement.step.boot for measurement in found if measurement.step is not None}


def _spoilt(measurement: Measurement) -> str:
    flag = of_the_lab(measurement) or of_the_moment(measurement)
    return flag.sentence if flag else ""


def _reasons(found: Iterable[Result]) -> Iterator[str]:
    for result in found:
        yield result.reason if isinstance(result, Failed) else _spoilt(result)
