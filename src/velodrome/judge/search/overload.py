"""Overload as a purpose of its own: what a server does with more than its capacity, and how long that is felt.

    pace = schedule(412.0, 1.5, 3.0, "poisson")       # half of it, one and a half of it for a while, half of it again
    after_overload(1.5, 412.0, measured)              # Overload(goodput_rps=405.0, back_s=4.0, …)

A queue that grows and requests that fail are results here: no flag for them spoils the load. What the lab did (a
generator without CPU, stolen CPU) does.

**Goodput** is the right answers that arrived while the overload lasted, per second of it. **Normal** is a second whose
p99, of what was answered in it, is at most twice that of the slowest second before the overload, at the same rate, or
1 ms above it where that is more, and in which no larger share of the requests failed than in the worst second before.
**Back to normal** is the first of three such seconds in a row, counted from the end of the overload; nothing is known
of parts of a second. A server that serves everybody in turn and forgets nobody works off its queue in
(times − 1) ÷ (1 − share before and after) of the length of the overload: at 150 % and then 50 %, in once its length.
"""

from collections.abc import Sequence

from velodrome.judge.search.holding import OF_THE_LAB
from velodrome.model.load import Arrivals, Schedule, Step
from velodrome.model.measurement import Failed, FlagKind, LoadSecond, Severity
from velodrome.model.results import Result
from velodrome.model.search import Overload

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
SPOIL = (OF_THE_LAB - {FlagKind.CAPPED_BY_CONNECTIONS}) | {kind for kind in FlagKind if kind.of_the_moment}
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
