"""From the figures of both sides to the answer of a diff: regression, improvement, no difference, or insufficient data.

    diff(runs(before, after, stacks), criteria(["p99 +10%"], [], []))

A difference is a *regression* where it is surely on the worse side of equality, all figures of the diff considered, and
beyond the margin by its estimate. It is *none* where its whole interval lies within the margin (two one-sided tests:
Schuirmann, Journal of Pharmacokinetics and Biopharmaceutics 15, 1987). All else is insufficient data. `docs/diff.md`
explains the method; its statistics are in `statistics.py`.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from velodrome.judge.before_after import (
    Compared,
    Pairing,
    Sides,
    compare_metric,
    failing,
    metrics_shown,
)
from velodrome.judge.statistics import (
    CONFIDENCE,
    MOST_BLOCKS,
    Estimate,
    Failing,
    Missing,
    Restlessness,
    estimate,
    holm,
)
from velodrome.judge.words import list_names, sentence
from velodrome.model.condition import DIFF_METRICS, Threshold, threshold
from velodrome.model.condition import margins as read_margins
from velodrome.model.difference import Change, Diff, Difference, Gate
from velodrome.model.errors import ThresholdError
from velodrome.model.quantity import Interval, duration, percent, significant, thousands

LEVEL = 1 - CONFIDENCE
REACH_OF_RUNS = 4.5
"""So many times their drift is what two runs that were not interleaved can tell at all, with few blocks."""
WIDEST = 0.5
"""A margin beyond this says nothing that anybody wants to know."""


class Likely(Protocol):
    """A difference of a figure, with what tells how sure it is."""

    @property
    def shown(self) -> Interval:
        """As a reader sees it: after over before; of failures after less before."""

    @property
    def share(self) -> Interval:
        """By which share after is more than before."""

    @property
    def enough(self) -> bool:
        """Whether there are blocks enough to tell anything of it."""

    def chance(self, share: float = 0.0) -> float:
        """Return how often blocks differ so much by chance alone, if the true difference is `share`."""

    def more_blocks(self, half_below: float, level: float = LEVEL) -> int | None:
        """Return how many more blocks narrow half the interval, as a log ratio, so far; None: none would."""


@dataclass(frozen=True)
class Found:
    """A figure of both sides, not yet judged."""

    difference: Difference
    """All of it but the answer."""
    figure: Compared | Failing

    @property
    def least(self) -> float:
        """The least difference that it makes sense to ask for, as a share."""
        if isinstance(self.figure, Failing):
            return 0.0
        two = self.figure.two
        return two.noise if two.paired else REACH_OF_RUNS * two.noise * two.drift


@dataclass(frozen=True)
class Decided:
    """A difference, with what it rests on: thresholds are judged by that too."""

    difference: Difference
    likely: Likely

    @property
    def worse(self) -> Interval:
        """The difference with more being worse: of what should be high, the share that was lost."""
        return worse(self.difference.metric, self.likely.share)


def worse(metric: str, share: Interval) -> Interval:
    """Return a difference with more being worse."""
    if DIFF_METRICS[metric].more_is_better:
        return Interval(-share.high, -share.mid, -share.low)
    return share


def decide(found: Sequence[Found], margins: Mapping[str, float], looked_at: float = 1.0) -> list[Decided]:
    """Return what became of every figure. `margins` are those that the user set, by metric.

    `looked_at` is by how much a chance grows because the race was looked at while it went on (`LOOKED_AT`).
    """
    machine = Restlessness.of([entry.figure.two for entry in found if isinstance(entry.figure, Compared)])
    likely = [_likely(entry.figure, machine) for entry in found]
    in_all = [min(1.0, chance * looked_at) for chance in holm([difference.chance() for difference in likely])]
    return [
        _decide(entry, sure, chance, _margin(entry, margins), len(found) * looked_at)
        for entry, sure, chance in zip(found, likely, in_all, strict=True)
    ]


def _likely(figure: Compared | Failing, machine: Restlessness) -> Estimate | Failing:
    return estimate(figure.two, machine, figure.bundle) if isinstance(figure, Compared) else figure


def _margin(entry: Found, margins: Mapping[str, float]) -> float:
    """Return from where on a difference counts: as requested, or that of the metric, or the least that makes sense."""
    metric = entry.difference.metric
    return margins.get(metric) or max(DIFF_METRICS[metric].margin, min(entry.least, WIDEST))


def _decide(entry: Found, likely: Estimate | Failing, in_all: float, margin: float, family: float) -> Decided:
    share = worse(entry.difference.metric, likely.share)
    known = replace(
        entry.difference,
        margin=margin,
        interval=likely.shown,
        chance=likely.chance(),
        chance_in_all=in_all,
    )
    if not likely.enough:
        return Decided(_insufficient(known, likely, share, family), likely)
    if in_all < LEVEL and abs(share.mid) > margin and not share.low <= 0 <= share.high:
        change = Change.REGRESSION if share.mid > 0 else Change.IMPROVEMENT
        return Decided(replace(known, change=change), likely)
    if -margin < share.low and share.high < margin:
        return Decided(replace(known, change=Change.SAME), likely)
    return Decided(_insufficient(known, likely, share, family), likely)


def _insufficient(
    known: Difference, likely: Estimate | Failing, share: Interval, family: float
) -> Difference:
    """Return how many more blocks would tell, if the difference stays what it is; or why none would."""
    middle = abs(math.log1p(max(share.mid, -0.99)))
    if abs(share.mid) > known.margin:
        more = likely.more_blocks(middle, LEVEL / family)
    else:
        more = likely.more_blocks(math.log1p(known.margin) - middle)
    reason = "" if more is not None else hopeless(likely, abs(share.mid), known.margin)
    return replace(known, change=Change.INSUFFICIENT, more_blocks=more, reason=reason)


def hopeless(likely: Likely, share: float, bound: float) -> str:
    """Return why no number of blocks that anybody waits for tells on which side of a bound a difference is."""
    if isinstance(likely, Failing):
        return "too few requests failed, or were sent, to exclude chance; load longer"
    if not likely.enough:
        return "five blocks at least must be valid, of both sides together"
    if isinstance(likely, Estimate) and likely.drift:
        return (
            "two runs that were not interleaved cannot show it, however long: the machine drifts between them"
        )
    if abs(share - bound) < bound / 2:
        return (
            f"it is so near to {significant(bound * 100)} % that even {MOST_BLOCKS} blocks would not decide"
        )
    return f"it varies so much that even {MOST_BLOCKS} blocks would not decide; load longer, or allow it more"


# --- Thresholds: whether a figure became worse by more than is allowed, in each cell that shows it.
#
# A threshold is broken where the difference is surely beyond it, all thresholds considered (Holm); it holds where the
# whole interval stays within; else it is undecided, and never passes by luck.


def gates(
    thresholds: Sequence[Threshold],
    decided: Sequence[Decided],
    without_figures: Sequence[Difference],
    looked_at: float = 1.0,
) -> tuple[Gate, ...]:
    """Return what became of every threshold, wherever its metric was looked at.

    `without_figures` are differences without figures: these are undecided, unless they are clear without.
    """
    pairs = [
        (threshold, decision)
        for threshold in thresholds
        for decision in decided
        if decision.difference.metric == threshold.metric
    ]
    alone = [decision.likely.chance(_share(threshold)) for threshold, decision in pairs]
    chances = [min(1.0, chance * looked_at) for chance in holm(alone)]
    found = [
        _gate(threshold, decision, chance, len(pairs) * looked_at)
        for (threshold, decision), chance in zip(pairs, chances, strict=True)
    ]
    found += [
        Gate(
            threshold,
            difference,
            False if difference.change is Change.REGRESSION else None,
            difference.reason,
        )
        for threshold in thresholds
        for difference in without_figures
        if difference.metric == threshold.metric
    ]
    return tuple(found)


def _share(threshold: Threshold) -> float:
    return -threshold.share if DIFF_METRICS[threshold.metric].more_is_better else threshold.share


def _gate(threshold: Threshold, decided: Decided, chance: float, family: float) -> Gate:
    share, bound = decided.worse, threshold.share
    if share.high < bound and decided.likely.enough:
        return Gate(threshold, decided.difference, True, "")
    if chance < LEVEL and share.low > bound and decided.likely.enough:
        return Gate(threshold, decided.difference, False, "")
    beyond = share.mid > bound
    distance = abs(math.log1p(max(share.mid, -0.99)) - math.log1p(bound))
    more = decided.likely.more_blocks(distance, LEVEL / family if beyond else LEVEL)
    if more is None:
        return Gate(threshold, decided.difference, None, sentence(hopeless(decided.likely, share.mid, bound)))
    return Gate(threshold, decided.difference, None, "", more)


# --- The answer of a whole diff in a sentence, and what a reader must know beside it.

DRIFT = (
    "These runs were not interleaved, and a machine drifts between two runs. Every interval allows for that, and no "
    "number of repeats removes it. Two revisions raced against each other show far smaller differences."
)


def overall(differences: Sequence[Difference]) -> Change:
    """Return the answer of all: a single regression is enough."""
    changes = {difference.change for difference in differences}
    for change in (Change.REGRESSION, Change.IMPROVEMENT):
        if change in changes:
            return change
    return Change.SAME if changes == {Change.SAME} else Change.INSUFFICIENT


def answer_sentence(change: Change, differences: Sequence[Difference], block_s: float) -> str:
    """Return the answer as a sentence or two."""
    of = {kind: [difference for difference in differences if difference.change is kind] for kind in Change}
    parts = []
    if change is Change.REGRESSION:
        parts.append(
            f"Regression: {list_names([_describe_change(difference) for difference in of[change]], most=4)}."
        )
    if of[Change.IMPROVEMENT]:
        opening = "Improvement" if change is Change.IMPROVEMENT else "Improved"
        parts.append(
            f"{opening}: {list_names([_describe_change(difference) for difference in of[Change.IMPROVEMENT]], most=4)}."
        )
    if change is Change.SAME:
        parts.append(f"No difference beyond {_margins(differences)}.")
    elif of[Change.SAME]:
        count = len(of[Change.SAME])
        parts.append(f"{count} of {len(differences)} figures do not differ beyond their margin.")
    if of[Change.INSUFFICIENT] or not differences:
        parts.append(_insufficient_summing(of[Change.INSUFFICIENT], len(differences), block_s))
    return " ".join(parts)


def _describe_change(difference: Difference) -> str:
    """Return `p99 of gunicorn · gthread +21 % under open-300`."""
    if difference.interval is None:
        return f"{difference.called} under {difference.load} ({difference.reason})"
    return f"{difference.metric} of {difference.called} {change_of(difference)} under {difference.load}"


def change_of(difference: Difference) -> str:
    """Return by how much after differs from before: `+21 %`; of failures in points of the requests."""
    if difference.interval is None:
        return ""
    if difference.metric == "errors":
        return f"{_with_sign(difference.interval.mid * 100, 2)} points"
    change = difference.interval.mid - 1
    return f"{_with_sign(change * 100, 0 if abs(change) >= 0.0995 else 1)} %"


def _with_sign(value: float, places: int) -> str:
    text = thousands(value, places)
    return text if text.startswith("−") else f"+{text}"


def _margins(differences: Sequence[Difference]) -> str:
    """Return `5 % (p50 10 %, p99 30 %)`: the least margin, and those that are wider."""
    widest: dict[str, float] = {}
    for difference in differences:
        if difference.metric != "errors":
            widest[difference.metric] = max(widest.get(difference.metric, 0.0), difference.margin)
    if not widest:
        return "the margin of errors"
    least = min(widest.values())
    wider = [
        f"{metric} {percent(widest[metric])}" for metric in DIFF_METRICS if widest.get(metric, least) > least
    ]
    return percent(least) + (f" ({', '.join(wider)})" if wider else "")


def _insufficient_summing(found: Sequence[Difference], of: int, block_s: float) -> str:
    if not found:
        return "Insufficient data: nothing was measured on both sides."
    named = list_names(list(dict.fromkeys(difference.metric for difference in found)))
    opening = f"Insufficient data for {len(found)} of {of} figures ({named})"
    more = [difference.more_blocks for difference in found if difference.more_blocks is not None]
    if not more:
        return f"{opening}: {found[0].reason.rstrip('.')}."
    most, word = max(more), "block" if max(more) == 1 else "blocks"
    tell = f"{most} more {word} needed" + (f" ({duration(most * block_s)})" if block_s else "")
    rest = len(found) - len(more)
    return f"{opening}: {tell}{f'; for {rest} of them no number of blocks would decide' if rest else ''}."


def notes(differences: Sequence[Difference], sides: Sides) -> list[str]:
    """Return what a reader must know of all figures together."""
    tested = [difference for difference in differences if difference.chance is not None]
    found = []
    if tested and not sides.paired:
        found.append(DRIFT)
    unsure = [
        difference
        for difference in tested
        if difference.change is Change.INSUFFICIENT and (difference.chance or 0.0) < 0.05
    ]
    if unsure:
        verb = "looks" if len(unsure) == 1 else "look"
        found.append(
            f"{len(unsure)} of {len(tested)} figures {verb} different by {'its' if len(unsure) == 1 else 'their'} own "
            "interval; of so many looked at, one of twenty does by chance, so velodrome does not call that a change."
        )
    return found


# --- From both sides to the whole answer; needs no machine, no run and no clock.


@dataclass(frozen=True)
class DiffCriteria:
    """What a user sets over a diff."""

    margins: Mapping[str, float] = field(default_factory=dict)
    """By metric."""
    metrics: tuple[str, ...] = ()
    """Only these; empty: all. Fewer are settled sooner."""
    thresholds: tuple[Threshold, ...] = ()


EVERYTHING = DiffCriteria()


def diff(sides: Sides, criteria: DiffCriteria = EVERYTHING) -> Diff:
    """Return what changed between two sides."""
    found = [figure for pairing in sides.pairings for figure in figures(pairing, sides.paired, criteria)]
    without_figures = [figure for figure in found if isinstance(figure, Difference)]
    decided = decide(
        [figure for figure in found if isinstance(figure, Found)], criteria.margins, sides.looked_at
    )
    every = sorted((*(decision.difference for decision in decided), *without_figures), key=_place)
    change = overall(every)
    return Diff(
        before=sides.before,
        after=sides.after,
        paired=sides.paired,
        change=change,
        sentence=answer_sentence(change, every, sides.block_s),
        differences=tuple(every),
        gates=gates(criteria.thresholds, decided, without_figures, sides.looked_at),
        set_aside=sides.set_aside,
        notes=(*notes(every, sides), *sides.notes),
        environment=sides.environment,
        block_s=sides.block_s,
    )


def _place(difference: Difference) -> tuple[str, str, str, int]:
    return (
        difference.question,
        difference.contestant,
        difference.load,
        list(DIFF_METRICS).index(difference.metric),
    )


def figures(pairing: Pairing, paired: bool, criteria: DiffCriteria) -> Iterator[Found | Difference]:
    """Yield the figures of one cell under one load, and the differences that have none."""
    if any(pairing.broken):
        yield _by_failure(pairing)
        return
    named = {*criteria.metrics, *(limit.metric for limit in criteria.thresholds)}
    for metric in metrics_shown(pairing.before.question, pairing.load):
        if criteria.metrics and metric not in named:
            continue
        figure: Compared | Failing | Missing
        if metric == "errors":
            figure = failing(pairing.before, pairing.after, pairing.load)
        else:
            figure = compare_metric(metric, pairing.before, pairing.after, pairing.load, paired)
        if metric not in named and _no_news(metric, figure):
            continue
        blank = _blank(pairing, metric)
        if isinstance(figure, Missing):
            yield replace(blank, reason=figure.reason)
        else:
            yield Found(_with_values(blank, figure), figure)


def _no_news(metric: str, figure: Compared | Failing | Missing) -> bool:
    """Whether nobody misses a figure that was not requested: no request failed, or too few were made for p99.9."""
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


# --- What a user sets over a diff, from the texts they wrote.


def criteria(thresholds: Sequence[str], margins: Sequence[str], metrics: Sequence[str]) -> DiffCriteria:
    """Return it. Raises ThresholdError."""
    for name in metrics:
        if name not in DIFF_METRICS:
            raise ThresholdError(name, f"it is not compared; these are: {', '.join(DIFF_METRICS)}")
    return DiffCriteria(
        margins=read_margins(margins),
        metrics=tuple(metrics),
        thresholds=tuple(map(threshold, thresholds)),
    )
