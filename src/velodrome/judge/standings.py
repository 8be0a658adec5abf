"""The rows of one question: every contestant with its rank, its figures, its latency, and the command that repeats it.

In reading order: the ranking; the command that measures a cell again; latency of a load whose rate changes; latency in
all other loads, by the clock of the generator that measured it; the rows themselves.
"""

import math
import shlex
from collections.abc import Collection, Mapping, Sequence, Set
from dataclasses import dataclass, replace

from velodrome.judge.deploying import deploy, deploy_app, with_comment
from velodrome.judge.field import (
    Runner,
    at_its_own_limit,
    cpu_cost,
    spoilt_itself,
    throughput,
)
from velodrome.judge.histograms import EMPTY, Histogram, decode, merge, values_needed
from velodrome.judge.statistics import CONFIDENCE, Comparison, Pair, Sample, Side
from velodrome.judge.words import blocks, capital, sentence
from velodrome.model.app import App, Request
from velodrome.model.load import AS_SCHEDULED, QUEUE_STANDS, Closed, Limits, Link, Load, Open, Schedule
from velodrome.model.measurement import UNKNOWN_LATENCY, FlagKind, LoadFacts, LoadStep, Measurement, Severity
from velodrome.model.quantity import Interval, exact
from velodrome.model.secrets import MARK
from velodrome.model.study import Question
from velodrome.model.trial import Contestant
from velodrome.model.verdict import DriverView, LatencyView, Standing, StepView

MARGIN = 0.03
"""A lead below this is no lead, however sure: a server differs from itself by as much between blocks."""
SETTLED = 0.05
"""Two are called equal when no lead above this can hide in their interval; else it is unknown."""


@dataclass(frozen=True)
class Ranking:
    """All contestants with enough blocks that count, the best estimate first."""

    comparison: Comparison
    order: tuple[str, ...]
    places: Mapping[str, tuple[int, int]]
    """Of each the best and the worst place that it may have."""
    to_best: Mapping[str, Pair]
    """The value of each over that of `order[0]`; without those that share no block with it."""

    @property
    def ranks(self) -> Mapping[str, int]:
        """Of each the best place that it may have."""
        return {label: low for label, (low, _) in self.places.items()}

    @property
    def first(self) -> tuple[str, ...]:
        """Everybody who is not clearly worse than anybody; who spoilt blocks by itself only where all did."""
        found = tuple(label for label in self.order if self.places[label][0] == 1)
        return tuple(label for label in found if label not in self.spoilt) or found

    @property
    def spoilt(self) -> frozenset[str]:
        """Those of whom nobody is clearly better, but who spoilt blocks by themselves."""
        return frozenset(
            sample.label
            for sample in self.comparison.samples
            if sample.side is Side.AT_MOST and self.places[sample.label][0] == 1
        )

    def side(self, label: str) -> Side | None:
        """Return on which side of its figures those of a contestant truly are, if they are bounds."""
        return next((sample.side for sample in self.comparison.samples if sample.label == label), None)

    def over(self, label: str, other: str) -> Pair | None:
        """Return the ratio of two contestants; None where one never answered or they share no block."""
        answered = {sample.label for sample in self.comparison.samples}
        return self.comparison.pair(label, other) if {label, other} <= answered else None


def rank(samples: Sequence[Sample], confidence: float = CONFIDENCE) -> Ranking | None:
    """Rank by value, more being better; who has none is last. None when nobody has any.

    `confidence` is that with which all statements on who is better hold together.
    """
    answered = [sample for sample in samples if sample.values]
    if not answered:
        return None
    comparison = Comparison(answered, confidence)
    middle = {sample.label: comparison.alone(sample.label).mid for sample in answered}
    order = sorted(middle, key=lambda label: (-middle[label], label))
    silent = sorted(sample.label for sample in samples if not sample.values)
    beaten = _beaten(
        {
            label: {other for other in order if other != label and _clearly_better(comparison, label, other)}
            for label in order
        }
    )
    places = {
        label: (1 + sum(label in worse for worse in beaten.values()), len(order) - len(beaten[label]))
        for label in order
    }
    places |= dict.fromkeys(silent, (1 + len(order), len(order) + len(silent)))
    pairs = {label: comparison.pair(label, order[0]) for label in order[1:]}
    return Ranking(
        comparison, (*order, *silent), places, {label: pair for label, pair in pairs.items() if pair}
    )


