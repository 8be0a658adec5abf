"""The field of one question: what each contestant did, sorted by load and block, ready to be compared.

Which measurement counts for what is decided here. What the lab spoilt counts for nothing. Where the generator was the
limit, the server did at least as much. What the server spoilt itself is its result: it counts, and as a bound from
above, because a server that turns requests away or lets them queue must not win by what is left.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from velodrome.guest.stack import Stack
from velodrome.judge.statistics import Hosts, Sample, Side
from velodrome.model.littles_law import Ceiling, ceiling
from velodrome.model.load import AS_SCHEDULED, Closed, Load, Open
from velodrome.model.measurement import Failed, FailureKind, FlagKind, Measurement
from velodrome.model.noise import SHIPPED, Noise, Spread
from velodrome.model.results import COMPARABLE
from velodrome.model.study import Question
from velodrome.model.trial import Contestant

BOUNDING = frozenset({FlagKind.GENERATOR_SATURATED, FlagKind.CPU_SHARED})
"""With CPUs of its own for the generator, or for the server, the same server could have done more."""
GENERATOR_ENDED = BOUNDING | {FlagKind.LITTLES_LAW}
"""A generator without CPU leaves its connections waiting for itself, which Little's law then misses."""
SERVERS_OWN = frozenset(
    {
        FlagKind.ERRORS,
        FlagKind.NOT_STATIONARY,
        FlagKind.LISTEN_QUEUE_OVERFLOWED,
        FlagKind.SERVER_DIED,
        FlagKind.SERVER_RESTARTED,
        FlagKind.CONNECTIONS_NEVER_IN,
        FlagKind.IDLE_NOT_HELD,
    }
)
"""What a server does to a measurement by itself, where nothing else was amiss: its figures then are its result."""
BROKEN = frozenset(
    {FailureKind.START, FailureKind.NEVER_ANSWERED, FailureKind.WRONG_ANSWER, FailureKind.DIED}
)
"""Failures that are the server's own."""


ENOUGH = 2 / 3
"""Of the blocks a contestant was scheduled for, how many must count before it is ranked."""


def spoilt(measurement: Measurement) -> bool:
    """Return whether the lab or the moment, not the server, is why a measurement may not count.

    A claim that a server gives out rests on the measurements that only its own flags set aside.
    """
    return any(kind.of_the_lab or kind.of_the_moment for kind in measurement.doubts)


def at_its_own_limit(measurement: Measurement) -> bool:
    """Return whether the generator, and nothing else, was the limit: the server can do at least this.

    So it is where it took half of a CPU that is the server's too.
    """
    return bool(measurement.doubts & BOUNDING) and measurement.doubts <= GENERATOR_ENDED


def spoilt_itself(measurement: Measurement) -> bool:
    """Return whether the server, and nothing else, is why a measurement is set aside."""
    return bool(measurement.doubts) and measurement.doubts <= SERVERS_OWN


