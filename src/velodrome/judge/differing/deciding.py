"""From figures to answers: regression, improvement, no difference beyond the margin, or how many blocks more it takes.

A difference is a *regression* where it is surely on the worse side of equality, all figures of the diff considered, and
beyond the margin by its estimate. It is *none* where its whole interval lies within the margin (two one-sided tests:
Schuirmann, Journal of Pharmacokinetics and Biopharmaceutics 15, 1987). All else is insufficient data.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from velodrome.judge.confidence import CONFIDENCE
from velodrome.judge.differing.estimating import Estimate, Restlessness, estimate
from velodrome.judge.differing.failing import Failing
from velodrome.judge.differing.family import holm
from velodrome.judge.differing.figures import Compared
from velodrome.judge.settling import MOST_BLOCKS
from velodrome.model.difference import DIFF_METRICS, Change, Difference
from velodrome.model.interval import Interval

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


def decide(found: Sequence[Found], margins: Mapping[str, float], looks: int = 1) -> list[Decided]:
    """Return what became of every figure. `margins` are those that the user set, by metric.

    `looks` is how often this race was looked at, this time included (`looks`).
    """
    machine = Restlessness.of([one.figure.two for one in found if isinstance(one.figure, Compared)])
    likely = [_likely(one.figure, machine) for one in found]
    in_all = [min(1.0, chance * looks) for chance in holm([one.chance() for one in likely])]
    return [
        _decided(one, sure, chance, _margin(one, margins), len(found) * looks)
        for one, sure, chance in zip(found, likely, in_all, strict=True)
    ]


def _likely(figure: Compared | Failing, machine: Restlessness) -> Estimate | Failing:
    return estimate(figure.two, machine, figure.bundle) if isinstance(figure, Compared) else figure


def _margin(one: Found, margins: Mapping[str, float]) -> float:
    """Return from where on a difference counts: as asked, or that of the metric, or the least that makes sense."""
    metric = one.difference.metric
    return margins.get(metric) or max(DIFF_METRICS[metric].margin, min(one.least, WIDEST))


def _decided(one: Found, likely: Estimate | Failing, in_all: float, margin: float, family: int) -> Decided:
    share = worse(one.difference.metric, likely.share)
    known = replace(
        one.difference,
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


def _insufficient(known: Difference, likely: Estimate | Failing, share: Interval, family: int) -> Difference:
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
        return "too few requests failed, or were asked, to tell it from chance; load longer"
    if not likely.enough:
        return "five blocks at least must be valid, of both sides together"
    if isinstance(likely, Estimate) and likely.drift:
        return (
            "two runs that were not interleaved cannot tell it, however long: the machine drifts between them"
        )
    if abs(share - bound) < bound / 2:
        return f"it is so near to {bound * 100:.3g} % that even {MOST_BLOCKS} blocks would not tell"
    return f"it varies so much that even {MOST_BLOCKS} blocks would not tell; load longer, or allow it more"