def _beaten(directly: Mapping[str, Set[str]]) -> dict[str, set[str]]:
    """Return of each all who are worse than it, also through others.

    All differences hold together with the confidence of the ranking. So whoever is better than a contestant is better
    than all whom that one beats, though noise of their own may hide it where the two are compared directly.
    """
    found: dict[str, set[str]] = {}
    for label in directly:
        left, worse = list(directly[label]), set[str]()
        while left:
            other = left.pop()
            if other not in worse:
                worse.add(other)
                left += directly[other]
        found[label] = worse - {label}
    return found


def equal(pair: Pair) -> bool:
    """Return whether no difference worth naming can hide in the interval (two one-sided tests)."""
    return pair.ratio.low > 1 - SETTLED and pair.ratio.high < 1 + SETTLED


def _clearly_better(comparison: Comparison, label: str, than: str) -> bool:
    """Return whether `label` is better: a lower bound can win and cannot lose, an upper bound can lose and cannot
    win."""
    side = {sample.label: sample.side for sample in comparison.samples}
    if side[label] is Side.AT_MOST or side[than] is Side.AT_LEAST:
        return False
    pair = comparison.pair(label, than)
    return pair is not None and pair.ratio.low > 1 and pair.ratio.mid > 1 + MARGIN


# --- The command that measures one cell of a comparison of apps again: such a study has no file to name.

REQUESTS_FILE = "REQUESTS"
"""Stands for the file, where requests came from a file: their contents do not go on a line."""
BODY_FILE = "BODY"
"""Stands for the file of what a simulated third party answers, where that does not go on a line."""


def command_again(app: App, contestant: Contestant, question: Question, limits: Limits) -> str | None:
    """Return the command line; values of environment variables are those of the shell it is typed in.

    None for a revision of an app: the folder it ran in was laid out for that race alone, and is gone.
    """
    if app.revision:
        return None
    words = ["velodrome", "compare", app.path, "--stack", contestant.stack, *app_words(app)]
    for load in question.loads:
        pace = load.pace
        words += (
            ["-c", str(pace.connections), "-z", f"{load.duration_s:g}s"]
            if isinstance(pace, Closed)
            else ["--rate", f"{pace.rate:g}"]
        )
    return shlex.join([*words, *around_words(question.link, limits)])


def app_words(app: App) -> list[str]:
    """Return the options of a command line that say what an app runs in, which requests it gets, and what it needs."""
    words = ["--python", app.python, "--cwd", app.cwd]
    words += ["--interface", app.named_interface] if app.named_interface else []
    words += ["--proto", app.proto] if app.proto else []
    lines = [_line(request, app.headers) for request in app.requests]
    if None in lines or len({request.weight for request in app.requests}) > 1:
        words += ["--requests", REQUESTS_FILE]
    else:
        words += [word for line in lines for word in ("--request", str(line))]
    for name in app.headers:
        words += ["--header", f"{name}: {MARK}"]  # which is refused until the value stands there
    words += [word for name in app.variables for word in ("--env", name)]
    if app.source and "PYTHONPATH" not in app.variables:  # an app that was named by its file
        words += ["--env", f"PYTHONPATH={app.source}"]
    for third in app.third_parties:
        words += ["--upstream", third.text(BODY_FILE)]
    return words


def around_words(link: Link | None, limits: Limits) -> list[str]:
    """Return the options that say what is between load and server, and what the server may use."""
    words = ["--link", link.typed] if link is not None else []
    words += ["--cpus", str(limits.cpus)] if limits.cpus is not None else []
    words += ["--memory", _memory(limits.memory_bytes)] if limits.memory_bytes else []
    return words


def _memory(count: int) -> str:
    return f"{count // 1024}k" if count % 1024 == 0 else f"{count // 1000}kB"


def _line(request: Request, everywhere: Collection[str]) -> str | None:
    """Return a request as it is typed, None where a line does not say all of it; headers `everywhere` stand beside."""
    besides = {"content-type", *(name.lower() for name in everywhere)}
    given = [name for name, _ in request.headers if name.lower() not in besides]
    if given or request.expect_body or request.expect_contains or (request.body and request.body.base64):
        return None
    body = f" {request.body.text}" if request.body else ""
    status = f" -> {request.expect_status}" if request.expect_status is not None else ""
    line = f"{request.method} {request.path}{body}{status}"
    return line if line.isprintable() else None


