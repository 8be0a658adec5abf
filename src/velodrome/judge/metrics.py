"""Metrics of a cell, one contestant in one question: which number its loads give, or why they give none.

    number = TAKING["throughput_rps"].take(cell, load)      # a Series by blocks, a Known number, or Missing

In reading order: what may count of a cell; a metric and how it is taken; then the metrics one kind after the other.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import median

from velodrome.judge import histograms
from velodrome.judge.field import (
    Runner,
    at_its_own_limit,
    cpus_of,
    latency_noise,
    rate_noise,
    rates,
    spoilt,
)
from velodrome.judge.histograms import Histogram
from velodrome.judge.statistics import (
    Known,
    Limit,
    Missing,
    Number,
    Series,
    Side,
    count_events,
    share,
)
from velodrome.judge.words import blocks, one_line
from velodrome.model.load import AS_SCHEDULED, Closed, Load, Open
from velodrome.model.measurement import FlagKind, Latency, Measurement, Severity
from velodrome.model.noise import Noise, Spread
from velodrome.model.profile import Profile
from velodrome.model.quantity import Interval
from velodrome.model.study import Question

# --- One contestant in one question, as the figures of a claim see it: what may count, and why something may not.


@dataclass(frozen=True)
class Cell:
    """A cell with all its results."""

    question: Question
    runner: Runner
    profiles: Sequence[Profile] = ()
    bound_ms: float | None = None
    """The p99 up to which a rate holds, where the check names it."""

    def valid(self, load: Load) -> list[Measurement] | Missing:
        """Return what may count under a load, or why nothing may."""
        found = self.runner.valid_under(load)
        return found or self._why_none(load, self.runner.under(load))

    def used(self, load: Load) -> list[Measurement] | Missing:
        """Return what tells what the server itself used, also on CPUs that it shared with its load."""
        every = self.runner.under(load)
        found = [measurement for measurement in every if measurement.doubts <= {FlagKind.CPU_SHARED}]
        return found or self._why_none(load, every)

    def seen(self, load: Load) -> list[Measurement] | Missing:
        """Return what was not spoilt by the lab itself, whatever became of the server."""
        every = self.runner.under(load)
        found = [measurement for measurement in every if not spoilt(measurement)]
        return found or self._why_none(load, every)

    def failures(self, load: Load) -> set[int]:
        """Return the blocks in which nothing could be measured under a load."""
        return {result.trial.block for result in self.runner.failed if result.trial.load.label == load.label}

    def _why_none(self, load: Load, every: Sequence[Measurement]) -> Missing:
        if every:
            flags = [
                flag
                for measurement in every
                for flag in measurement.flags
                if flag.severity is Severity.INVALID
            ]
            where = blocks([measurement.trial.block for measurement in every])
            return Missing(
                f"{self.runner.called} under {load.label} was set aside ({where}): {flags[0].sentence}"
            )
        failed = [result for result in self.runner.failed if result.trial.load.label == load.label]
        if failed:
            return Missing(f"{self.runner.called} could not be measured: {one_line(failed[0].reason)}")
        return Missing(f"nothing of {self.runner.called} was run under {load.label}")


@dataclass(frozen=True)
class Taking:
    """How a metric is taken of a cell under a load."""

    take: Callable[[Cell, Load], Number]
    prefers_open: bool = False
    """Which loop shows it where the check does not say: the first open loop, or the first closed loop."""

    def load(self, question: Question) -> Load:
        """Return the load that shows the metric."""
        kind = Open if self.prefers_open else Closed
        return next((load for load in question.loads if isinstance(load.pace, kind)), question.loads[0])


# --- Right answers a second, and how near they come to what arithmetic allows.


def throughput(cell: Cell, load: Load) -> Number:
    """Right answers that arrived within the span, over its length.

    Where the generator had no CPU left, or took half of a CPU of the server, the server could have done more: that
    many is what it does at least.
    """
    bounded = [measurement for measurement in cell.runner.under(load) if at_its_own_limit(measurement)]
    found = [*bounded, *cell.runner.valid_under(load)] if bounded else cell.valid(load)
    if isinstance(found, Missing):
        return found
    if not any(measurement.load.answers for measurement in found):
        return Missing(f"{cell.runner.called} gave no correct response under {load.label}")
    sample = rates(cell.runner, found, cell.question, load)
    limit = Limit(Side.AT_LEAST, "give the generator more CPUs") if bounded else None
    return Series(sample.values, sample.grain, sample.noise, limit, sample.noise_df)


def answered(cell: Cell, load: Load) -> Number:
    """The same, also of measurements set aside because the server turned requests away or left them waiting."""
    found = cell.seen(load)
    if isinstance(found, Missing):
        return found
    values = {
        measurement.trial.block: measurement.load.throughput_rps
        for measurement in found
        if measurement.load.throughput_rps > 0
    }
    if not values:
        return Missing(f"{cell.runner.called} gave no correct response under {load.label}")
    known = rate_noise(cell.runner.noise, found, cell.question, load)
    return Series(values, noise=known.share, noise_df=known.df)


def ceiling(cell: Cell, load: Load) -> Number:
    """What Little's law allows: slots, or connections, over the time each is held. Known exactly."""
    found = cell.runner.ceiling(cell.question, load)
    if found is None:
        return Missing(f"arithmetic bounds {cell.runner.called} by nothing under {load.label}")
    return Known(Interval(found.rps, found.rps, found.rps))


