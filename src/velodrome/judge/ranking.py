"""Ranks of one question: a rank is one more than the number of those clearly better; equals are ties."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from velodrome.judge.comparing import Comparison, Pair, Sample

MARGIN = 0.03
"""A lead below this is no lead, however sure: a server differs from itself by as much between blocks."""
SETTLED = 0.05
"""Two are called equal when no lead above this can hide in their interval; else it cannot be told."""


@dataclass(frozen=True)
class Ranking:
    """All contestants with valid blocks, the best estimate first."""

    comparison: Comparison
    order: tuple[str, ...]
    ranks: Mapping[str, int]
    to_best: Mapping[str, Pair]
    """Each one's value over that of `order[0]`; without those that share no block with it."""

    @property
    def first(self) -> tuple[str, ...]:
        """Everybody who is not clearly worse than anybody."""
        return tuple(label for label in self.order if self.ranks[label] == 1)


def rank(samples: Sequence[Sample]) -> Ranking | None:
    """Rank by value, more being better; who has none is last. None when nobody has any."""
    answered = [sample for sample in samples if sample.values]
    if not answered:
        return None
    comparison = Comparison(answered)
    middle = {sample.label: comparison.alone(sample.label).mid for sample in answered}
    order = sorted(middle, key=lambda label: (-middle[label], label))
    ranks = {
        label: 1 + sum(_clearly_better(comparison, other, label) for other in order if other != label)
        for label in order
    }
    order.sort(key=lambda label: ranks[label])
    pairs = {label: comparison.pair(label, order[0]) for label in order[1:]}
    silent = sorted(sample.label for sample in samples if not sample.values)
    ranks |= dict.fromkeys(silent, 1 + len(order))
    return Ranking(
        comparison, (*order, *silent), ranks, {label: pair for label, pair in pairs.items() if pair}
    )


def equal(pair: Pair) -> bool:
    """Return whether no difference worth naming can hide in the interval (two one-sided tests)."""
    return pair.ratio.low > 1 - SETTLED and pair.ratio.high < 1 + SETTLED


def _clearly_better(comparison: Comparison, label: str, than: str) -> bool:
    pair = comparison.pair(label, than)
    return pair is not None and pair.ratio.low > 1 and pair.ratio.mid > 1 + MARGIN