# --- Each step of a load whose rate changes, all blocks together, and up to which rate a contestant kept up.
#
# Percentiles of blocks are not averaged, and steps have no histograms to merge: those of all blocks together lie
# between the lowest and the highest of them.

FEW = 3.0
"""Requests that the ends of a step alone cost it, beside the share that may be missing."""


def step_views(measured: Sequence[Measurement]) -> tuple[StepView, ...]:
    """Return what became of each step that all blocks came to."""
    blocks = [measurement.load.steps for measurement in measured]
    if not blocks or not all(blocks):
        return ()
    usual = [step.sent.p50 for steps in blocks for step in steps if step.sent.p50 is not None]
    usual_s = min(usual, default=0.0) / 1000
    before, found = 0.0, []
    for same in zip(*blocks, strict=False):
        found.append(_view(same, before, usual_s))
        before = same[0].to_rate
    return tuple(found)


def _view(same: Sequence[LoadStep], before: float, usual_s: float) -> StepView:
    first = same[0]
    answered = [step.throughput_rps for step in same]
    return StepView(
        at_s=first.at_s,
        rate=first.rate,
        to_rate=first.to_rate,
        achieved_rps=sum(answered) / len(answered),
        p50_ms=_between([step.due.p50 for step in same]),
        p99_ms=_between([step.due.p99 for step in same]),
        errors=sum(step.requests - step.ok for step in same),
        kept_up=all(_kept_up(step, before, usual_s) for step in same),
    )


def _kept_up(step: LoadStep, before: float, usual_s: float) -> bool:
    """Return whether as much was answered in a step as fell due in it.

    By Little's law a higher rate has more requests inside: as many as it rose by since the step `before`, times what
    one usually takes. That is taken from the quickest step, and is at most a quarter of this one: where all steps were
    overloaded, the time a request takes is that of the queue, and would excuse it.
    """
    lost = step.requests - step.throughput_rps * step.duration_s
    more_inside = max(0.0, step.to_rate - before) * min(usual_s, step.duration_s / 4)
    return lost <= more_inside + max(FEW, (1 - AS_SCHEDULED) * step.requests)


def _between(values: Sequence[float | None]) -> tuple[float, float] | None:
    known = [value for value in values if value is not None]
    return (min(known), max(known)) if known and len(known) == len(values) else None


def kept_up_to(steps: Sequence[StepView]) -> float | None:
    """Return the highest rate before the first step that was not kept up with; None: the first was not."""
    highest = None
    for step in steps:
        if not step.kept_up:
            return highest
        highest = max(highest or 0.0, step.rate, step.to_rate)
    return highest


def steps_sentence(load: Load, found: Mapping[str, LatencyView]) -> list[str]:
    """Return up to which rate each kept up, the highest first; `found` by what they are called."""
    if not isinstance(load.pace, Schedule):
        return []
    reached = {called: kept_up_to(view.steps) for called, view in found.items() if view.steps}
    top = load.pace.top
    all_of_it = [called for called, rate in reached.items() if rate is not None and rate >= top]
    partly = {called: rate for called, rate in reached.items() if called not in all_of_it}
    if not reached:
        return []
    parts = [f"{', '.join(all_of_it)} up to the end"] if all_of_it else []
    parts += [
        f"{called} up to {exact(rate)}" if rate is not None else f"{called} from the beginning not"
        for called, rate in sorted(partly.items(), key=lambda pair: -(pair[1] or 0.0))
    ]
    went = load.pace.ends.replace("..", " to ")
    return [f"As the rate went from {went}/s, these kept up with it: {'; '.join(parts)}"]


# --- Latency of one contestant under one load, and by whose clock: what each generator tells, and no more.
#
# Percentiles of blocks are merged through histograms where the generator gives them. Where it gives percentiles alone,
# those of all blocks together lie between the lowest and the highest of them, and the report shows no more.

