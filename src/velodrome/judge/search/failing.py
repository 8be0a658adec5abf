"""How many requests may fail where no condition says so, and whether as many are answered wrongly at any rate.

What is answered wrongly when one asks after the other is no matter of how much is asked: items of a log that are gone,
one answer in twenty that is an error of the app's own. Then no rate holds, and looking for one would be in vain.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from statistics import NormalDist

from velodrome.judge.load_figures import GIVEN_UP
from velodrome.model import quantity
from velodrome.model.condition import Condition, comparisons
from velodrome.model.measurement import OUTCOMES

FAILING = 0.01
"""Without a condition on errors a rate does not hold if more requests fail."""
SEVERAL = 3
"""So many wrong answers at least, before they are said to be no accident."""
ALONE_S = 0.7
"""How long one connection asks, to show what a request takes when nobody is before it."""
ENOUGH, ENOUGH_S = 150, 8.0
"""Requests one after the other that show how much is answered wrongly at any rate, and how long they may take."""
_ROUND = (0.02, 0.05, 0.1, 0.2, 0.5, 0.9)
"""Limits that are offered: the first with room above what is wrong."""
_ROOM = 1.5


@dataclass(frozen=True)
class OneByOne:
    """What became of requests that were asked one after the other, so that none waited for another."""

    outcomes: Mapping[str, int] = field(default_factory=dict)

    def and_of(self, outcomes: Mapping[str, int]) -> "OneByOne":
        """Return both together."""
        every = (*self.outcomes, *outcomes)
        return OneByOne({kind: self.outcomes.get(kind, 0) + outcomes.get(kind, 0) for kind in every})

    @property
    def answered(self) -> Mapping[str, int]:
        """Those that came to an end by themselves: how many ended how."""
        return {kind: count for kind, count in self.outcomes.items() if kind not in GIVEN_UP}


NOBODY_ASKED = OneByOne()


def share_failed(outcomes: Mapping[str, int], conditions: Iterable[Condition]) -> float:
    """Return which share of requests failed in a way that no condition names.

    A condition on `errors` names every way, one on `bad_status` only that.
    """
    named = {one.metric.statistic for condition in conditions for one in comparisons(condition)}
    if "errors" in named:
        return 0.0
    judged = named.intersection(OUTCOMES) | {"ok"}
    failed = sum(count for kind, count in outcomes.items() if kind not in judged)
    return failed / max(sum(outcomes.values()), 1)


def enough_s(alone_ms: float, least_s: float) -> float:
    """Return how long to ask one after the other, seconds, until it shows what is wrong at any rate."""
    return min(max(ENOUGH * alone_ms / 1000, least_s), ENOUGH_S)


def in_doubt(alone: OneByOne, conditions: Iterable[Condition]) -> bool:
    """Whether more is answered wrongly than may be, and too little was asked to say that it is so at any rate."""
    return share_failed(alone.answered, conditions) > FAILING and not wrong_anyway(alone, conditions)


def wrong_anyway(alone: OneByOne, conditions: Iterable[Condition], say: str = "errors < {limit}") -> str:
    """Return which share of answers is wrong at any rate, and what to do; empty: too few, or it cannot be told.

    `say` is how a condition is said there that allows so many.
    """
    asked = sum(alone.answered.values())
    share = share_failed(alone.answered, conditions)
    if share * asked < SEVERAL - 0.5 or _at_least(share, asked) <= FAILING:
        return ""
    limit = next((one for one in _ROUND if one >= _ROOM * share), 1.0)
    said = say.format(limit=f"{limit * 100:g}%")
    return (
        f"{quantity.percent(share)} of the answers are wrong at any rate: say {said} or correct the requests"
    )


def _at_least(share: float, of: int) -> float:
    """Return the lower end of Wilson's interval of a share (E. B. Wilson, JASA 22, 1927), 95 %."""
    z = NormalDist().inv_cdf(0.975)
    middle = share + z * z / (2 * of)
    half = z * math.sqrt(share * (1 - share) / of + z * z / (4 * of * of))
    return (middle - half) / (1 + z * z / of)
