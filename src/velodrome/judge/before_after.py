"""The two sides of a diff: which cells are compared, and each of their figures, before and after.

In reading order: the figures of two cells; the share of failed requests; the cells of two stored runs, or of the two
questions of one interleaved run.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean, median

from velodrome.guest.stack import Stack
from velodrome.judge import histograms
from velodrome.judge.field import BROKEN, Runner, latency_noise, runners
from velodrome.judge.histograms import EMPTY, Histogram, decode, merge, values_needed
from velodrome.judge.metrics import TAKING, Cell
from velodrome.judge.statistics import (
    FIRST_LOOK,
    LOOKED_AT,
    Failing,
    Missing,
    Number,
    Series,
    Two,
    block_s,
)
from velodrome.judge.verdict import same_hosts, same_machine, set_aside
from velodrome.judge.words import list_names, sentence
from velodrome.model.condition import DIFF_METRICS
from velodrome.model.difference import Side
from velodrome.model.errors import NotTwoSidesError, OtherArrivalsError, OtherRequestsError
from velodrome.model.load import QUEUE_STANDS, Closed, Load, Open
from velodrome.model.measurement import Failed, Measurement
from velodrome.model.quantity import thousands
from velodrome.model.results import Results
from velodrome.model.study import Question

LATENCIES = tuple(name for name, metric in DIFF_METRICS.items() if metric.percentile)
OF_SPEED = frozenset({"throughput", "cpu", "p50"})
DRIFT_OF_SPEED = 2.0
"""What a machine drifts by between two runs, over what two equal busy servers differ by in a block (`docs/diff.md`).

