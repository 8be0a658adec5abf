"""Published conclusions judged again: holds, does not hold here, or cannot tell, because…

In reading order: contradictions within what was published; the cells a figure names; the number a check is about; the
check; the claim; published tables beside what was measured here.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from statistics import median

from velodrome.guest.catalog import serves
from velodrome.guest.stack import Stack
from velodrome.judge import histograms
from velodrome.judge.field import (
    Runner,
    at_its_own_limit,
    cpus_of,
    latency_noise,
    rate_noise,
    rates,
    runners,
    spoilt,
)
from velodrome.judge.histograms import Histogram
from velodrome.judge.statistics import (
    Comparison,
    Known,
    Limit,
    Missing,
    Number,
    Pair,
    Series,
    Side,
    block_s,
    count_events,
    more_blocks,
    share,
)
from velodrome.judge.words import blocks, one_line, sentence
from velodrome.model.claim import (
    Arithmetic,
    Check,
    Checked,
    Claim,
    Compared,
    Contradiction,
    Fact,
    Figure,
    Finding,
    Here,
    Judged,
    Judgement,
    Line,
    PublishedRow,
    PublishedTable,
)
from velodrome.model.condition import unit_of
from velodrome.model.load import AS_SCHEDULED, Closed, Load, Open
from velodrome.model.measurement import FlagKind, Latency, Measurement, Severity
from velodrome.model.noise import SHIPPED, Noise, Spread
from velodrome.model.profile import Profile
from velodrome.model.quantity import Interval, Unit, exact, in_unit, number, percent, short
from velodrome.model.results import Result
from velodrome.model.study import Question, Study
from velodrome.model.trial import Contestant

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


# --- Where published figures contradict arithmetic or each other; computed, never typed.

TOLERANCE = 0.05
"""Rounding, and what the ends of a span catch, explain this much."""


def contradictions(claim: Claim) -> tuple[str, ...]:
    """Return a sentence for each contradiction in what was published; none where the figures agree."""
    found = [beyond_littles_law(arithmetic) for arithmetic in claim.arithmetic]
    found += [beside_its_table(contradiction) for contradiction in claim.contradictions]
    return tuple(filter(None, found))


def beyond_littles_law(arithmetic: Arithmetic) -> str:
    """Return why a published rate is impossible for what it is claimed to have run on, or nothing.

    What holds a slot for W seconds and has n of them cannot do more than n ÷ W (Little 1961, docs/method.md).
    """
    wait_s = arithmetic.wait_ms / 1000
    most = arithmetic.slots / wait_s
    if arithmetic.published_rps <= most * (1 + TOLERANCE):
        return ""
    needed = arithmetic.published_rps * wait_s
    return (
        f"{arithmetic.slots} {arithmetic.what} that each wait {short(arithmetic.wait_ms)} ms cannot exceed "
        f"{arithmetic.slots} ÷ {short(wait_s)} s = {exact(most)}; the published {short(arithmetic.published_rps)}/s "
        f"takes {number(needed, 2)} of them, so it cannot have had {arithmetic.slots} {arithmetic.what} in all, or "
        f"they did not wait {short(arithmetic.wait_ms)} ms"
    )


def beside_its_table(contradiction: Contradiction) -> str:
    """Return how what a text says differs from what its own table gives, or nothing."""
    table = contradiction.a / contradiction.b
    if abs(table / contradiction.says - 1) <= TOLERANCE:
        return ""
    return (
        f"the publication says {short(contradiction.says)} for {contradiction.about}; its own table gives "
        f"{short(contradiction.a)} ÷ {short(contradiction.b)} = {number(table, 3)}"
    )


# --- Finds what a figure names: a cell with its results, an experiment with its facts, or why there is neither.


@dataclass(frozen=True)
class Evidence:
    """All that a study measured."""

    study: Study
    results: Sequence[Result]
    stacks: Mapping[str, Stack]
    findings: Sequence[Finding] = ()
    profiles: Sequence[Profile] = ()
    noise: Noise = SHIPPED
    _fields: dict[str, list[Runner]] = field(default_factory=dict)
    """By question, made once."""

    def cell(self, figure: Figure, bound_ms: float | None = None) -> Cell | Missing:
        """Return the cell a figure names, or why it has no result."""
        for question, contestant in self._every_pair():
            if figure.cell == f"{question.name}/{contestant.label}":
                break
        else:
            return Missing(f"{figure.cell} is not in this study")
        for runner in self._field(question):
            if runner.contestant == contestant:
                profiles = [
                    profile
                    for profile in self.profiles
                    if profile.trial.question == question.name and profile.trial.contestant == contestant
                ]
                return Cell(question, runner, profiles, bound_ms)
        return Missing(self._why_not(question, contestant))

    def finding(self, name: str) -> Finding | Missing:
        """Return what an experiment came to, or why it came to nothing."""
        found = [finding for finding in self.findings if finding.experiment.name == name]
        if not found:
            skipped = " (the quick form leaves it out)" if self.study.skips(name) else ""
            return Missing(f"the experiment {name} was not run{skipped}")
        last = found[-1]
        return Missing(f"the experiment {name} could not be tried: {last.failed}") if last.failed else last

    def load(self, question: Question, label: str) -> Load | Missing:
        """Return the load of a question by its label."""
        found = next((load for load in question.loads if load.label == label), None)
        return found or Missing(f"{question.name} has no load {label}")

    def _every_pair(self) -> list[tuple[Question, Contestant]]:
        return [
            (question, contestant)
            for question in self.study.questions
            for contestant in self.study.contestants
        ]

    def _field(self, question: Question) -> list[Runner]:
        if question.name not in self._fields:
            self._fields[question.name] = runners(question, self.results, self.stacks, self.noise)
        return self._fields[question.name]

    def _why_not(self, question: Question, contestant: Contestant) -> str:
        name = f"{question.name}/{contestant.label}"
        if self.study.skips(name):
            return f"the {self.study.form} form leaves {name} out"
        stack = self.stacks.get(contestant.stack)
        refused = serves(stack, question.recipe) if stack else None
        return f"{name} cannot be served: {refused}" if refused else f"{name} was not run"


# --- The number a check is about: one figure, the ratio of two, or the ratio of two ratios, with its interval.


@dataclass(frozen=True)
class Measured:
    """A number with its interval, and what would narrow it."""

    interval: Interval
    limit: Limit | None = None
    comparison: Comparison | None = None
    pair: Pair | None = None
    """Of a ratio, block by block."""
    blocks: int = 0
    cells: tuple[Cell, ...] = ()
    loads: tuple[Load, ...] = ()


def measure(check: Check, evidence: Evidence) -> Measured | Missing:
    """Return what was measured for a check of cells, or why it is unknown."""
    figures = [figure for figure in (check.figure, check.over, *(check.than or ())) if figure]
    places: list[tuple[Cell, Load]] = []
    numbers: list[Series | Known] = []
    for figure in figures:
        place = _place(figure, check, evidence)
        if isinstance(place, Missing):
            return place
        number: Number = TAKING[figure.metric].take(*place)
        if isinstance(number, Missing):
            return number
        if isinstance(number, Series):
            number = replace(number, hosts=place[0].runner.hosts)
        places.append(place)
        numbers.append(number)
    found = _combine(numbers)
    if isinstance(found, Missing):
        return found
    return replace(found, cells=tuple(cell for cell, _ in places), loads=tuple(load for _, load in places))


def _place(figure: Figure, check: Check, evidence: Evidence) -> tuple[Cell, Load] | Missing:
    if figure.metric not in TAKING:
        return Missing(f"this velodrome knows no metric '{figure.metric}'")
    cell = evidence.cell(figure, check.bound_ms)
    if isinstance(cell, Missing):
        return cell
    if not figure.load:
        return cell, TAKING[figure.metric].load(cell.question)
    load = evidence.load(cell.question, figure.load)
    return load if isinstance(load, Missing) else (cell, load)


def _combine(numbers: list[Series | Known]) -> Measured | Missing:
    if len(numbers) == 1:
        return _alone(numbers[0])
    if len(numbers) == 2:
        return _over(numbers[0], numbers[1])
    gain, other = _quotient(numbers[0], numbers[1]), _quotient(numbers[2], numbers[3])
    for found in (gain, other):
        if isinstance(found, Missing):
            return found
    assert not isinstance(gain, Missing)
    assert not isinstance(other, Missing)
    return _over(gain, other)


def _alone(number: Series | Known) -> Measured:
    if isinstance(number, Known):
        return Measured(number.interval)
    return Measured(Comparison([number.sample("of")]).alone("of"), number.limit, blocks=len(number.values))


def _over(number: Series | Known, other: Series | Known) -> Measured | Missing:
    if isinstance(number, Known) or isinstance(other, Known):
        return _apart(_alone(number), _alone(other))
    comparison = Comparison([number.sample("of"), other.sample("over")])
    pair = comparison.pair("of", "over")
    if pair is None:
        return Missing("no block holds both")
    limit = _limit(number, other)
    if isinstance(limit, Missing):
        return limit
    return Measured(pair.ratio, limit, comparison, pair, pair.blocks)


def _apart(measured: Measured, other: Measured) -> Measured | Missing:
    """Return the ratio of two numbers that no block pairs: as wide as both together allow."""
    a, b = measured.interval, other.interval
    if b.mid == 0:
        return Missing("it would be divided by nothing: the other number is 0")
    limit = _limit(measured, other)
    if isinstance(limit, Missing):
        return limit
    return Measured(Interval(a.low / b.high, a.mid / b.mid, a.high / b.low if b.low else math.inf), limit)


def _quotient(number: Series | Known, other: Series | Known) -> Series | Known | Missing:
    """Return a ratio as a number of its own, to be compared again."""
    if isinstance(number, Known) or isinstance(other, Known):
        found = _apart(_alone(number), _alone(other))
        return found if isinstance(found, Missing) else Known(found.interval)
    values = {
        block: value / other.values[block] for block, value in number.values.items() if block in other.values
    }
    if not values:
        return Missing("no block holds both")
    limit = _limit(number, other)
    if isinstance(limit, Missing):
        return limit
    noise = math.sqrt(number.noise**2 + other.noise**2)
    df = min(number.noise_df, other.noise_df)
    return Series(values, math.hypot(number.grain, other.grain), noise, limit, df, number.hosts)


def _limit(series: Series | Measured, other: Series | Measured) -> Limit | Missing | None:
    """Return how a quotient is bounded by the limits of both, if it can be."""
    above, below = series.limit, other.limit.flipped if other.limit else None
    if above and below and above.side is not below.side:
        return Missing(f"both reach the end of what was tried; {above.cure} for both")
    return above or below


# --- Judges one check: whether the whole interval lies within its bounds, wholly outside, or neither.


def judge_check(check: Check, evidence: Evidence, needs_cpus: int) -> Checked:
    """Return a check with what was measured and what that says."""
    if check.figure.experiment:
        return _by_facts(check, evidence)
    found = measure(check, evidence)
    if isinstance(found, Missing):
        return Checked(check, Judgement.CANNOT_TELL, None, reason=found.reason)
    crowded = _why_crowded(found, needs_cpus)
    if crowded:
        return Checked(check, Judgement.CANNOT_TELL, found.interval, reason=crowded, limit=_side(found))
    return _bounded(check, found, evidence)


def unit(check: Check) -> Unit:
    """Return the unit a check's number is in."""
    return Unit.RATIO if check.over else unit_of(check.figure.metric)


