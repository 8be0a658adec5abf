"""From both sides to the whole answer; needs no machine, no run and no clock."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from velodrome.judge.differing.deciding import Found, decide
from velodrome.judge.differing.failing import Failing, failing
from velodrome.judge.differing.figures import Compared, compared, looked_at
from velodrome.judge.differing.gating import gates
from velodrome.judge.differing.sides import Pairing, Sides
from velodrome.judge.differing.summing import notes, overall, said
from velodrome.judge.figures.number import Missing
from velodrome.model.difference import DIFF_METRICS, Change, Diff, Difference
from velodrome.model.threshold import Threshold


@dataclass(frozen=True)
class Asked:
    """What a user sets over a diff."""

    margins: Mapping[str, float] = field(default_factory=dict)
    """By metric."""
    metrics: tuple[str, ...] = ()
    """Only these; empty: all. Fewer are told apart sooner."""
    thresholds: tuple[Threshold, ...] = ()


EVERYTHING = Asked()


def diff(sides: Sides, asked: Asked = EVERYTHING) -> Diff:
    """Return what changed between two sides."""
    found = [one for pairing in sides.pairings for one in figures(pairing, sides.paired, asked)]
    untold = [one for one in found if isinstance(one, Difference)]
    decided = decide([one for one in found if isinstance(one, Found)], asked.margins, sides.looks)
    every = sorted((*(one.difference for one in decided), *untold), key=_place)
    change = overall(every)
    return Diff(
        before=sides.before,
        after=sides.after,
        paired=sides.paired,
        change=change,
        sentence=said(change, every, sides.block_s),
        differences=tuple(every),
        gates=gates(asked.thresholds, decided, untold, sides.looks),
        set_aside=sides.set_aside,
        notes=(*notes(every, sides), *sides.notes),
        environment=sides.environment,
        block_s=sides.block_s,
    )


def _place(one: Difference) -> tuple[str, str, str, int]:
    return one.question, one.contestant, one.load, list(DIFF_METRICS).index(one.metric)


def figures(pairing: Pairing, paired: bool, asked: Asked) -> Iterator[Found | Difference]:
    """Yield the figures of one cell under one load, and the differences that have none."""
    if any(pairing.broken):
        yield _by_failure(pairing)
        return
    named = {*asked.metrics, *(one.metric for one in asked.thresholds)}
    for metric in looked_at(pairing.before.question, pairing.load):
        if asked.metrics and metric not in named:
            continue
        figure: Compared | Failing | Missing
        if metric == "errors":
            figure = failing(pairing.before, pairing.after, pairing.load)
        else:
            figure = compared(metric, pairing.before, pairing.after, pairing.load, paired)
        if metric not in named and _no_news(metric, figure):
            continue
        blank = _blank(pairing, metric)
        if isinstance(figure, Missing):
            yield replace(blank, reason=figure.reason)
        else:
            yield Found(_with_values(blank, figure), figure)


def _no_news(metric: str, figure: Compared | Failing | Missing) -> bool:
    """Whether nobody misses a figure that was not asked for: no request failed, or too few were made for p99.9."""
    if isinstance(figure, Failing):
        return not figure.any
    return isinstance(figure, Missing) and metric in {"p99.9", "errors"}


def _blank(pairing: Pairing, metric: str) -> Difference:
    """Return a difference of which nothing is known yet."""
    runner = pairing.after.runner
    return Difference(
        question=pairing.question,
        contestant=runner.label,
        called=runner.called,
        load=pairing.load.label,
        metric=metric,
        before=None,
        after=None,
        change=Change.INSUFFICIENT,
        margin=DIFF_METRICS[metric].margin,
    )


def _with_values(blank: Difference, figure: Compared | Failing) -> Difference:
    if isinstance(figure, Failing):
        before, after = figure.shares
        return replace(blank, before=before, after=after, blocks=(len(figure.before), len(figure.after)))
    design, size = figure.two.design, figure.bundle
    return replace(
        blank,
        before=figure.before,
        after=figure.after,
        blocks=(design.before * size, design.after * size),
    )


def _by_failure(pairing: Pairing) -> Difference:
    """Return the difference of a cell of which one side cannot be measured, by its own fault."""
    before, after = pairing.broken
    blank = _blank(pairing, "throughput")
    if before and after:
        return replace(blank, reason=f"neither side could be measured: {after}")
    if after:
        return replace(
            blank, after=0.0, change=Change.REGRESSION, reason=f"after, it could not be measured: {after}"
        )
    return replace(
        blank, before=0.0, change=Change.IMPROVEMENT, reason=f"only before it could not be measured: {before}"
    )
