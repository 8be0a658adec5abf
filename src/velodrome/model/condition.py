"""A condition on what a load gave, such as `p99 > 50ms or errors > 0.1%`, and what becomes of it.

Its truth has three values (Kleene, «Introduction to Metamathematics», 1952, § 64): it holds, it does not, or it cannot
be told, because a figure it rests on was not measured. `unknown or true` is true, `unknown and false` is false; all
else with an unknown in it is unknown, and so never passes for a no.

`model/condition_text.py` reads one from text.
"""

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from velodrome.model.load_metric import LoadMetric


class Relation(StrEnum):
    """How a figure is compared with a limit."""

    ABOVE = ">"
    AT_LEAST = ">="
    BELOW = "<"
    AT_MOST = "<="


_COMPARE: Mapping[Relation, Callable[[float, float], bool]] = {
    Relation.ABOVE: operator.gt,
    Relation.AT_LEAST: operator.ge,
    Relation.BELOW: operator.lt,
    Relation.AT_MOST: operator.le,
}


class Beyond(StrEnum):
    """Where the true value lies when it is out of all bounds."""

    ABOVE = "above every limit"
    BELOW = "below every limit"


_HOLDS_BEYOND: Mapping[Beyond, set[Relation]] = {
    Beyond.ABOVE: {Relation.ABOVE, Relation.AT_LEAST},
    Beyond.BELOW: {Relation.BELOW, Relation.AT_MOST},
}
_CERTAIN_WHEN_EQUAL = {Relation.AT_LEAST, Relation.BELOW}
"""What is at least the limit satisfies the one and cannot satisfy the other."""


@dataclass(frozen=True)
class Figure:
    """What a load says of a metric."""

    value: float | None
    """In the metric's own unit: milliseconds, a share of one, a count; None: it was not measured."""
    missing: str = ""
    """Why it was not measured, and what to do."""
    lower_bound: bool = False
    """Whether the true value may be higher: requests were given up, and count at the age they had."""
    beyond: Beyond | None = None
    """Set where `value` tells only of a part, and with the rest there is no bound to it: requests that never got an
    answer have no latency, a target that is gone gives no more answers."""
    but: str = ""
    """Why that is so, to follow what was found."""


Figures = Callable[[LoadMetric, bool], Figure]
"""Looks a metric up; the second says whether of a share the count is wanted."""


@dataclass(frozen=True)
class Comparison:
    """One figure against one limit."""

    metric: LoadMetric
    relation: Relation
    limit: float
    """In the metric's own unit."""
    text: str
    """As it was written."""
    counted: bool = False
    """Whether the limit is a count of something that else is a share."""

    def holds(self, figure: Figure) -> bool | None:
        """Return whether it holds, None where it cannot be told."""
        value = figure.value
        if value is None:
            return None
        if figure.beyond is not None:
            return self.relation in _HOLDS_BEYOND[figure.beyond]
        certain = value > self.limit or (value == self.limit and self.relation in _CERTAIN_WHEN_EQUAL)
        if figure.lower_bound and not certain:
            return None
        return _COMPARE[self.relation](value, self.limit)


@dataclass(frozen=True)
class Every:
    """Holds where all its parts do: `and`."""

    parts: tuple["Condition", ...]


@dataclass(frozen=True)
class Some:
    """Holds where one of its parts does: `or`."""

    parts: tuple["Condition", ...]


Condition = Comparison | Every | Some


@dataclass(frozen=True)
class Compared:
    """A comparison with its figure."""

    comparison: Comparison
    figure: Figure
    holds: bool | None


@dataclass(frozen=True)
class Decided:
    """What became of a condition."""

    condition: Condition
    holds: bool | None
    """None: it cannot be told."""
    because: tuple[Compared, ...]
    """The comparisons that decide it."""


def decide(condition: Condition, figures: Figures) -> Decided:
    """Return whether a condition holds, and because of which figures."""
    if isinstance(condition, Comparison):
        figure = figures(condition.metric, condition.counted)
        holds = condition.holds(figure)
        return Decided(condition, holds, (Compared(condition, figure, holds),))
    parts = [decide(part, figures) for part in condition.parts]
    found = {part.holds for part in parts}
    decisive = isinstance(condition, Some)
    holds = decisive if decisive in found else None if None in found else not decisive
    because = tuple(one for part in parts if part.holds is holds for one in part.because)
    return Decided(condition, holds, because)


def comparisons(condition: Condition) -> tuple[Comparison, ...]:
    """Return every comparison in a condition."""
    if isinstance(condition, Comparison):
        return (condition,)
    return tuple(one for part in condition.parts for one in comparisons(part))


def written(condition: Condition) -> str:
    """Return a condition as text that reads back as the same condition."""
    if isinstance(condition, Comparison):
        return condition.text
    if isinstance(condition, Some):
        return " or ".join(map(written, condition.parts))
    return " and ".join(
        f"({written(part)})" if isinstance(part, Some) else written(part) for part in condition.parts
    )
