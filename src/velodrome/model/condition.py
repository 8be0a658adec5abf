"""Conditions on what was measured: read from text, decided, and put in words; bounds and thresholds.

A condition such as `p99 > 50ms or errors > 0.1%` has three truth values (Kleene, «Introduction to Metamathematics»,
1952, § 64): it holds, it does not, or it is undecided, because a figure it rests on was not measured. `unknown or
true` is true, `unknown and false` is false; all else with an unknown in it is unknown, and so never passes for a no.
"""

import operator
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum

from velodrome.model import quantity
from velodrome.model.errors import ConditionError, ThresholdError
from velodrome.model.metric import DIFF_METRICS, LoadMetric, load_metric
from velodrome.model.quantity import Unit, in_unit


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
"""A figure at or above the limit satisfies `>=` and cannot satisfy `<`."""


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
    """Set where `value` covers only a part, and with the rest there is no bound to it: requests that never got an
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
        """Return whether it holds, None where it is undecided."""
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
    """None: undecided."""
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
    because = tuple(compared for part in parts if part.holds is holds for compared in part.because)
    return Decided(condition, holds, because)


def comparisons(condition: Condition) -> tuple[Comparison, ...]:
    """Return every comparison in a condition."""
    if isinstance(condition, Comparison):
        return (condition,)
    return tuple(comparison for part in condition.parts for comparison in comparisons(part))


def written(condition: Condition) -> str:
    """Return a condition as text that reads back as the same condition."""
    if isinstance(condition, Comparison):
        return condition.text
    if isinstance(condition, Some):
        return " or ".join(map(written, condition.parts))
    return " and ".join(
        f"({written(part)})" if isinstance(part, Some) else written(part) for part in condition.parts
    )


# --- Parsing.
#
#     p99 > 50ms
#     errors > 0.1% or (sent.p99.9 >= 1s and rate < 950/s)
#
#     condition  = all { "or" all }
#     all        = term { "and" term }
#     term       = "(" condition ")" | metric relation quantity
#     relation   = ">" | ">=" | "<" | "<="
#     quantity   = number [ "us" | "ms" | "s" | "min" | "%" | "/s" ]
#
# A time needs its unit. A share is given in percent; without a sign the number is a count (`errors > 5`).

_WORD = re.compile(r"\s*(?:(?P<relation>[<>]=?|==?|!=)|(?P<bracket>[()])|(?P<word>[^\s()<>=!]+))", re.ASCII)
_QUANTITY = re.compile(r"(?P<number>\d[\d_]*(?:\.\d+)?|\.\d+)(?P<unit>us|µs|ms|s|min|%|/s|)")
_MILLISECONDS = {"us": 1e-3, "µs": 1e-3, "ms": 1.0, "s": 1e3, "min": 6e4}
_WANTED = {
    Unit.MILLISECONDS: "is a time: give it a unit, as in 50ms or 1.5s",
    Unit.SHARE: "is a share: write it in percent, as in 0.1%, or a whole number of requests",
    Unit.RATE: "is a rate: write 950/s",
    Unit.COUNT: "is a count: write a plain number",
}
_DEEPEST = 50


@dataclass(frozen=True)
class _Word:
    text: str
    at: int
    """Where it begins, counted from 0."""
    kind: str


def read(text: str) -> Condition:
    """Return the condition that `text` states.

    Raises ConditionError for text that is none, UnknownLoadMetricError for a metric that does not exist.
    """
    return _Reader(text).whole()


class _Reader:
    """Descends through the grammar above, one method a rule."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._words = self._split(text)
        self._next = 0
        self._depth = 0

    def _split(self, text: str) -> list[_Word]:
        found, at = [], 0
        while at < len(text.rstrip()):
            match = _WORD.match(text, at)
            # Between them the three kinds of word have every character but blanks.
            kind = (match and match.lastgroup) or ""
            if match is None or not kind:
                raise ConditionError(text, at, "this cannot be read")
            found.append(_Word(match[kind], match.start(kind), kind))
            at = match.end()
        return found

    def whole(self) -> Condition:
        found = self._any()
        if (word := self._peek()) is not None:
            raise ConditionError(
                self._text, word.at, f"'{word.text}' follows a whole condition: put and, or between"
            )
        return found

    def _peek(self) -> _Word | None:
        return self._words[self._next] if self._next < len(self._words) else None

    def _take(self, wanted: str) -> _Word:
        word = self._peek()
        if word is None:
            raise ConditionError(
                self._text, len(self._text.rstrip()), f"it ends where {wanted} should follow"
            )
        self._next += 1
        return word

    def _follows(self, word: str) -> bool:
        found = self._peek()
        if found is None or found.text.lower() != word:
            return False
        self._next += 1
        return True

    def _any(self) -> Condition:
        parts = [self._all()]
        while self._follows("or"):
            parts.append(self._all())
        return parts[0] if len(parts) == 1 else Some(tuple(parts))

    def _all(self) -> Condition:
        parts = [self._term()]
        while self._follows("and"):
            parts.append(self._term())
        return parts[0] if len(parts) == 1 else Every(tuple(parts))

    def _term(self) -> Condition:
        if self._follows("("):
            self._depth += 1
            if self._depth > _DEEPEST:
                raise ConditionError(self._text, 0, f"brackets are nested more than {_DEEPEST} deep")
            found = self._any()
            closing = self._take("')'")
            if closing.text != ")":
                raise ConditionError(self._text, closing.at, f"')' is missing before '{closing.text}'")
            self._depth -= 1
            return found
        return self._comparison()

    def _comparison(self) -> Comparison:
        name = self._take("a metric")
        if name.kind != "word" or name.text.lower() in {"and", "or"}:
            raise ConditionError(self._text, name.at, f"a metric is wanted here, not '{name.text}'")
        metric = load_metric(name.text)
        sign = self._take("a comparison")
        if sign.text not in set(Relation):
            raise ConditionError(self._text, sign.at, f"'{sign.text}' compares nothing: write >, >=, < or <=")
        quantity = self._take("a limit")
        limit, counted = self._limit(metric, quantity)
        text = f"{metric.name} {sign.text} {quantity.text}"
        return Comparison(metric, Relation(sign.text), limit, text, counted)

    def _limit(self, metric: LoadMetric, word: _Word) -> tuple[float, bool]:
        """Return a limit in the metric's own unit, and whether it is a count of what else is a share."""
        match = _QUANTITY.fullmatch(word.text)
        if match is None:
            raise ConditionError(
                self._text, word.at, f"'{word.text}' is no quantity: {metric.name} {_WANTED[metric.unit]}"
            )
        number, unit = float(match["number"].replace("_", "")), match["unit"]
        if metric.unit is Unit.MILLISECONDS and unit in _MILLISECONDS:
            return number * _MILLISECONDS[unit], False
        if metric.unit is Unit.SHARE and unit == "%":
            return number / 100, False
        if metric.unit is Unit.SHARE and not unit and number.is_integer() and metric.name != "cpu":
            return number, True
        if (metric.unit is Unit.RATE and unit in {"/s", ""}) or (metric.unit is Unit.COUNT and not unit):
            return number, False
        raise ConditionError(self._text, word.at, f"{metric.name} {_WANTED[metric.unit]}")