@dataclass(frozen=True)
class Runner:
    """One contestant in one question."""

    label: str
    contestant: Contestant
    called: str
    """As read in a sentence."""
    python: str
    """Interpreter that the race gave it by `--python`, or empty."""
    stack: Stack | None
    """None when results are judged where the stack is not known."""
    measured: tuple[Measurement, ...]
    failed: tuple[Failed, ...]
    noise: Noise = SHIPPED
    """What its figures are presumed to vary by."""
    hosts: Hosts | None = None
    """Where the blocks of its question ran; None: all on one machine."""

    def under(self, load: Load) -> list[Measurement]:
        """Return what was measured under a load, by block."""
        found = [measurement for measurement in self.measured if measurement.trial.load.label == load.label]
        return sorted(found, key=lambda measurement: measurement.trial.block)

    def valid_under(self, load: Load) -> list[Measurement]:
        """Return what nothing sets aside."""
        return [measurement for measurement in self.under(load) if measurement.valid]

    def counted_under(self, load: Load) -> list[Measurement]:
        """Return what counts in a ranking: also what the server spoilt itself, and lower bounds of a closed loop."""
        bounded = isinstance(load.pace, Closed)
        return [
            measurement
            for measurement in self.under(load)
            if measurement.valid or spoilt_itself(measurement) or (bounded and at_its_own_limit(measurement))
        ]

    def shown_under(self, load: Load) -> list[Measurement]:
        """Return what counts or, when nothing does, what there is: it is shown, never ranked."""
        return self.counted_under(load) or self.under(load)

    def scheduled_under(self, load: Load) -> set[int]:
        """Return the blocks in which it was started for a load, whatever came of it."""
        failed = {result.trial.block for result in self.failed if result.trial.load.label == load.label}
        return failed | {measurement.trial.block for measurement in self.under(load)}

    def enough_under(self, load: Load) -> bool:
        """Return whether enough of its blocks count for it to be ranked."""
        counted, scheduled = len(self.counted_under(load)), len(self.scheduled_under(load))
        return 0 < counted >= ENOUGH * scheduled - 1e-9

    def bound_under(self, load: Load) -> Side | None:
        """Return on which side of its figures the true values are, if they are bounds.

        Above what a generator without CPU let it do. Not above what it reached where it spoilt blocks by itself; who
        did both is bounded from above, which is what a user would see.
        """
        if any(spoilt_itself(measurement) for measurement in self.under(load)) or any(
            result.trial.load.label == load.label and result.failure in BROKEN for result in self.failed
        ):
            return Side.AT_MOST
        return Side.AT_LEAST if any(map(at_its_own_limit, self.counted_under(load))) else None

    def ceiling(self, question: Question, load: Load) -> Ceiling | None:
        """Return what arithmetic allows it under a load; None too where it is unknown."""
        if self.stack is None or not set(self.contestant.knobs) <= set(self.stack.knobs):
            return None
        first = next(iter(self.measured), None)
        limited = first is not None and first.trial.limits.cpus is not None
        return ceiling(
            self.stack,
            self.contestant.knobs,
            question.recipe,
            load.pace,
            len(first.placement.server_cpus) if first is not None and limited else None,
            streams=load.streams,
            rtt_ms=question.link.rtt_ms if question.link else 0.0,
        )

    @property
    def memory_bytes(self) -> int | None:
        """Its highest memory in the question; shared pages counted once where the system tells (PSS)."""
        return max((measurement.memory_bytes for measurement in self.measured), default=None)


def runners(
    question: Question,
    results: Sequence[Measurement | Failed],
    stacks: Mapping[str, Stack],
    noise: Noise = SHIPPED,
) -> list[Runner]:
    """Return all contestants of a question that have any result, in the order of their labels."""
    by_label: dict[str, list[Measurement | Failed]] = {}
    for result in results:
        if result.trial.question == question.name:
            by_label.setdefault(result.trial.label, []).append(result)
    found = []
    hosts = hosts_of([result for own in by_label.values() for result in own])
    for label, own in sorted(by_label.items()):
        contestant = own[0].trial.contestant
        stack = stacks.get(contestant.stack)
        called = contestant.called(stack)
        python = "" if contestant.python else own[0].trial.python
        found.append(
            Runner(
                label,
                contestant,
                f"{called}, Python {python}" if python else called,
                python,
                stack,
                tuple(result for result in own if isinstance(result, Measurement)),
                tuple(result for result in own if isinstance(result, Failed)),
                noise,
                hosts,
            )
        )
    return found


def hosts_of(results: Sequence[Measurement | Failed]) -> Hosts | None:
    """Return on which hosts blocks ran; None: all on one. Each block is whole on one of them (`verdict.untorn`)."""
    of = {result.trial.block: result.machine.name if result.machine else "" for result in results}
    if len(set(of.values())) < 2:
        return None
    kinds = {
        tuple(result.machine.facts.get(name) for name in COMPARABLE) if result.machine else ()
        for result in results
    }
    return Hosts(of, alike=len(kinds) == 1)


def score(runner: Runner, question: Question, load: Load) -> Sample | None:
    """Return what ranks a contestant, more being better; None when too few of its blocks count.

    Closed loop: right answers a second. Open loop, where the same rate is due for all: right answers a second
    over the mean latency, so that neither falling behind nor being slow pays; nothing by a generator that does
    not tell latency from when requests were due. A contestant that never gave a right answer has no values: it is last,
    and has no ratio to anybody.
    """
    counted = runner.counted_under(load)
    if not runner.enough_under(load):
        return None
    if not any(measurement.load.answers for measurement in counted):
        return Sample(runner.label, {}, hosts=runner.hosts)
    side = runner.bound_under(load)
    if not isinstance(load.pace, Closed):
        # Means of blocks may be combined, percentiles may not. Nothing answered: as slow as the time-out.
        means = {
            measurement.trial.block: measurement.load.due.mean or load.timeout_s * 1000
            for measurement in counted
            if measurement.load.due.mean is not None or not measurement.load.ok
        }
        values = {
            measurement.trial.block: _rps(measurement) / max(means[measurement.trial.block], 1e-3)
            for measurement in counted
            if measurement.trial.block in means
        }
        if not values:
            return None
        known = latency_noise(runner.noise, question, "mean", median(means.values()))
        return Sample(
            runner.label, values, noise=known.share, noise_df=known.df, side=side, hosts=runner.hosts
        )
    return rates(runner, counted, question, load, side)


