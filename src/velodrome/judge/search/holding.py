"""Whether a rate held: what one trial of an open loop says, by its conditions and by whether the server kept up.

    probe(Tried(rate=500, outcomes={"ok": 1500}, ended_rps=499, figures=look_up), Demands(must=(slo,)))

In reading order: trials that say nothing of the server; a backlog that rises while a rate is tried; how many requests
may fail; the trial as a whole; what bounds a contestant at its highest rate.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

from velodrome.judge.load_figures import GIVEN_UP, requests_needed
from velodrome.judge.statistics import wilson
from velodrome.model import quantity
from velodrome.model.bottleneck import USED_UP
from velodrome.model.condition import (
    Comparison,
    Condition,
    Every,
    Figures,
    LoadMetric,
    Relation,
    Some,
    because,
    comparisons,
    decide,
)
from velodrome.model.load import RATE_HELD, kept_up
from velodrome.model.measurement import OUTCOMES, Flag, FlagKind, Measurement, Severity
from velodrome.model.quantity import Unit
from velodrome.model.search import Bottom, Bound, Probe, Strain


def of_the_moment(measured: Measurement) -> Flag | None:
    """Return the flag for which a trial should be made again."""
    return _first(measured, lambda kind: kind.of_the_moment)


def of_the_lab(measured: Measurement) -> Flag | None:
    """Return the flag by which a trial shows the lab and not the server."""
    return _first(measured, lambda kind: kind.of_the_lab)


def _first(measured: Measurement, meant: Callable[[FlagKind], bool]) -> Flag | None:
    return next(
        (flag for flag in measured.flags if flag.severity is Severity.INVALID and meant(flag.kind)), None
    )


# --- Ending a trial early: the backlog rises, and not by chance.
#
# Backlog is what fell due and is not answered. The backlog of a server that keeps up goes up and down; if more is due
# than the server can do, the backlog rises by the difference, every second, long before anything times out. So the
# slope of the last half of what was seen is fitted by least squares, and a rate is too high where even the lower end of
# the slope's interval is a good part of the rate (the idea of GuideLLM's over-saturation detector, which watches
# concurrency and the time to the first token). Neighbouring values of a queue are like each other, which makes a fit
# look surer than it is: the interval is widened by the effective number of values, n (1 − r) ÷ (1 + r), with r the
# correlation of neighbouring residuals (Bayley and Hammersley, «The "effective" number of independent observations in
# an autocorrelated time series», JRSS Supplement 8, 1946).

LOST = 0.05
"""Too high: the server falls behind by at least this part of the rate."""
LEAST_SECONDS = 1.0
"""Seen before anything is decided."""
LEAST_VALUES = 6
SURE = 3.0
"""Standard errors below the slope: a rate is looked at again and again, so that one in a thousand must do."""
STANDING = 0.25
"""And the backlog must be worth at least so many seconds of the rate: a small queue may fill quickly and stay."""


LEVEL = 0.01
"""Of the rate: a backlog whose slope is shown to be less is level; a backlog whose slope is shown to be more rises."""
LEVEL_S = 8.0
"""Loads from this length on must show that their backlog is level; shorter loads only that it does not clearly rise."""
ONE_SIDED = 1.645
"""Standard errors, 95 %."""


@dataclass(frozen=True)
class Slope:
    """Requests a second by which a backlog rises, and its standard error."""

    per_s: float
    error: float

    def rises(self, rate: float) -> bool:
        """Whether it is shown to rise at a rate."""
        return self.per_s - ONE_SIDED * self.error > LEVEL * rate

    def is_level(self, rate: float) -> bool:
        """Whether it is shown not to rise: its slope is equivalent to none.

        One side of two one-sided tests (D. J. Schuirmann, Journal of Pharmacokinetics and Biopharmaceutics 15, 1987): a
        backlog that falls, after too much warm-up, is none.
        """
        return self.per_s + ONE_SIDED * self.error < LEVEL * rate


def slope(values: Sequence[tuple[float, float]]) -> Slope | None:
    """Return how (seconds, backlog) rises; None for too few values."""
    count = len(values)
    if count < LEAST_VALUES:
        return None
    mean_t = sum(at for at, _ in values) / count
    mean_b = sum(backlog for _, backlog in values) / count
    spread = sum((at - mean_t) ** 2 for at, _ in values)
    if spread <= 0:
        return None
    per_s = sum((at - mean_t) * (backlog - mean_b) for at, backlog in values) / spread
    rest = [backlog - mean_b - per_s * (at - mean_t) for at, backlog in values]
    squares = sum(residual * residual for residual in rest)
    alike = sum(a * b for a, b in pairwise(rest)) / squares if squares else 0.0
    alike = min(max(alike, 0.0), 0.9)
    effective = max(count * (1 - alike) / (1 + alike), 3.0)
    error = math.sqrt(squares / (effective - 2) / spread) * math.sqrt(count / effective)
    return Slope(per_s, error)


def rises(values: Sequence[tuple[float, float]], rate: float) -> Slope | None:
    """Return the slope of a backlog that shows `rate` to be too high, else None. `values`: (seconds, backlog)."""
    if not values or values[-1][0] - values[0][0] < LEAST_SECONDS:
        return None
    middle = (values[0][0] + values[-1][0]) / 2
    found = slope([value for value in values if value[0] >= middle])
    if found is None or values[-1][1] < STANDING * rate:
        return None
    return found if found.per_s - SURE * found.error > LOST * rate else None


# --- Failed requests where no condition limits them.
#
# What is answered wrongly when requests come one after the other does not depend on the rate: items of a log that are
# gone, or one answer in twenty that is an error of the app's own. Then no rate holds, and a search would be in vain.

FAILING = 0.01
"""Without a condition on errors a rate does not hold if more requests fail."""
SEVERAL = 3
"""So many wrong answers at least, before they count as no accident."""
ALONE_S = 0.7
"""How long one connection sends requests, to show what a request takes when nobody is before it."""
ENOUGH, ENOUGH_S = 150, 8.0
"""Requests one after the other that show how much is answered wrongly at any rate, and how long they may take."""
_ROUND = (0.02, 0.05, 0.1, 0.2, 0.5, 0.9)
"""Limits that are offered: the first with room above what is wrong."""
_ROOM = 1.5


@dataclass(frozen=True)
class OneByOne:
    """Outcomes of requests that were sent one after the other, so that none waited for another."""

    outcomes: Mapping[str, int] = field(default_factory=dict)

    def and_of(self, outcomes: Mapping[str, int]) -> "OneByOne":
        """Return both together."""
        every = (*self.outcomes, *outcomes)
        return OneByOne({kind: self.outcomes.get(kind, 0) + outcomes.get(kind, 0) for kind in every})

    @property
    def answered(self) -> Mapping[str, int]:
        """Those that came to an end by themselves: how many ended how."""
        return {kind: count for kind, count in self.outcomes.items() if kind not in GIVEN_UP}


NOBODY_ASKED = OneByOne()


def share_failed(outcomes: Mapping[str, int], conditions: Iterable[Condition]) -> float:
    """Return which share of requests failed in a way that no condition names.

    A condition on `errors` names every way, a condition on `bad_status` only that.
    """
    named = {comparison.metric.statistic for condition in conditions for comparison in comparisons(condition)}
    if "errors" in named:
        return 0.0
    judged = named.intersection(OUTCOMES) | {"ok"}
    failed = sum(count for kind, count in outcomes.items() if kind not in judged)
    return failed / max(sum(outcomes.values()), 1)


def enough_s(alone_ms: float, least_s: float) -> float:
    """Return for how many seconds to send requests one after the other to show what is wrong at any rate."""
    return min(max(ENOUGH * alone_ms / 1000, least_s), ENOUGH_S)


def in_doubt(alone: OneByOne, conditions: Iterable[Condition]) -> bool:
    """Whether more is answered wrongly than may be, and too few requests were sent to say that it is so at any rate."""
    return share_failed(alone.answered, conditions) > FAILING and not wrong_anyway(alone, conditions)


def wrong_anyway(alone: OneByOne, conditions: Iterable[Condition], say: str = "errors < {limit}") -> str:
    """Return which share of answers is wrong at any rate, and what to do; empty: too few, or it is unknown.

    `say` is how the caller's user writes a condition that allows so many.
    """
    requests = sum(alone.answered.values())
    share = share_failed(alone.answered, conditions)
    wrong = round(share * requests)
    if wrong < SEVERAL or wilson(wrong, requests)[0] <= FAILING:
        return ""
    limit = next((value for value in _ROUND if value >= _ROOM * share), 1.0)
    condition = say.format(limit=f"{limit * 100:g}%")
    return f"{quantity.percent(share)} of the answers are wrong at any rate: say {condition} or correct the requests"


# --- Whether a rate held.
#
#     holding.probe(Tried(rate=500, outcomes={"ok": 1500}, ended_rps=499, figures=look_up), Demands(must=(slo,)))
#
# A search asks it of every trial, wherever the trial was made: on a URL, or on a server booted for it. Whether the
# server kept up is shown by all that came to an end, right or wrong: how many may be wrong is for conditions on errors
# to say, and where there is none, for a demand that goes without saying.

WARMUP_S, DRAIN_S = 0.5, 0.5
"""Before and after what is measured of one trial."""
WARMUP_SHARE, WARMUP_MOST_S = 1 / 6, 2.0
"""Of its length, but no more seconds, an open loop is warmed up: a queue that begins empty has too few late requests
until it is as long as it stays, which near the edge takes seconds."""
LONGEST_S = 60.0
"""Of one trial, however many requests a percentile needs at a low rate."""
SPARE = 1.3
"""So many times the requests a percentile needs are sent."""
LEAST = 8
"""Requests expected in the least: independent users come with that many in all but 1 of 3,000 loads, e^-8."""
NEAR = 10
"""Loads near the edge have so many times the requests that a percentile needs, if that is bearable."""
NEAR_TIMES, NEAR_LONGEST_S = 4, 20.0
"""But at least so many times the length of the first looks, and no more seconds."""
PROOF_TIMES = 20
"""A proof is so many times as long as the first looks: a minute."""


def warmup_s(seconds: float) -> float:
    """Return how long an open loop of so many seconds is warmed up."""
    return max(WARMUP_S, min(WARMUP_SHARE * seconds, WARMUP_MOST_S))


@dataclass(frozen=True)
class Demands:
    """What is demanded of a load: `must` has to hold (an SLO), `must_not` may not (`--fail-if`)."""

    must: tuple[Condition, ...] = ()
    must_not: tuple[Condition, ...] = ()

    @property
    def every(self) -> tuple[Condition, ...]:
        """All conditions."""
        return (*self.must, *self.must_not)

    def seconds(self, rate: float, least: float) -> float:
        """Return how long a trial is: long enough for the percentiles that are named, if that is bearable."""
        return max(least, min(self.requests / rate, LONGEST_S))

    @property
    def requests(self) -> float:
        """How many requests the percentiles that are named need."""
        named = (comparison.metric for condition in self.every for comparison in comparisons(condition))
        needed = max((requests_needed(metric) for metric in named), default=1)
        return max(SPARE * needed, LEAST)

    def seconds_near(self, rate: float, least: float) -> float:
        """Return how long a load near the edge is, whose late requests are counted."""
        enough = min(NEAR / SPARE * self.seconds(rate, 0.0), NEAR_LONGEST_S)
        return max(NEAR_TIMES * least, enough, self.seconds(rate, least))


@dataclass(frozen=True)
class Tried:
    """What a trial of a rate gave."""

    rate: float
    outcomes: Mapping[str, int]
    """How many of its requests ended how."""
    ended_rps: float
    """Requests that came to an end within it, right or wrong, per second."""
    figures: Figures
    rising: Slope | None = None
    """How its backlog rose, where it was ended because of that."""
    alone: OneByOne = NOBODY_ASKED
    """The same server, which gets one request after the other."""
    seconds: float = 0.0
    """Measured; 0: not known."""
    backlog: Slope | None = None
    """How its backlog went over the whole of it; None: nothing was seen of it."""
    beyond: Callable[[LoadMetric, float], float | None] = lambda _metric, _limit: None
    """Counts requests later than a limit, milliseconds; None: there is no histogram."""
    boot: int = 0
    """Which start of the server it was."""
    scatter: float = 0.0
    """By which part of the rate its requests may miss it by chance."""


def probe(tried: Tried, demands: Demands) -> Probe:
    """Return whether a rate held; a trial that says nothing of the server is for the caller to sort out before."""
    broken, undecided = _by_conditions(tried, demands)
    overdone = _overdone(tried)
    found = Probe(
        tried.rate,
        True,
        overdone=bool(overdone),
        boot=tried.boot,
        seconds=tried.seconds,
        strains=strains(tried, demands),
    )
    broken = broken or overdone or _not_level(tried)
    if broken:
        return replace(found, held=False, why=broken)
    if (failed := share_failed(tried.outcomes, demands.every)) > FAILING:
        anyway = wrong_anyway(tried.alone, demands.every)
        why = anyway or f"{quantity.percent(failed)} of the requests failed"
        return replace(found, held=False, why=why, everywhere=bool(anyway))
    return replace(found, held=None, why=undecided) if undecided else found


def strains(tried: Tried, demands: Demands) -> tuple[Strain, ...]:
    """Return how much of what each condition allows was used up; nothing where a condition is no share of requests."""
    requests = float(sum(tried.outcomes.values()))
    found: list[Strain] = []
    for wanted, conditions in ((True, demands.must), (False, demands.must_not)):
        for condition in conditions:
            for part in _parts(condition, every=wanted):
                strain = _strain(part, tried, requests, wanted) if requests else None
                if strain is None:
                    return ()
                found.append(strain)
    if not found:
        return ()
    failed = share_failed(tried.outcomes, demands.every) * requests
    return (*found, Strain("failed requests", failed, FAILING * requests))


def _parts(condition: Condition, *, every: bool) -> Iterator[Condition]:
    """Yield what must hold all together (of what may not hold: none of which may)."""
    if isinstance(condition, Every if every else Some):
        for part in condition.parts:
            yield from _parts(part, every=every)
    else:
        yield condition


def _strain(condition: Condition, tried: Tried, requests: float, wanted: bool) -> Strain | None:
    below = {Relation.BELOW, Relation.AT_MOST} if wanted else {Relation.ABOVE, Relation.AT_LEAST}
    if not isinstance(condition, Comparison) or condition.relation not in below:
        return None
    metric = condition.metric
    if metric.percentile is not None:
        late = tried.beyond(metric, condition.limit)
        may_be = 1 - metric.percentile / 100
        return (
            None if late is None else Strain(condition.text, late, may_be * requests, condition.limit, may_be)
        )
    if metric.unit is Unit.SHARE and not condition.counted and metric.name != "cpu" and condition.limit > 0:
        share = tried.figures(metric, False).value
        return None if share is None else Strain(condition.text, share * requests, condition.limit * requests)
    return None


def _by_conditions(tried: Tried, demands: Demands) -> tuple[str, str]:
    """Return which condition broke, and which are undecided; empty: none."""
    broken = undecided = ""
    for wanted, conditions in ((True, demands.must), (False, demands.must_not)):
        for condition in conditions:
            found = decide(condition, tried.figures)
            if found.holds is None:
                undecided = undecided or because(found)
            elif found.holds is not wanted:
                broken = broken or because(found)
    return broken, undecided


def _overdone(tried: Tried) -> str:
    """Return how a rate shows to be too high, whatever the conditions."""
    if tried.rising is not None:
        return f"the backlog rose by {quantity.rate(tried.rising.per_s)}"
    if tried.backlog is not None and tried.backlog.rises(tried.rate):
        return f"the backlog rose by {quantity.rate(tried.backlog.per_s)}"
    if not kept_up(tried.ended_rps, tried.rate, RATE_HELD, tried.scatter):
        return f"only {quantity.rate(tried.ended_rps)} were answered"
    return ""


def _not_level(tried: Tried) -> str:
    """Return why a load that is long enough to show that its backlog is level does not."""
    if tried.seconds < LEVEL_S or tried.backlog is None or tried.backlog.is_level(tried.rate):
        return ""
    per_s, error = quantity.rate(tried.backlog.per_s), quantity.rate(ONE_SIDED * tried.backlog.error)
    return f"its backlog is not shown to stand still: it rose by {per_s} ± {error}"


class Backlog:
    """Listens to the ticks of a load and says when its backlog rises, so that it can be ended."""

    def __init__(self, rate: float) -> None:
        self._rate = rate
        self._seen: list[tuple[float, float]] = []
        self._last: tuple[int, int, int] | None = None
        self.rising: Slope | None = None

    @property
    def slope(self) -> Slope | None:
        """Of all that was seen."""
        return slope(self._seen)

    def begin(self) -> None:
        """Forget what was seen: the load is made once more."""
        self._seen, self._last, self.rising = [], None, None

    def goes_on(self, tick: Mapping[str, Any]) -> bool:
        """Take a tick of the engine; False from when the backlog rises."""
        if tick["phase"] != "measure" or self.rising is not None:
            return self.rising is None
        # Ticks are more frequent than news.
        news = (tick["in_flight"], tick["waiting"], tick["requests"])
        if news != self._last:
            self._last = news
            self._seen.append((tick["at_s"], float(tick["in_flight"] + tick["waiting"])))
            self.rising = rises(self._seen, self._rate)
        return self.rising is None


# --- The bottleneck at the highest rate.
#
# By Little's law the slots in use are throughput × the time a request is in the server (J. D. C. Little, «A Proof for
# the Queuing Formula: L = λW», Operations Research 9, 1961).


def bounding(measured: Measurement, slots: int | None, workers: int) -> Bottom:
    """Return what was used up; `workers` are its processes, and `slots` None where it has no such number."""
    span = max(measured.load.duration_s, 1e-9)
    used = measured.server.cpu_s / span
    cpus = len(measured.placement.server_cpus)
    had = min(cpus, workers)
    if used >= USED_UP * had:
        whose = "its CPU is" if had == 1 else f"its {had} CPUs are"
        note = " (one process computes on one CPU at a time)" if had < cpus else ""
        return Bottom(Bound.CPU, f"{whose} in use to {quantity.percent(min(used / had, 1.0))}{note}")
    others = measured.host.server_cpus
    taken = (others.other_cpu_s or 0.0) / span if others else 0.0
    if taken > used and used + taken >= USED_UP * had:
        return Bottom(
            Bound.OTHER,
            f"its CPU is in use to {quantity.percent(used / had)}, and other programs had "
            f"{quantity.percent(min(taken / had, 1.0))} of it: end them, and measure again",
        )
    mean_ms = measured.load.sent.mean
    if slots is not None and mean_ms is not None:
        # On the way a request holds no slot.
        mean_ms = max(0.0, mean_ms - (measured.trial.link.rtt_ms if measured.trial.link else 0.0))
        held = measured.load.throughput_rps * mean_ms / 1000
        if held >= USED_UP * slots:
            return Bottom(
                Bound.SLOTS,
                f"its {quantity.thousands(slots)} slot{' is' if slots == 1 else 's are'} in use: "
                f"{quantity.rate(measured.load.throughput_rps)} × {quantity.milliseconds(mean_ms)} ms",
            )
    return Bottom(
        Bound.OTHER,
        f"its CPU is in use to {quantity.percent(used / had)} only: it waits, for what it calls or for a lock",
    )