# --- Comparisons as sentences: `p99 was 61.3 ms, and the limit is 50 ms`.


def comparison_sentence(compared: Compared) -> str:
    """Return figure and limit, or why there is no figure; a sentence without its end."""
    comparison, figure = compared.comparison, compared.figure
    name = comparison.metric.name
    if figure.value is None:
        return f"{name} was not measured: {figure.missing}"
    at_least = "at least " if figure.lower_bound else ""
    limit = _quantity(comparison.limit, compared)
    found = f"{name} was {at_least}{_quantity(figure.value, compared)}, and the limit is {limit}"
    if figure.but:
        return f"{found}; but {figure.but}"
    if compared.holds is None:
        return (
            f"{found}; requests timed out before it: raise --timeout (--drain for those in flight at the end), "
            "or look at errors"
        )
    return found


def because(decided: Decided) -> str:
    """Return what decided a condition, all of it."""
    return "; ".join(map(comparison_sentence, decided.because))


def _quantity(value: float, compared: Compared) -> str:
    if compared.comparison.counted:
        return f"{quantity.grouped(round(value))} request{'' if round(value) == 1 else 's'}"
    match compared.comparison.metric.unit:
        case Unit.MILLISECONDS:
            return f"{quantity.short(float(f'{value:.4g}'))} ms"
        case Unit.SHARE:
            return f"{quantity.short(float(f'{value * 100:.3g}'))} %"
        case Unit.RATE:
            return f"{quantity.short(float(f'{value:.4g}'))}/s"
        case _:
            return quantity.short(float(f"{value:.6g}"))


# --- Limits: `ms(50)`, `percent(0.1)`.


@dataclass(frozen=True)
class Bound:
    """In the unit that figures of that kind are kept in: milliseconds, microseconds of CPU, a share, bytes."""

    value: float
    unit: Unit

    def __repr__(self) -> str:
        return in_unit(self.value, self.unit)