def cpu_cost(runner: Runner, load: Load) -> Sample | None:
    """Return server CPU per right answer, microseconds."""
    shown = runner.shown_under(load)
    values = {
        measurement.trial.block: cost
        for measurement in shown
        if (cost := measurement.cpu_us_per_request) is not None and cost > 0
    }
    known = runner.noise.cpu(cpus_of(shown)) if values else None
    if known is None:
        return None
    return Sample(runner.label, values, noise=known.share, noise_df=known.df, hosts=runner.hosts)


def memory_use(runner: Runner, load: Load) -> Sample | None:
    """Return the most memory of the server in each block, bytes."""
    values = {
        measurement.trial.block: float(measurement.memory_bytes)
        for measurement in runner.shown_under(load)
        if measurement.memory_bytes > 0
    }
    known = runner.noise.memory
    if not values:
        return None
    return Sample(runner.label, values, noise=known.share, noise_df=known.df, hosts=runner.hosts)


def throughput(runner: Runner, question: Question, load: Load) -> Sample | None:
    """Return right answers a second, also of measurements set aside when there are no others: to be shown."""
    shown = runner.shown_under(load)
    return rates(runner, shown, question, load) if shown else None


def rates(
    runner: Runner, measured: Sequence[Measurement], question: Question, load: Load, side: Side | None = None
) -> Sample:
    """Return right answers a second of just these measurements."""
    values = {measurement.trial.block: _rps(measurement) for measurement in measured}
    known = rate_noise(runner.noise, measured, question, load)
    grain = _grain(measured, question, load)
    return Sample(runner.label, values, grain, known.share, known.df, side, runner.hosts)


# --- What is presumed of a figure, by what the server did while it was taken.


def cpus_of(measured: Sequence[Measurement]) -> float:
    """Return how many CPUs a server kept busy, in the median of its blocks."""
    return median(
        measurement.server.cpu_s / max(measurement.load.duration_s, 1e-9) for measurement in measured
    )


def rate_noise(noise: Noise, measured: Sequence[Measurement], question: Question, load: Load) -> Spread:
    """Return what answers a second vary by."""
    pace = load.pace
    kept_up = isinstance(pace, Open) and all(
        pace.kept_up(measurement.load.throughput_rps, measurement.load.duration_s, AS_SCHEDULED)
        for measurement in measured
    )
    return noise.throughput(cpus_of(measured), kept_up=kept_up, waits=question.recipe.wait_ms > 0)


def latency_noise(noise: Noise, question: Question, part: str, value_ms: float) -> Spread:
    """Return what a latency varies by: what the recipe and the link wait is the same for all."""
    waits_ms = question.recipe.wait_ms + (question.link.rtt_ms if question.link else 0.0)
    return noise.latency(part, value_ms, waits_ms)


def _rps(measurement: Measurement) -> float:
    """Return right answers a second; none at all counts as half an answer, so that a ratio exists."""
    return max(
        measurement.load.throughput_rps,
        0.5 / measurement.load.duration_s if measurement.load.duration_s > 0 else 0.5,
    )


def _grain(measured: Sequence[Measurement], question: Question, load: Load) -> float:
    """Return the spread that the ends of a span alone give a count, as a share of it.

    A span catches a fraction more or less of what arrives together: one answer, or, where the recipe waits
    and so keeps a closed loop in step, one wave of all connections. Of a uniform phase at both ends the
    variance is 1/6 of that unit squared.
    """
    counts = [max(measurement.load.answers, 0.5) for measurement in measured]
    mean = sum(counts) / len(counts)
    wave = 1.0
    if question.recipe.wait_ms > 0 and isinstance(load.pace, Closed):
        wave = min(load.pace.connections * load.streams, _served_at_once(mean, measured, question))
    return min(1.0, max(1.0, wave) / (mean * 6**0.5))


def _served_at_once(count: float, measured: Sequence[Measurement], question: Question) -> float:
    """Return how many requests waited together: Little's law over the recipe's own wait."""
    span = sum(measurement.load.duration_s for measurement in measured) / len(measured)
    return count / span * question.recipe.wait_ms / 1000 if span > 0 else 1.0
