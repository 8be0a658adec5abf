"""Reads a condition from text.

    p99 > 50ms
    errors > 0.1% or (sent.p99.9 >= 1s and rate < 950/s)

    condition  = all { "or" all }
    all        = one { "and" one }
    one        = "(" condition ")" | metric relation quantity
    relation   = ">" | ">=" | "<" | "<="
    quantity   = number [ "us" | "ms" | "s" | "min" | "%" | "/s" ]

A time needs its unit. A share is given in percent; without a sign the number is a count (`errors > 5`).
"""

import re
from dataclasses import dataclass

from velodrome.model.condition import Comparison, Condition, Every, Relation, Some
from velodrome.model.errors import ConditionError
from velodrome.model.load_metric import LoadMetric, load_metric
from velodrome.model.metric import Unit

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
    """Return the condition that `text` tells.

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
        parts = [self._one()]
        while self._follows("and"):
            parts.append(self._one())
        return parts[0] if len(parts) == 1 else Every(tuple(parts))

    def _one(self) -> Condition:
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