FROM_DUE = "from when due"
PERCENTILES = (
    ("p50_ms", "p50", 50.0),
    ("p90_ms", "p90", 90.0),
    ("p99_ms", "p99", 99.0),
    ("p99_9_ms", "p99_9", 99.9),
)
"""Field of a view, field of a latency, percentile."""


def latency_view(runner: Runner, load: Load) -> LatencyView | None:
    """Return latencies under a load, all its blocks together; None when nothing was measured."""
    shown = runner.shown_under(load)
    if not shown:
        return None
    span = sum(measurement.load.duration_s for measurement in shown)
    answers = sum(measurement.load.throughput_rps * measurement.load.duration_s for measurement in shown)
    achieved_rps = answers / span if span else 0.0
    behind = isinstance(load.pace, Open) and not load.pace.kept_up(achieved_rps, span, QUEUE_STANDS)
    due = _merge([measurement.load.hdr_due for measurement in shown])
    sent = _merge([measurement.load.hdr_sent for measurement in shown])
    shown_latency = EMPTY if behind else due if due.total else sent if _foreign(shown) else due
    costs = cpu_cost(runner, load)
    view = LatencyView(
        load=load.label,
        p50_ms=shown_latency.supported_ms(50),
        p90_ms=shown_latency.supported_ms(90),
        p99_ms=shown_latency.supported_ms(99),
        p99_9_ms=shown_latency.supported_ms(99.9),
        max_ms=shown_latency.max_ms,
        achieved_rps=achieved_rps,
        errors=sum(measurement.failed for measurement in shown),
        requests=sum(measurement.load.requests for measurement in shown),
        curve_due=due.curve(),
        curve_sent=sent.curve(),
        fell_behind=behind,
        by=_driver(shown),
        within={
            name: interval
            for name, _, percentile in PERCENTILES
            if (interval := shown_latency.interval_ms(percentile, _starts(runner, shown_latency, shown)))
            is not None
        },
        cpu_us_per_request=sum(costs.values.values()) / len(costs.values) if costs else None,
        steps=step_views(shown),
    )
    if any(flag.kind is FlagKind.UNFAIR for measurement in shown for flag in measurement.flags):
        return _by_connection(view, shown)
    return view if shown_latency.total or behind or not _foreign(shown) else _as_reported(view, shown)


def _by_connection(view: LatencyView, shown: Sequence[Measurement]) -> LatencyView:
    """Return a view whose median is that of connections, each of which weighs the same; see `Fairness`.

    Where most requests are those of the few connections that a server prefers, the median request is one of theirs.
    """
    medians = [
        measurement.load.fairness.median_connection_ms if measurement.load.fairness else None
        for measurement in shown
    ]
    bounds = _between(medians)
    within = {name: bounds for name, bounds in view.within.items() if name != "p50_ms"}
    view = replace(view, p50_ms=None, within=within, p50_by_connection=True)
    if bounds is None:
        return view
    if len(medians) == 1:
        return replace(view, p50_ms=bounds[0])
    return replace(view, between={**view.between, "p50_ms": bounds})


def _starts(runner: Runner, histogram: Histogram, shown: Sequence[Measurement]) -> float:
    """Return what the starts of a server add to the error of a percentile: in each block it was started anew."""
    waits_ms = shown[0].trial.recipe.wait_ms
    middle = histogram.percentile_ms(50) or 0.0
    own = max(middle - waits_ms, 0.0) / middle if middle else 0.0
    return runner.noise.of("p50").share * own / math.sqrt(2 * len(shown))


def _foreign(shown: Sequence[Measurement]) -> bool:
    return any(measurement.load.driver != "velodrome" for measurement in shown)


def _as_reported(view: LatencyView, shown: Sequence[Measurement]) -> LatencyView:
    """Return the percentiles of a generator without histograms: of one block its own, of several their bounds."""
    latencies = [
        measurement.load.due if measurement.load.due != UNKNOWN_LATENCY else measurement.load.sent
        for measurement in shown
    ]
    requests = min(measurement.load.ok for measurement in shown)
    found: dict[str, float] = {}
    between: dict[str, tuple[float, float]] = {}
    for name, field, percentile in PERCENTILES:
        # As for histograms: with too few requests beyond it a percentile says nothing.
        enough = requests >= values_needed(percentile)
        values = [value for latency in latencies if (value := getattr(latency, field)) is not None]
        if not enough or len(values) != len(latencies):
            continue
        if len(values) == 1:
            found[name] = values[0]
        else:
            between[name] = (min(values), max(values))
    slowest = [latency.max for latency in latencies if latency.max is not None]
    if slowest:
        found["max_ms"] = max(slowest)
    return replace(view, between=between, **found)  # type: ignore[arg-type]


