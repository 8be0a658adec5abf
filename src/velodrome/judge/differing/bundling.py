"""Percentiles of blocks: where a block has too few requests beyond one, blocks are taken together until they have."""

import math
from collections.abc import Iterable, Mapping
from statistics import median

from velodrome.judge.histograms import Histogram, merge, needed


def size_of(histograms: Iterable[Histogram], percentile: float) -> int:
    """Return how many blocks have enough requests together; 0: not even all of them."""
    counts = [one.total for one in histograms]
    if not counts or sum(counts) < needed(percentile):
        return 0
    return max(1, math.ceil(needed(percentile) / max(median(counts), 1)))


def values(blocks: Mapping[int, Histogram], size: int, percentile: float) -> dict[int, float]:
    """Return a percentile of each bundle of so many blocks; what remains at the end is part of the last."""
    order = sorted(blocks)
    starts = range(0, max(len(order) - size + 1, 0), size)
    bundles = [order[start : start + size] for start in starts]
    if bundles:
        bundles[-1] = order[starts[-1] :]
    found = {}
    for bundle in bundles:
        value = merge(blocks[block] for block in bundle).told_ms(percentile)
        if value:
            found[bundle[0]] = value
    return found