def _why_crowded(found: Measured, needs_cpus: int) -> str:
    """Return why too few CPUs were the server's own, or nothing."""
    for cell, load in zip(found.cells, found.loads, strict=True):
        for result in cell.runner.under(load):
            if result.server_cpus < needs_cpus:
                every = len({*result.placement.server_cpus, *result.placement.load_cpus})
                given = len(result.placement.server_cpus)
                taken = percent(result.shared_share)
                shared = f", and its load used {taken} of one of them" if result.server_cpus < given else ""
                return (
                    f"undecided on this machine: it needs {needs_cpus} CPUs for the server; here it had "
                    f"{given} of {every}{shared}"
                )
    return ""


def _bounded(check: Check, found: Measured, evidence: Evidence) -> Checked:
    interval = found.interval
    low = check.at_least if check.at_least is not None else -math.inf
    high = check.at_most if check.at_most is not None else math.inf
    inside = low <= interval.low and interval.high <= high
    outside = interval.high < low or interval.low > high
    judgement = Judgement.HOLDS if inside else Judgement.FAILS if outside else Judgement.CANNOT_TELL
    reason = "" if judgement is not Judgement.CANNOT_TELL else _to_settle(check, found, evidence)
    if found.limit and _open_end(judgement, found.limit, low, high, interval):
        judgement = Judgement.CANNOT_TELL
        reason = f"what was tried ends there: the number is {found.limit.side} this; {found.limit.cure}"
    if judgement is Judgement.FAILS:
        reason = f"all of {in_unit(interval, unit(check))} lies {_beyond(check, interval)}"
    return Checked(check, judgement, interval, reason=reason, limit=_side(found))