def _driver(shown: Sequence[Measurement]) -> DriverView:
    facts = shown[-1].load
    used = sum(
        measurement.load.generator_cpu_s / max(measurement.load.duration_s, 1e-9) for measurement in shown
    ) / len(shown)
    return DriverView(
        name=facts.driver,
        version=facts.driver_version,
        basis=basis(facts),
        checks=facts.checks or "status and body",
        untold=tuple(missing_facts(facts)),
        notes=tuple(dict.fromkeys(note for measurement in shown for note in measurement.load.driver_notes)),
        generator_cpus=used,
        command=facts.driver_command,
    )


def basis(facts: LoadFacts) -> str:
    """Return what the latencies of a generator are."""
    if facts.driver == "velodrome" or facts.due != UNKNOWN_LATENCY:
        return FROM_DUE
    return f"{facts.latency_is} ({facts.driver})"


def missing_facts(facts: LoadFacts) -> list[str]:
    """Return what a generator does not tell, of what velodrome's own does."""
    if facts.driver == "velodrome":
        return []
    latency = facts.due if facts.due != UNKNOWN_LATENCY else facts.sent
    return [
        what
        for what, missing in (
            ("latency from when due", facts.due == UNKNOWN_LATENCY),
            ("the mean", latency.mean is None),
            ("p99.9", latency.p99_9 is None),
            ("the maximum", latency.max is None),
            ("histograms", facts.hdr_due is None and facts.hdr_sent is None),
            ("its own lag", facts.lag == UNKNOWN_LATENCY),
            ("what was in flight", facts.mean_in_flight is None),
            ("each second", not facts.series),
            ("which connections were answered", facts.connections_answered is None),
        )
        if missing
    ]


def _merge(texts: Sequence[str | None]) -> Histogram:
    """Merge what can be read; a histogram that is missing or cannot be read leaves its numbers out."""
    found = []
    for text in texts:
        try:
            found.append(decode(text or ""))
        except ValueError:
            return EMPTY
    return merge(found)


# --- The rows of one question: every contestant with its rank, figures, flags and failures.


def standings(question: Question, runners: Sequence[Runner], ranking: Ranking | None) -> tuple[Standing, ...]:
    """Return all rows: the ranked contestants by their estimates, then those set aside, then those that failed."""
    load = question.ranking_load
    rates = rates_of(question, runners)
    costs = alone([cpu_cost(runner, load) for runner in runners])
    rows = [_row(question, runner, ranking, rates, costs) for runner in runners]
    order = ranking.order if ranking else ()

    def place(row: Standing) -> tuple[int, float]:
        if row.rank is not None:
            return 0, order.index(row.contestant)
        return (2, 0.0) if row.failed else (1, -row.throughput_rps.mid if row.throughput_rps else 0.0)

    return tuple(sorted(rows, key=place))


def rates_of(question: Question, runners: Sequence[Runner]) -> dict[str, Interval]:
    """Return right answers a second of each contestant by itself, under the load that ranks."""
    load = question.ranking_load
    found = alone([throughput(runner, question, load) for runner in runners])
    for runner in runners:
        shown = runner.shown_under(load)
        if shown and not any(measurement.load.answers for measurement in shown):
            # No ratio exists to nothing: at most, it gave less than one answer in all that time.
            found[runner.label] = Interval(
                0.0, 0.0, 1 / max(sum(measurement.load.duration_s for measurement in shown), 1e-9)
            )
    return found


def alone(samples: Sequence[Sample | None]) -> dict[str, Interval]:
    """Return the value of each contestant by itself, with its interval."""
    found = [sample for sample in samples if sample is not None]
    if not found:
        return {}
    comparison = Comparison(found)
    return {sample.label: comparison.alone(sample.label) for sample in found}


