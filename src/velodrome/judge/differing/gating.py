"""Thresholds: whether a figure became worse by more than is allowed, in each cell that shows it.

One is broken where the difference is surely beyond it, all thresholds considered (Holm); it holds where the whole
interval stays within; else it cannot be told, and never passes by luck.
"""

import math
from collections.abc import Sequence

from velodrome.judge.differing.deciding import LEVEL, Decided, hopeless
from velodrome.judge.differing.family import holm
from velodrome.judge.words import sentence
from velodrome.model.difference import DIFF_METRICS, Change, Difference, Gate
from velodrome.model.threshold import Threshold


def gates(
    thresholds: Sequence[Threshold],
    decided: Sequence[Decided],
    untold: Sequence[Difference],
    looks: int = 1,
) -> tuple[Gate, ...]:
    """Return what became of every threshold, wherever its metric was looked at.

    `untold` are differences without figures: these cannot be told, unless they are clear without.
    """
    asked = [
        (threshold, one)
        for threshold in thresholds
        for one in decided
        if one.difference.metric == threshold.metric
    ]
    alone = [one.likely.chance(_share(threshold)) for threshold, one in asked]
    chances = [min(1.0, chance * looks) for chance in holm(alone)]
    found = [
        _gate(threshold, one, chance, len(asked) * looks)
        for (threshold, one), chance in zip(asked, chances, strict=True)
    ]
    found += [
        Gate(threshold, one, False if one.change is Change.REGRESSION else None, one.reason)
        for threshold in thresholds
        for one in untold
        if one.metric == threshold.metric
    ]
    return tuple(found)


def _share(threshold: Threshold) -> float:
    return -threshold.share if DIFF_METRICS[threshold.metric].more_is_better else threshold.share


def _gate(threshold: Threshold, one: Decided, chance: float, family: int) -> Gate:
    share, bound = one.worse, threshold.share
    if share.high < bound and one.likely.enough:
        return Gate(threshold, one.difference, True, "")
    if chance < LEVEL and share.low > bound and one.likely.enough:
        return Gate(threshold, one.difference, False, "")
    beyond = share.mid > bound
    distance = abs(math.log1p(max(share.mid, -0.99)) - math.log1p(bound))
    more = one.likely.more_blocks(distance, LEVEL / family if beyond else LEVEL)
    if more is None:
        return Gate(threshold, one.difference, None, sentence(hopeless(one.likely, share.mid, bound)))
    return Gate(threshold, one.difference, None, "", more)