def _side(found: Measured) -> str:
    return found.limit.side if found.limit else ""


def _open_end(judgement: Judgement, limit: Limit, low: float, high: float, interval: Interval) -> bool:
    """Return whether a number that may be larger (or smaller) than measured could still be judged otherwise."""
    if judgement is Judgement.CANNOT_TELL:
        return True
    if limit.side is Side.AT_LEAST:
        return not (interval.low >= low and high == math.inf) and not interval.low > high
    return not (interval.high <= high and low == -math.inf) and not interval.high < low


def _beyond(check: Check, interval: Interval) -> str:
    """Return `below 1.5×` or `above 0.2×`."""
    if check.at_least is not None and interval.high < check.at_least:
        return f"below {in_unit(check.at_least, unit(check))}"
    return f"above {in_unit(check.at_most, unit(check))}"


def _to_settle(check: Check, found: Measured, evidence: Evidence) -> str:
    """Return which bound lies within the interval, and how many more blocks would tell."""
    bounds = [bound for bound in (check.at_least, check.at_most) if bound is not None]
    within = [bound for bound in bounds if found.interval.low < bound < found.interval.high] or bounds
    nearest = min(within, key=lambda bound: abs(bound - found.interval.mid))
    reason = (
        f"the interval {in_unit(found.interval, unit(check))} reaches across {in_unit(nearest, unit(check))}"
    )
    if found.pair is None or found.comparison is None or nearest <= 0 or found.interval.mid <= 0:
        return reason
    distance = abs(math.log(found.interval.mid / nearest))
    cells = {(cell.question.name, cell.runner.label) for cell in found.cells}
    seconds = sum(block_s(evidence.results, [label], question) for question, label in cells)
    return f"{reason}; {more_blocks(found.comparison, found.pair, distance, seconds)}"