def _row(
    question: Question,
    runner: Runner,
    ranking: Ranking | None,
    rates: Mapping[str, Interval],
    costs: Mapping[str, Interval],
) -> Standing:
    load = question.ranking_load
    limit = runner.ceiling(question, load)
    if limit and limit.bound not in ("slots", "cpu"):
        limit = None  # that of the load is the same for all: the answer tells it once
    pair = ranking.to_best.get(runner.label) if ranking else None
    low, high = ranking.places.get(runner.label, (None, None)) if ranking else (None, None)
    side = runner.bound_under(load) if low is not None else None
    views = [
        replace(view, compares=question.app is None or not isinstance(other.pace, Closed))
        for other in question.loads
        if (view := latency_view(runner, other)) is not None
    ]
    return Standing(
        contestant=runner.label,
        stack=runner.contestant.stack,
        title=runner.stack.title if runner.stack else runner.contestant.stack,
        rank=low,
        rank_low=low,
        rank_high=high,
        bound=side.value if side else "",
        throughput_rps=rates.get(runner.label),
        cpu_us_per_request=costs.get(runner.label),
        memory_bytes=runner.memory_bytes,
        latency=tuple(views),
        blocks_done=len(runner.scheduled_under(load)),
        blocks_valid=len({measurement.trial.block for measurement in runner.valid_under(load)}),
        ratio_to_best=pair.ratio if pair else None,
        ceiling_rps=limit.rps if limit else None,
        ceiling=limit.arithmetic if limit else "",
        notes=(*_notes(runner), *_too_few(runner, load)),
        failed=capital(sentence(runner.failed[0].reason)) if runner.failed and not runner.measured else "",
        deploy=_deploy(question, runner),
        again=_again(question, runner),
        called=runner.called,
        python=runner.python,
    )


def _deploy(question: Question, runner: Runner) -> str:
    measured = next((measurement for measurement in runner.measured if measurement.command), None)
    if question.app is not None and runner.stack is not None and measured is not None:
        pasted = deploy_app(question.app, runner.contestant, runner.stack, measured.packages)
    else:
        pasted = deploy(measured.command if measured else (), runner.contestant.stack)
    return with_comment(pasted, measured, runner.stack.server if runner.stack else None)


def _again(question: Question, runner: Runner) -> str | None:
    if question.app is None or not runner.measured:
        return ""
    return command_again(question.app, runner.contestant, question, runner.measured[0].trial.limits)


def _too_few(runner: Runner, load: Load) -> list[str]:
    """Say why a contestant of which something counts has no rank."""
    counted, scheduled = len(runner.counted_under(load)), len(runner.scheduled_under(load))
    if not counted or runner.enough_under(load):
        return []
    verb = "count" if counted > 1 else "counts"
    return [f"Not ranked: only {counted} of its {scheduled} blocks {verb}, and it takes two thirds."]


def _notes(runner: Runner) -> list[str]:
    """Return flags and failures as sentences: each kind once under each load, with its blocks.

    Not that one block alone was too short for a percentile: the blocks are merged, and a percentile for which they
    still are too few is shown as missing.
    """
    seen: dict[tuple[str, str], tuple[str, list[int]]] = {}
    for measurement in sorted(runner.measured, key=lambda measurement: measurement.trial.block):
        for flag in measurement.flags:
            if flag.kind is FlagKind.TOO_SHORT and flag.severity is Severity.NOTE:
                continue
            aside = "" if flag.severity is not Severity.INVALID else _consequence(measurement)
            reason = f"{measurement.trial.load.label}, {aside}{flag.sentence}"
            _, where = seen.setdefault((flag.kind, measurement.trial.load.label), (reason, []))
            where.append(measurement.trial.block)
    if runner.measured:
        for failure in runner.failed:
            reason = f"{failure.trial.load.label}, failed: {failure.reason}"
            _, where = seen.setdefault((failure.failure, failure.trial.load.label), (reason, []))
            where.append(failure.trial.block)
    return [f"{sentence(text)} ({blocks(where)})" for text, where in seen.values()]


def _consequence(measurement: Measurement) -> str:
    """Return what a flag makes of a measurement."""
    if spoilt_itself(measurement):
        return "counts against it: "
    if isinstance(measurement.trial.load.pace, Closed) and at_its_own_limit(measurement):
        return "a lower bound: "
    return "set aside: "