def of_ceiling(cell: Cell, load: Load) -> Number:
    """Right answers a second over that."""
    rate, limit = throughput(cell, load), ceiling(cell, load)
    if isinstance(rate, Missing) or not isinstance(limit, Known):
        return rate if isinstance(rate, Missing) else limit
    assert isinstance(rate, Series)
    values = {block: value / limit.interval.mid for block, value in rate.values.items()}
    return replace(rate, values=values)


def span(cell: Cell, load: Load) -> Number:
    """Seconds that a load of so many requests took."""
    if load.requests is None:
        return Missing(f"{load.label} lasts as long as it is set to")
    found = cell.valid(load)
    if isinstance(found, Missing):
        return found
    return Series({measurement.trial.block: measurement.load.duration_s for measurement in found})


OF_THROUGHPUT = {
    "throughput_rps": Taking(throughput),
    "answered_rps": Taking(answered),
    "span_s": Taking(span),
    "ceiling_rps": Taking(ceiling),
    "ceiling_share": Taking(of_ceiling),
}


# --- The highest rate that still holds: of the question's open loops, block by block.
#
# A rate holds where 97 % of it was answered right (less what chance takes of random arrivals), the p99 from due stayed
# within a bound (that of the check, else four times what the recipe waits) and under 1 % of the requests failed. The
# rates are a grid: the true limit lies between the rate that holds and the next, and its width is part of the number's
# uncertainty.

WAITS = 4.0
"""Times what the recipe waits by itself: from there on, requests wait for each other."""
LEAST_BOUND_MS = 50.0
"""For recipes that wait little or not at all."""
ERRORS = 0.01


def sustained(cell: Cell, load: Load) -> Number:
    """Return the highest rate that holds in each block, of the open loops with that load's driver."""
    loads = sorted(
        (
            open_load
            for open_load in cell.question.loads
            if isinstance(open_load.pace, Open) and open_load.driver == load.driver
        ),
        key=_rate,
    )
    if not loads:
        return Missing(f"{cell.question.name} has no open loop")
    bound_ms = cell.bound_ms or max(WAITS * cell.question.recipe.wait_ms, LEAST_BOUND_MS)
    held: dict[int, dict[float, bool]] = {}
    for open_load in loads:
        for result in cell.runner.under(open_load):
            if not spoilt(result):
                held.setdefault(result.trial.block, {})[_rate(open_load)] = holds(result, open_load, bound_ms)
        for block in cell.failures(open_load):
            held.setdefault(block, {})[_rate(open_load)] = False
    if not held:
        reason = cell.seen(loads[0])
        return reason if isinstance(reason, Missing) else Missing(f"nothing of {cell.runner.called} was run")
    return _series(held, [_rate(open_load) for open_load in loads])