def _by_facts(check: Check, evidence: Evidence) -> Checked:
    finding = evidence.finding(check.figure.experiment)
    if isinstance(finding, Missing):
        return Checked(check, Judgement.CANNOT_TELL, None, reason=one_line(finding.reason))
    names = [check.figure.metric, *([check.over.metric] if check.over else [])]
    facts: list[Fact] = []
    for name in names:
        if finding.facts.get(name) is None:
            outcome = finding.sentence if finding.facts.get("timed_out") else f"it reported no {name}"
            reason = f"the experiment {finding.experiment.name}: {outcome}"
            return Checked(check, Judgement.CANNOT_TELL, None, reason=reason)
        facts.append(finding.facts[name])
    if check.equals is not None:
        judgement = Judgement.HOLDS if facts[0] == check.equals else Judgement.FAILS
        found = {True: "yes", False: "no"}.get(facts[0]) if isinstance(facts[0], bool) else str(facts[0])
        return Checked(check, judgement, None, found or "", finding.sentence)
    return _by_number(check, facts, finding.sentence)


def _by_number(check: Check, facts: Sequence[Fact], sentence: str) -> Checked:
    if not all(isinstance(fact, int | float) for fact in facts):
        shown = ", ".join(map(str, facts))
        return Checked(check, Judgement.CANNOT_TELL, None, shown, f"no number was found, but {shown}")
    numbers = [float(fact) for fact in facts if isinstance(fact, int | float)]
    if len(numbers) == 2 and numbers[1] == 0:
        return Checked(check, Judgement.CANNOT_TELL, None, reason="it would be divided by 0")
    value = numbers[0] / numbers[1] if len(numbers) == 2 else numbers[0]
    holds = (check.at_least is None or value >= check.at_least) and (
        check.at_most is None or value <= check.at_most
    )
    judgement = Judgement.HOLDS if holds else Judgement.FAILS
    return Checked(check, judgement, Interval(value, value, value), reason=sentence)