Of other figures it is 1, and of servers that mostly sleep: their noise holds more than the speed of the machine.
"""
_BUSY = 0.1
"""The noise of a busy server is less."""


@dataclass(frozen=True)
class Compared:
    """A figure of both sides."""

    two: Two
    before: float
    """Of all blocks together."""
    after: float
    bundle: int = 1
    """So many blocks make a value of it."""


def metrics_shown(question: Question, load: Load) -> tuple[str, ...]:
    """Return the metrics that a load shows: latency in open loops, where there is an open loop."""
    of_latency = isinstance(load.pace, Open) or not any(
        isinstance(other.pace, Open) for other in question.loads
    )
    return tuple(name for name in DIFF_METRICS if of_latency or name not in LATENCIES)


def compare_metric(metric: str, before: Cell, after: Cell, load: Load, paired: bool) -> Compared | Missing:
    """Return a figure of both sides, or why there is none. Not of `errors`, see `failing`."""
    percentile = DIFF_METRICS[metric].percentile
    if percentile is not None and load.driver == "velodrome":
        return _latency(percentile, (before, after), load, paired)
    taken_as = _figure_of(metric, load)
    if not taken_as:
        return Missing(f"{load.driver} reports no {metric} for single blocks")
    numbers = [TAKING[taken_as].take(cell, load) for cell in (before, after)]
    series: list[Series] = []
    for number in numbers:
        found = _series(number)
        if isinstance(found, Missing):
            return found
        series.append(found)
    two = Two(series[0], series[1], 0.0 if paired else _drift(metric, series))
    if not two.design.before or not two.design.after:
        return Missing("no block holds both")
    return Compared(two, fmean(series[0].values.values()), fmean(series[1].values.values()))


def _drift(metric: str, series: Sequence[Series]) -> float:
    busy = max(side.noise for side in series) < _BUSY
    return DRIFT_OF_SPEED if metric in OF_SPEED and busy else 1.0


def _figure_of(metric: str, load: Load) -> str:
    """Return by which figure of claims a metric is taken; empty: by none."""
    if metric == "throughput":
        # That a server falls behind a rate is shown by measurements that are set aside for just that.
        return "answered_rps" if isinstance(load.pace, Open) else "throughput_rps"
    return DIFF_METRICS[metric].taken_as


def _series(number: Number) -> Series | Missing:
    if isinstance(number, Series) and number.limit is not None:
        return Missing(f"it is {number.limit.side} what was measured; {number.limit.cure}")
    if isinstance(number, Series | Missing):
        return number
    return Missing("it is not known block by block")


def _latency(percentile: float, cells: tuple[Cell, Cell], load: Load, paired: bool) -> Compared | Missing:
    sides: list[dict[int, Histogram]] = []
    for cell in cells:
        valid = cell.valid(load)
        if isinstance(valid, Missing):
            return valid
        if isinstance(load.pace, Open) and not _kept_up(valid, load.pace):
            return Missing(
                f"{cell.runner.called} fell behind {load.label}: its latency depends on how long it ran"
            )
        sides.append({measurement.trial.block: _histogram(measurement, load) for measurement in valid})
    if paired:
        shared = sides[0].keys() & sides[1].keys()
        sides = [{block: side[block] for block in sorted(shared)} for side in sides]
    size = max(histograms.bundle_size(side.values(), percentile) for side in sides)
    if not size:
        least = min(sum(histogram.total for histogram in side.values()) for side in sides)
        wanted = thousands(values_needed(percentile))
        return Missing(f"it needs {wanted} requests, and there were {thousands(least)}: load longer")
    series = [_bundle(side, size, percentile, cells[0]) for side in sides]
    two = Two(series[0], series[1], 0.0 if paired else _drift(f"p{percentile:g}", series))
    if not two.design.before or not two.design.after:
        wanted = thousands(values_needed(percentile))
        return Missing(f"it needs {wanted} requests on both sides: load longer")
    before, after = (merge(side.values()).percentile_ms(percentile) or 0.0 for side in sides)
    return Compared(two, before, after, size)


def _bundle(side: Mapping[int, Histogram], size: int, percentile: float, cell: Cell) -> Series:
    values = histograms.bundle_percentiles(side, size, percentile)
    if not values:
        return Series(values, noise=0.0)
    part = f"p{percentile:g}".replace(".", "_")
    known = latency_noise(cell.runner.noise, cell.question, part, median(values.values()))
    return Series(values, noise=known.share, noise_df=known.df)


def _histogram(measurement: Measurement, load: Load) -> Histogram:
    """Return latencies from when requests were due; in a closed loop that is when they were sent."""
    text = measurement.load.hdr_due if isinstance(load.pace, Open) else measurement.load.hdr_sent
    try:
        return decode(text or "")
    except ValueError:
        return EMPTY


def _kept_up(measured: Sequence[Measurement], pace: Open) -> bool:
    span = sum(measurement.load.duration_s for measurement in measured)
    answered_rps = sum(measurement.load.answers for measurement in measured) / span if span else 0.0
    return pace.kept_up(answered_rps, span, QUEUE_STANDS)


# --- The share of requests without a right answer, before and after.


def failing(before: Cell, after: Cell, load: Load) -> Failing | Missing:
    """Return the failures of two cells, or why they are unknown. Measurements set aside because of them count."""
    sides = []
    for cell in (before, after):
        seen = cell.seen(load)
        if isinstance(seen, Missing):
            return seen
        counts = [
            (measurement.failed, measurement.load.requests)
            for measurement in seen
            if measurement.load.requests
        ]
        if not counts:
            return Missing(f"no request was sent to {cell.runner.called} under {load.label}")
        sides.append([(min(failed, requests), requests) for failed, requests in counts])
    return Failing(sides[0], sides[1])


# --- What stands before and what after: two stored runs of the same cells, or two questions of one interleaved run.
#
#     runs(before, after, stacks)        # cells of the same names
#     revisions(run, stacks)             # questions `before` and `after`, block by block
#
# Both give the pairs of cells to compare, and what the report must add about them.

BEFORE, AFTER = "before", "after"
"""Names of the questions of a run that races two revisions of an app."""


@dataclass(frozen=True)
class Pairing:
    """One cell of both sides under one load."""

    question: str
    before: Cell
    after: Cell
    load: Load

    @property
    def broken(self) -> tuple[str, str]:
        """Why a side cannot be measured at all, by its own fault and in every block: before, after; or nothing."""
        return _why_broken(self.before, self.load), _why_broken(self.after, self.load)


@dataclass(frozen=True)
class Sides:
    """All that is compared."""

    before: Side
    after: Side
    paired: bool
    pairings: tuple[Pairing, ...]
    set_aside: tuple[str, ...]
    notes: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)
    block_s: float = 0.0
    looked_at: float = 1.0
    """By which a chance is multiplied because the race was looked at while it went on."""


def runs(
    before: Results, after: Results, stacks: Mapping[str, Stack], names: tuple[str, str] = (BEFORE, AFTER)
) -> Sides:
    """Return the cells that two stored runs have in common.

    Raises DifferentMachinesError, NotTwoSidesError when they have none, OtherRequestsError, OtherArrivalsError.
    """
    same_machine([before.header, after.header])
    for run in (before, after):
        same_hosts(run)
    ours, theirs = _cells(before, stacks), _cells(after, stacks)
    shared = [cell for cell in ours if cell in theirs]
    if not shared:
        raise NotTwoSidesError(names, ["/".join(key) for key in ours], ["/".join(key) for key in theirs])
    for name in shared:
        _refuse_other_requests(ours[name].question, theirs[name].question, names)
        _refuse_other_arrivals(ours[name].question, theirs[name].question, names)
    pairings = [
        Pairing(name[0], ours[name], theirs[name], load)
        for name in shared
        for load in _loads(ours[name], theirs[name])
    ]
    return Sides(
        before=Side(names[0], _when(before)),
        after=Side(names[1], _when(after)),
        paired=False,
        pairings=tuple(pairings),
        set_aside=(*_aside("before", before, stacks), *_aside("after", after, stacks)),
        notes=(*_only_in_one(ours, theirs), *_changed(pairings), *_other_load(ours, theirs, shared)),
        environment=_environment(before),
        block_s=_block_s((before, after), pairings),
    )


def revisions(run: Results, stacks: Mapping[str, Stack]) -> Sides:
    """Return the cells of the questions `before` and `after` of one run, interleaved block by block.

    Raises NotTwoSidesError when it has no such questions.
    """
    questions = {question.name: question for question in run.header.study.questions}
    if BEFORE not in questions or AFTER not in questions:
        raise NotTwoSidesError((run.header.study.name,), list(questions), [])
    fields = [
        {
            runner.label: Cell(questions[name], runner)
            for runner in runners(questions[name], run.trials, stacks, run.header.noise)
        }
        for name in (BEFORE, AFTER)
    ]
    pairings = [
        Pairing(_workload(questions[BEFORE]), fields[0][label], fields[1][label], load)
        for label in fields[0]
        if label in fields[1]
        for load in questions[BEFORE].loads
    ]
    return Sides(
        before=Side(_revision(questions[BEFORE]) or BEFORE),
        after=Side(_revision(questions[AFTER]) or AFTER),
        paired=True,
        pairings=tuple(pairings),
        set_aside=tuple(set_aside(run.trials, stacks)),
        notes=tuple(_changed(pairings)),
        environment=_environment(run),
        block_s=_block_s((run,), pairings),
        # A race of fixed length begins with another number of blocks, or ends with it.
        looked_at=LOOKED_AT if run.header.study.blocks == FIRST_LOOK else 1.0,
    )


def _cells(run: Results, stacks: Mapping[str, Stack]) -> dict[tuple[str, str], Cell]:
    return {
        (question.name, runner.label): Cell(question, runner)
        for question in run.header.study.questions
        for runner in runners(question, run.trials, stacks, run.header.noise)
    }


def _refuse_other_requests(before: Question, after: Question, names: tuple[str, str]) -> None:
    """Raise OtherRequestsError where an app was sent other requests on one side."""
    if before.app is None or after.app is None:
        return
    ours, theirs = (
        [(one.method, one.path, one.headers, one.body, one.weight) for one in app.requests]
        for app in (before.app, after.app)
    )
    if sorted(ours, key=repr) != sorted(theirs, key=repr):
        sides = [[f"{one.method} {one.path}" for one in app.requests] for app in (before.app, after.app)]
        raise OtherRequestsError(before.name, (names[0], *sides[0]), (names[1], *sides[1]))


def _refuse_other_arrivals(before: Question, after: Question, names: tuple[str, str]) -> None:
    """Raise OtherArrivalsError where one rate was sent evenly spaced on one side and as of users on the other."""
    sides = [_arrivals(before), _arrivals(after)]
    for load, ours in sides[0].items():
        theirs = sides[1].get(load, ours)
        if not ours & theirs:
            raise OtherArrivalsError(
                before.name, load, (names[0], *sorted(ours)), (names[1], *sorted(theirs))
            )


def _arrivals(question: Question) -> dict[str, set[str]]:
    """Return the arrivals of each open loop, by its label without them."""
    found: dict[str, set[str]] = {}
    for load in question.loads:
        if not isinstance(load.pace, Closed):
            plain = replace(load, pace=replace(load.pace, arrivals="constant"))
            found.setdefault(plain.label, set()).add(load.pace.arrivals)
    return found


def _loads(before: Cell, after: Cell) -> Iterator[Load]:
    labels = {load.label for load in after.question.loads}
    return (load for load in before.question.loads if load.label in labels)


def _why_broken(cell: Cell, load: Load) -> str:
    failed: Sequence[Failed] = [
        result for result in cell.runner.failed if result.trial.load.label == load.label
    ]
    if cell.runner.under(load) or not failed or any(result.failure not in BROKEN for result in failed):
        return ""
    return failed[0].reason


def _revision(question: Question) -> str:
    return question.app.revision if question.app else ""


def _workload(question: Question) -> str:
    """Return the workload of both questions, whatever their revision."""
    return question.app.path if question.app else question.recipe.name


def _when(run: Results) -> str:
    return f"run at {run.header.started_at}" if run.header.started_at else ""


def _environment(run: Results) -> dict[str, str]:
    facts = {name: str(value) for name, value in run.header.machine.items() if value is not None}
    return {**facts, "velodrome": run.header.velodrome, "started": run.header.started_at}


def _aside(side: str, run: Results, stacks: Mapping[str, Stack]) -> Iterator[str]:
    return (f"{side}: {reason}" for reason in set_aside(run.trials, stacks))


def _only_in_one(ours: Iterable[tuple[str, str]], theirs: Iterable[tuple[str, str]]) -> Iterator[str]:
    for side, some, others in (("before", ours, theirs), ("after", theirs, ours)):
        lone = ["/".join(cell) for cell in some if cell not in set(others)]
        if lone:
            yield sentence(f"only {side}, so not compared: {list_names(lone)}")


def _other_load(
    ours: Mapping[tuple[str, str], Cell],
    theirs: Mapping[tuple[str, str], Cell],
    shared: Sequence[tuple[str, str]],
) -> Iterator[str]:
    for question in dict.fromkeys(name for name, _ in shared):
        cells = [side[cell] for side in (ours, theirs) for cell in shared if cell[0] == question]
        loads = [{load.label: load for load in cell.question.loads} for cell in (cells[0], cells[-1])]
        lone = sorted(loads[0].keys() ^ loads[1].keys())
        if lone:
            yield sentence(f"{question}: under one side's loads only, so not compared: {list_names(lone)}")
        longer = [
            label
            for label in loads[0]
            if label in loads[1] and loads[0][label].duration_s != loads[1][label].duration_s
        ]
        if longer:
            yield sentence(f"{question}: the spans of {list_names(longer)} differ in length")


def _changed(pairings: Sequence[Pairing]) -> Iterator[str]:
    """Yield what differs between the sides beside what is measured: interpreters, packages, limits."""
    changes: dict[str, None] = {}
    for pairing in pairings:
        before, after = _last(pairing.before.runner), _last(pairing.after.runner)
        if before is None or after is None:
            continue
        called = pairing.before.runner.called
        if before.python != after.python:
            changes[f"{called}: Python {before.python} before, {after.python} after"] = None
        if before.trial.limits != after.trial.limits:
            changes[f"{called}: the limits of the server differ"] = None
        names = sorted({*before.packages, *after.packages})
        versions = [
            f"{name} {before.packages.get(name, 'not there')} → {after.packages.get(name, 'gone')}"
            for name in names
            if before.packages.get(name) != after.packages.get(name)
        ]
        if versions:
            changes[f"{called}: {list_names(versions)}"] = None
    yield from map(sentence, changes)


def _last(runner: Runner) -> Measurement | None:
    return runner.measured[-1] if runner.measured else None


def _block_s(found: Sequence[Results], pairings: Sequence[Pairing]) -> float:
    """Return the seconds that one more block of both sides takes."""
    both = [cell for pairing in pairings for cell in (pairing.before, pairing.after)]
    cells = {(cell.question.name, cell.runner.label) for cell in both}
    times = 1 if len(found) == 1 else 2
    trials = [trial for run in found for trial in run.trials]
    return times * sum(block_s(trials, [label], question) for question, label in cells)