def holds(measurement: Measurement, load: Load, bound_ms: float) -> bool:
    """Return whether a server kept up with an open loop."""
    # Another generator may tell no more than its own latency; it is then all there is to hold a bound against.
    p99 = measurement.load.due.p99 if load.driver == "velodrome" else measurement.load.sent.p99
    assert isinstance(load.pace, Open)
    return (
        load.pace.kept_up(measurement.load.throughput_rps, measurement.load.duration_s, AS_SCHEDULED)
        and p99 is not None
        and p99 <= bound_ms
        and measurement.failed < ERRORS * max(measurement.load.requests, 1)
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
    return Series(values, grain, limit=Limit(side, "use other rates") if side else None)


def _rate(load: Load) -> float:
    assert isinstance(load.pace, Open)
    return load.pace.rate


OF_SUSTAINED = {"sustained_rps": Taking(sustained, prefers_open=True)}


# --- Latency: from when requests were due, which a user waits, and from when they were sent, which is all that most
# other load generators tell.
#
# A percentile is taken of each block and compared within the block; percentiles are never averaged.

PARTS = ("mean", "p50", "p75", "p90", "p99")
"""Those that claims rest on."""


def from_due(part: str) -> Callable[[Cell, Load], Number]:
    """Return what takes one part of the latency from due."""
    return lambda cell, load: _take(cell, load, part, lambda measurement: measurement.load.due, "due")


def from_sent(part: str) -> Callable[[Cell, Load], Number]:
    """Return what takes one part of the latency from sent."""
    return lambda cell, load: _take(cell, load, part, lambda measurement: measurement.load.sent, "sent")


def as_reported(part: str) -> Callable[[Cell, Load], Number]:
    """Return what takes one part of the latency that a driver shows first: from due if it knows, else its own."""

    def take(cell: Cell, load: Load) -> Number:
        knows = any(measurement.load.due.p50 is not None for measurement in cell.runner.under(load))
        return (from_due if knows else from_sent)(part)(cell, load)

    return take


def _take(cell: Cell, load: Load, part: str, latency: Callable[[Measurement], Latency], since: str) -> Number:
    found = cell.valid(load)
    if isinstance(found, Missing):
        return found
    values = {}
    for measurement in found:
        value: float | None = getattr(latency(measurement), part)
        if value is not None and value > 0:
            values[measurement.trial.block] = value
    if not values:
        other = (
            "; its service time is another metric" if since == "due" and load.driver != "velodrome" else ""
        )
        return Missing(f"{load.driver} reported no {part} from {since} under {load.label}{other}")
    known = latency_noise(cell.runner.noise, cell.question, part, median(values.values()))
    return Series(values, noise=known.share, noise_df=known.df)


def slowest(cell: Cell, load: Load) -> Number:
    """The longest latency from sent: longer for a longer span, and of a single request."""
    found = cell.valid(load)
    if isinstance(found, Missing):
        return found
    values = {measurement.trial.block: measurement.load.sent.max for measurement in found}
    return _series_latency(values, cell, load, "slowest request")


def by_histogram(
    part: str, what: Callable[[Histogram], float | None], called: str
) -> Callable[[Cell, Load], Number]:
    """Return what takes a number from the histogram of latencies from sent, or as the driver tells it."""

    def take(cell: Cell, load: Load) -> Number:
        found = cell.valid(load)
        if isinstance(found, Missing):
            return found
        values = {
            measurement.trial.block: what(histograms.decode(measurement.load.hdr_sent))
            if measurement.load.hdr_sent
            else getattr(measurement.load.sent, part, None)
            for measurement in found
        }
        return _series_latency(values, cell, load, called)

    return take


def _series_latency(values: Mapping[int, float | None], cell: Cell, load: Load, called: str) -> Number:
    there = {block: value for block, value in values.items() if value}
    if not there:
        return Missing(f"{load.driver} reported no {called} under {load.label}")
    known = cell.runner.noise.extreme
    return Series(there, noise=known.share, noise_df=known.df)


OF_LATENCY = {
    **{f"{part}_ms": Taking(from_due(part), prefers_open=True) for part in PARTS if part != "p75"},
    **{f"{part}_service_ms": Taking(from_sent(part), prefers_open=True) for part in PARTS},
    **{f"{part}_told_ms": Taking(as_reported(part), prefers_open=True) for part in ("p50", "p99")},
    "max_service_ms": Taking(slowest, prefers_open=True),
    "min_service_ms": Taking(
        by_histogram("min", lambda histogram: histogram.min_ms, "fastest request"), prefers_open=True
    ),
    "stdev_service_ms": Taking(
        by_histogram("stdev", lambda histogram: histogram.stdev_ms, "deviation"), prefers_open=True
    ),
}


# --- What the server used: CPU for each right answer, CPUs kept busy, memory.


def _of_cpu(value: Callable[[Measurement], float | None]) -> Callable[[Cell, Load], Number]:
    return _of_server(value, lambda noise, measured: noise.cpu(cpus_of(measured)), "CPU")


def _of_server(
    value: Callable[[Measurement], float | None],
    noise: Callable[[Noise, Sequence[Measurement]], Spread],
    what: str,
) -> Callable[[Cell, Load], Number]:
    def take(cell: Cell, load: Load) -> Number:
        found = cell.used(load)
        if isinstance(found, Missing):
            return found
        values = {
            measurement.trial.block: reported for measurement in found if (reported := value(measurement))
        }
        if not values:
            return Missing(f"{cell.runner.called} reported no {what} under {load.label}")
        known = noise(cell.runner.noise, found)
        return Series(values, noise=known.share, noise_df=known.df)

    return take


def _cpus(measurement: Measurement) -> float:
    return measurement.server.cpu_s / measurement.load.duration_s


OF_COST = {
    "cpu_us": Taking(_of_cpu(lambda measurement: measurement.cpu_us_per_request)),
    "cpu_share": Taking(_of_cpu(_cpus)),
    "memory_bytes": Taking(
        _of_server(
            lambda measurement: float(measurement.memory_bytes), lambda noise, _: noise.memory, "memory"
        )
    ),
}


# --- How requests ended, and what the listening socket went through.
#
# These rest on measurements that are set aside as well, unless the lab itself was why: a claim that clients are turned
# away is shown by the very flag that keeps the measurement out of a ranking.


def _errors(cell: Cell, load: Load) -> Number:
    """Requests without a right answer, of all requests of all blocks."""
    return _share(cell, load, lambda measurement: measurement.failed)


def _outcome(kind: str) -> Callable[[Cell, Load], Number]:
    return lambda cell, load: _share(cell, load, lambda measurement: measurement.load.outcomes.get(kind, 0))


def _share(cell: Cell, load: Load, count: Callable[[Measurement], int]) -> Number:
    found = cell.seen(load)
    if isinstance(found, Missing):
        return found
    requests = sum(measurement.load.requests for measurement in found)
    return share(min(sum(count(measurement) for measurement in found), requests), requests)


def _failed(cell: Cell, load: Load) -> Number:
    """Blocks in which the server could not be measured at all, or gave no right answer, of all blocks."""
    measured = cell.runner.under(load)
    silent = {
        measurement.trial.block
        for measurement in measured
        if not measurement.load.answers and not measurement.load.ok
    }
    every = cell.failures(load) | {measurement.trial.block for measurement in measured}
    if not every:
        return Missing(f"nothing of {cell.runner.called} was run under {load.label}")
    return count_events([float(block in cell.failures(load) | silent) for block in sorted(every)])


def _queue(part: str, what: str) -> Callable[[Cell, Load], Number]:
    def take(cell: Cell, load: Load) -> Number:
        found = cell.seen(load)
        if isinstance(found, Missing):
            return found
        reported = [getattr(measurement.queue, part) for measurement in found]
        if all(value is None for value in reported):
            return Missing(f"this system does not report {what}")
        return count_events([float(value) for value in reported if value is not None])

    return take


OF_OUTCOMES = {
    "error_share": Taking(_errors),
    "reset_share": Taking(_outcome("reset")),
    "refused_share": Taking(_outcome("refused")),
    "timeout_share": Taking(_outcome("timeout")),
    "failed_share": Taking(_failed),
    "listen_overflows": Taking(_queue("overflows", "how often a listen queue overflowed")),
    "listen_peak": Taking(_queue("peak", "how full a listen queue was")),
}


# --- What profiles tell: how much of the time the server waits, and how deep its stack is when it does not.


def _of_profile(take: Callable[[Profile], Number]) -> Callable[[Cell, Load], Number]:
    def taken(cell: Cell, _load: Load) -> Number:
        if not cell.profiles:
            return Missing(f"no profile of {cell.runner.called} was taken in {cell.question.name}")
        last = cell.profiles[-1]
        if last.failed:
            return Missing(f"{cell.runner.called} could not be profiled: {last.failed}")
        return take(last)

    return taken


def _idle(profile: Profile) -> Number:
    if profile.idle_share is None:
        return Missing("the profile does not show how much was idle")
    return share(round(profile.idle_share * profile.samples), profile.samples)


def _depth(value: float | None) -> Number:
    """Depth is the code's, not the machine's: it is taken as exact."""
    return Known(Interval(value, value, value)) if value is not None else Missing("the profile has no depth")


OF_PROFILES = {
    "idle_share": Taking(_of_profile(_idle)),
    "depth_mean": Taking(_of_profile(lambda profile: _depth(profile.depth_mean))),
    "depth_max": Taking(_of_profile(lambda profile: _depth(profile.depth_max))),
}


# --- All metrics by name: each with how it is taken.

TAKING: Mapping[str, Taking] = {
    **OF_THROUGHPUT,
    **OF_SUSTAINED,
    **OF_LATENCY,
    **OF_COST,
    **OF_OUTCOMES,
    **OF_PROFILES,
}