def ms(value: float) -> Bound:
    """Return milliseconds."""
    return Bound(value, Unit.MILLISECONDS)


def seconds(value: float) -> Bound:
    """Return seconds."""
    return Bound(value * 1000, Unit.MILLISECONDS)


def us(value: float) -> Bound:
    """Return microseconds: of latency, or of CPU for a request."""
    return Bound(value, Unit.MICROSECONDS)


def percent(value: float) -> Bound:
    """Return a share: of requests that failed."""
    return Bound(value / 100, Unit.SHARE)


def per_second(value: float) -> Bound:
    """Return a rate."""
    return Bound(value, Unit.RATE)


def mb(value: float) -> Bound:
    """Return decimal megabytes."""
    return Bound(value * 1e6, Unit.BYTES)


def within(bound: Bound | float, unit: Unit, name: str) -> float:
    """Return a bound in the unit of a figure. Raises TypeError for a bound of another kind."""
    if isinstance(bound, Bound):
        if bound.unit is unit:
            return bound.value
        if {bound.unit, unit} == {Unit.MILLISECONDS, Unit.MICROSECONDS}:
            return bound.value / 1000 if unit is Unit.MILLISECONDS else bound.value * 1000
    elif unit in {Unit.RATE, Unit.SHARE, Unit.COUNT} and isinstance(bound, int | float):
        return float(bound)
    raise TypeError(f"{name} is in {_WORDS[unit]}: compare it with {_WRITE[unit]}, not with {bound!r}")


_WORDS = {
    Unit.MILLISECONDS: "milliseconds",
    Unit.MICROSECONDS: "microseconds",
    Unit.RATE: "answers a second",
    Unit.SHARE: "shares of the requests",
    Unit.BYTES: "bytes",
}
_WRITE = {
    Unit.MILLISECONDS: "ms(50)",
    Unit.MICROSECONDS: "us(500)",
    Unit.RATE: "per_second(200)",
    Unit.SHARE: "percent(0.1)",
    Unit.BYTES: "mb(100)",
}


# --- Thresholds: `p99 +10%`, `throughput -5%`, `errors +0.1%`.

_FORM = re.compile(r"\s*(?P<metric>[a-z][a-z0-9.]*)\s*(?P<sign>[+-])?\s*(?P<percent>\d+(?:\.\d+)?)\s*%\s*")
_MARGIN = re.compile(r"\s*(?:(?P<metric>[a-z][a-z0-9.]*)\s*=\s*)?(?P<percent>\d+(?:\.\d+)?)\s*%\s*")


@dataclass(frozen=True)
class Threshold:
    """The metric may become worse by so much, and no more."""

    metric: str
    share: float
    """Above 0; of `errors` a share of the requests."""
    text: str
    """As it was written."""


def threshold(text: str) -> Threshold:
    """Read a threshold, of a metric that a diff compares. Raises ThresholdError."""
    match = _FORM.fullmatch(text)
    if match is None:
        raise ThresholdError(text, "write a metric and by how much it may become worse: 'p99 +10%'")
    metric, sign = match["metric"], match["sign"]
    _known(text, metric)
    worse = DIFF_METRICS[metric].worse
    if sign and sign != worse:
        raise ThresholdError(text, f"{metric} becomes worse with {worse}: write '{metric} {worse}10%'")
    return Threshold(metric, _share(text, match["percent"], metric), text.strip())


def margins(texts: Collection[str]) -> dict[str, float]:
    """Read margins: `5%` for all metrics but errors, `p99=20%` for one. Raises ThresholdError."""
    found: dict[str, float] = {}
    own: dict[str, float] = {}
    for text in texts:
        match = _MARGIN.fullmatch(text)
        if match is None:
            raise ThresholdError(text, "write a margin as 5%, or for one metric as p99=20%")
        metric = match["metric"]
        if metric is None:
            # Errors are shares of all requests: 5 % of them is no small difference.
            found |= {name: _share(text, match["percent"], name) for name in DIFF_METRICS if name != "errors"}
        else:
            _known(text, metric)
            own[metric] = _share(text, match["percent"], metric)
    return found | own


def _known(text: str, metric: str) -> None:
    if metric not in DIFF_METRICS:
        raise ThresholdError(text, f"'{metric}' is not compared; these are: {', '.join(DIFF_METRICS)}")


def _share(text: str, percent: str, metric: str) -> float:
    share = float(percent) / 100
    if share <= 0:
        raise ThresholdError(text, "0 % is less than anything measured can differ by: give more")
    if share >= 1 and metric in {"throughput", "errors"}:
        raise ThresholdError(text, f"{metric} cannot become worse by {percent} %")
    return share