# --- Judges claims: one holds where all checks hold that decide, and does not hold here where any of them fails.


def judge_claims(evidence: Evidence) -> tuple[Judged, ...]:
    """Return every claim of the study with its judgement."""
    return tuple(_judge(claim, evidence) for claim in evidence.study.claims)


def _judge(claim: Claim, evidence: Evidence) -> Judged:
    checked = tuple(judge_check(check, evidence, claim.needs_cpus) for check in claim.checks)
    deciding = [result for result in checked if not result.check.informs]
    judgement = _judgement(deciding)
    reason = sentence(_reason(judgement, deciding))
    shown = tuple(_beside(result, judgement) if result.check.informs else result for result in checked)
    return Judged(claim, judgement, shown, reason, tuple(map(sentence, contradictions(claim))))


def _beside(checked: Checked, judgement: Judgement) -> Checked:
    """Return a check that informs, with the reason why it comes to something else where it does."""
    if checked.judgement is judgement:
        return replace(checked, reason="")
    why = checked.reason if checked.judgement is Judgement.CANNOT_TELL else ""
    return replace(checked, reason="; ".join(filter(None, (checked.check.informs, why))))


def _judgement(checked: Sequence[Checked]) -> Judgement:
    kinds = {result.judgement for result in checked}
    if Judgement.FAILS in kinds:
        return Judgement.FAILS
    return Judgement.HOLDS if kinds == {Judgement.HOLDS} else Judgement.CANNOT_TELL


def _reason(judgement: Judgement, checked: Sequence[Checked]) -> str:
    """Return why, by the first check that decides; each check has its own reason beside it."""
    if not checked:
        return "nothing here measures it"
    if judgement is Judgement.HOLDS:
        return (
            "all that was checked holds"
            if len(checked) > 1
            else checked[0].reason or "what was checked holds"
        )
    why = [result for result in checked if result.judgement is judgement]
    first = f"{why[0].check.about}: {why[0].reason}" if why[0].check.about else why[0].reason
    return first if len(why) == 1 else f"{len(why)} of {len(checked)} checks; {first}"


# --- Sets published tables beside what was measured here, figure by figure, without judging them.


def tabulate(table: PublishedTable, evidence: Evidence) -> Compared:
    """Return every figure of a published table with what was measured here, or why there is nothing."""
    lines = [
        Line(
            row.of,
            _row_name(row, evidence),
            metric,
            published,
            tuple(
                _here(Figure(metric, row.of, load), evidence) for load in row.loads or table.loads or ("",)
            ),
        )
        for row in table.rows
        for metric, published in zip(table.metrics, row.published, strict=True)
    ]
    return Compared(table.title, tuple(lines))


def _here(figure: Figure, evidence: Evidence) -> Here:
    driver = _driver(figure, evidence)
    found = measure(Check(figure, None, None, None), evidence)
    if isinstance(found, Missing):
        return Here(figure.load, driver, None, found.reason)
    return Here(figure.load, driver, found.interval, limit=found.limit.side if found.limit else "")


def _driver(figure: Figure, evidence: Evidence) -> str:
    """Return the generator of a figure's load."""
    of_question, _, _ = figure.cell.partition("/")
    question = next((question for question in evidence.study.questions if question.name == of_question), None)
    loads = {load.label: load.driver for load in question.loads} if question else {}
    return loads.get(figure.load, "velodrome")


def _row_name(row: PublishedRow, evidence: Evidence) -> str:
    """Return how the system reads in a table, or its cell where nothing is known of it."""
    cell = evidence.cell(Figure("", row.of))
    return row.of if isinstance(cell, Missing) else cell.runner.called
