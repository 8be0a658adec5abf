"""Conditions on what was measured: read from text, decided, and put in words; bounds and thresholds.

A condition such as `p99 > 50ms or errors > 0.1%` has three truth values (Kleene, «Introduction to Metamathematics»,
1952, § 64): it holds, it does not, or it is undecided, because a figure it rests on was not measured. `unknown or
true` is true, `unknown and false` is false; all else with an unknown in it is unknown, and so never passes for a no.
"""

import operator
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from velodrome.model import quantity
from velodrome.model.errors import (
    ConditionError,
    NeverMeasuredError,
    SloError,
    ThresholdError,
    UnknownLoadMetricError,
)
from velodrome.model.measurement import OUTCOMES
from velodrome.model.quantity import Unit, in_unit


@dataclass(frozen=True)
class Metric:
    """A number that can be named."""

    about: str
    unit: Unit
    more_is_better: bool = False


METRICS: Mapping[str, Metric] = {
    "throughput_rps": Metric("correct responses per second", Unit.RATE, more_is_better=True),
    "answered_rps": Metric(
        "correct responses per second, whatever became of the other requests", Unit.RATE, more_is_better=True
    ),
    "sustained_rps": Metric(
        "highest rate of the question's open loops that still holds", Unit.RATE, more_is_better=True
    ),
    "ceiling_rps": Metric("what Little's law allows", Unit.RATE),
    "ceiling_share": Metric("correct responses per second, divided by what Little's law allows", Unit.SHARE),
    "mean_ms": Metric("mean latency from due", Unit.MILLISECONDS),
    "p50_ms": Metric("latency from due, half of the requests", Unit.MILLISECONDS),
    "p90_ms": Metric("latency from due, 90 %", Unit.MILLISECONDS),
    "p99_ms": Metric("latency from due, 99 %", Unit.MILLISECONDS),
    "span_s": Metric("how long the load took", Unit.SECONDS),
    "mean_service_ms": Metric("mean latency from sent", Unit.MILLISECONDS),
    "p50_service_ms": Metric("latency from sent, half of the requests", Unit.MILLISECONDS),
    "p75_service_ms": Metric("latency from sent, 75 %", Unit.MILLISECONDS),
    "p90_service_ms": Metric("latency from sent, 90 %", Unit.MILLISECONDS),
    "p99_service_ms": Metric("latency from sent, 99 %", Unit.MILLISECONDS),
    "p50_told_ms": Metric("latency as the driver reports it, half of the requests", Unit.MILLISECONDS),
    "p99_told_ms": Metric("latency as the driver reports it, 99 %", Unit.MILLISECONDS),
    "min_service_ms": Metric("latency from sent, the fastest", Unit.MILLISECONDS),
    "max_service_ms": Metric("latency from sent, the slowest", Unit.MILLISECONDS),
    "stdev_service_ms": Metric("latency from sent, its standard deviation", Unit.MILLISECONDS),
    "cpu_us": Metric("server CPU per correct response", Unit.MICROSECONDS),
    "cpu_share": Metric("CPUs the server kept busy", Unit.COUNT),
    "memory_bytes": Metric("highest memory of the server", Unit.BYTES),
    "error_share": Metric("requests without a correct response", Unit.SHARE),
    "reset_share": Metric("requests whose connection was reset", Unit.SHARE),
    "refused_share": Metric("requests whose connection was refused", Unit.SHARE),
    "timeout_share": Metric("requests that timed out", Unit.SHARE),
    "failed_share": Metric("blocks in which nothing could be measured", Unit.SHARE),
    "listen_overflows": Metric("connections turned away by a full listen queue, per block", Unit.COUNT),
    "listen_peak": Metric("most connections in the listen queue", Unit.COUNT),
    "idle_share": Metric("samples of a profile in which the server waits", Unit.SHARE),
    "depth_mean": Metric("frames of a sample of a profile that is not idle", Unit.COUNT),
    "depth_max": Metric("most frames of a sample of a profile", Unit.COUNT),
}
"""By name. Facts of experiments are named as the experiment names them, and are not in here."""


@dataclass(frozen=True)
class DiffMetric:
    """A figure that a diff compares, and from where on a difference of it counts."""

    metric: Metric
    margin: float
    """As a share; of `errors` as a share of the requests."""
    percentile: float | None = None
    """Of latency, merged over blocks through histograms."""
    taken_as: str = ""
    """Which of `METRICS` gives it block by block; of a percentile, where the generator has no histograms."""

    @property
    def unit(self) -> Unit:
        """The unit of its values."""
        return self.metric.unit

    @property
    def more_is_better(self) -> bool:
        """Whether it becomes worse with less."""
        return self.metric.more_is_better

    @property
    def worse(self) -> str:
        """The sign with which it becomes worse."""
        return "-" if self.more_is_better else "+"


def _of(name: str, margin: float) -> DiffMetric:
    return DiffMetric(METRICS[name], margin, taken_as=name)


def _latency(percentile: float, margin: float) -> DiffMetric:
    about = "latency, half of the requests" if percentile == 50 else f"latency, {percentile:g} %"
    taken_as = f"p{percentile:g}_told_ms"
    return DiffMetric(
        Metric(about, Unit.MILLISECONDS), margin, percentile, taken_as if taken_as in METRICS else ""
    )


DIFF_METRICS: Mapping[str, DiffMetric] = {
    "throughput": _of("throughput_rps", 0.05),
    "p50": _latency(50, 0.1),
    "p90": _latency(90, 0.2),
    "p99": _latency(99, 0.3),
    "p99.9": _latency(99.9, 0.5),
    "cpu": _of("cpu_us", 0.05),
    "memory": _of("memory_bytes", 0.05),
    "errors": _of("error_share", 0.005),
}
"""What `velodrome diff` compares, by the name that thresholds, margins and `--metrics` use."""

_SUFFIXES = {
    "_rps": Unit.RATE,
    "_ms": Unit.MILLISECONDS,
    "_s": Unit.SECONDS,
    "_us": Unit.MICROSECONDS,
    "_bytes": Unit.BYTES,
    "_share": Unit.SHARE,
}


def unit_of(metric: str) -> Unit:
    """Return the unit of a metric or, by the end of its name, of a fact: `thread_us`, `mismatch_share.uvicorn`."""
    if metric in METRICS:
        return METRICS[metric].unit
    ends = (unit for end, unit in _SUFFIXES.items() if any(part.endswith(end) for part in metric.split(".")))
    return next(ends, Unit.COUNT)


# The metrics of a load by name: `p99`, `sent.p99.9`, `connect.max`, `errors`, `rate`.
#
# A name is a statistic (`mean`, `max`, any percentile from `p1` on) of a span of time, which stands before it with a
# point and is `due` where none is given; or it is one of the counts.

SPANS: Mapping[str, str] = {
    "due": "from when a request was due to the end of its answer",
    "sent": "from when a request was sent to the end of its answer",
    "lag": "from when a request was due to when it was sent, where only the generator delayed it",
    "connect": "until a connection stood",
    "tls": "from there until its TLS handshake was done",
    "first_byte": "from when a request was sent to the first byte of its answer",
    "last_byte": "from the first byte of an answer to its last",
    "first": "from when a request was due to the first message of its answer, of answers that have several",
    "delivery": "from when a message to a room was due until a member had it",
}
"""What a statistic can be of."""
PHASES = ("connect", "tls", "first_byte", "last_byte")
"""Spans that only `velodrome load` reports: the facts of a trial do not have them."""

COUNTED: Mapping[str, Metric] = {
    "rate": METRICS["throughput_rps"],
    "errors": METRICS["error_share"],
    **{
        name: Metric(f"requests that ended in {name.replace('_', ' ')}", Unit.SHARE)
        for name in OUTCOMES
        if name != "ok"
    },
    "requests": Metric("requests of the measured span", Unit.COUNT),
    "in_flight": Metric("requests in flight, averaged over the span", Unit.COUNT),
    "cpu": Metric("the generator's CPU time over that its threads could have had", Unit.SHARE),
}
"""Metrics that are no span of time. Of a share, a bare number is the count it is a share of."""

_STATISTIC = re.compile(r"mean|max|p(?P<percentile>[1-9]\d?(?:\.\d{1,3})?)", re.ASCII)
_USUAL = ("mean", "p50", "p75", "p90", "p95", "p99", "p99.9", "p99.99", "max")


@dataclass(frozen=True)
class LoadMetric:
    """A number that a load gives."""

    name: str
    """As it was written."""
    unit: Unit
    span: str = ""
    """One of `SPANS`; empty: one of `COUNTED`."""
    percentile: float | None = None
    """Of a span; None: `statistic` says what."""
    statistic: str = ""
    """`mean` or `max` of a span, or the name of what is counted."""


def load_metric(name: str) -> LoadMetric:
    """Return the metric of that name. Raises UnknownLoadMetricError, with the nearest names."""
    if name in COUNTED:
        return LoadMetric(name, COUNTED[name].unit, statistic=name)
    span, point, statistic = name.partition(".")
    if not point or span not in SPANS:
        span, statistic = "due", name
    match = _STATISTIC.fullmatch(statistic)
    if match is None:
        raise UnknownLoadMetricError(name, tuple(_names()))
    share = match["percentile"]
    if share is None:
        return LoadMetric(name, Unit.MILLISECONDS, span, statistic=statistic)
    return LoadMetric(name, Unit.MILLISECONDS, span, percentile=float(share))


def _names() -> Iterator[str]:
    """Yield the names that are offered to somebody who mistyped a name."""
    yield from COUNTED
    yield from _USUAL
    yield from (f"{span}.{statistic}" for span in SPANS for statistic in _USUAL)


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
    """Set where `value` covers only a part, or nothing, and with the rest there is no bound to it: requests that never
    got an answer have no latency, a target that is gone gives no more answers."""
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
        if figure.beyond is not None and not figure.missing:
            return self.relation in _HOLDS_BEYOND[figure.beyond]
        if value is None:
            return None
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


def write_condition(condition: Condition) -> str:
    """Return a condition as text that reads back as the same condition."""
    if isinstance(condition, Comparison):
        return condition.text
    if isinstance(condition, Some):
        return " or ".join(map(write_condition, condition.parts))
    return " and ".join(
        f"({write_condition(part)})" if isinstance(part, Some) else write_condition(part)
        for part in condition.parts
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


def read_stored(text: str) -> Condition:
    """Return a condition of a run that is stored: an earlier version may have taken it with a share above 100 %."""
    return _Reader(text, most_share=None).whole()


def read_slo(text: str, *, of_app: bool = False) -> Condition:
    """Return the condition that `text` states, as one that must hold: fast answers, few failures, a high rate.

    Raises as `read` does, SloError for one that wants the opposite, such as `p99 > 200ms`, and NeverMeasuredError for a
    figure that a server which velodrome starts never has, or that with `of_app` only a recipe has.
    """
    try:
        found = read(text)
    except ConditionError as error:
        raise ConditionError(text, error.at, error.problem, holds=True) from None
    lacking = (*PHASES, "delivery") if of_app else PHASES
    for one in comparisons(found):
        if one.metric.span in lacking:
            spans = [span for span in SPANS if span not in lacking and span != "due"]
            raise NeverMeasuredError(text, one.metric.name, spans, tuple(COUNTED))
        high = one.metric.unit is Unit.RATE
        if one.metric.unit is not Unit.COUNT and high != (
            one.relation in (Relation.ABOVE, Relation.AT_LEAST)
        ):
            wanted = "at least" if high else "at most"
            raise SloError(text, one.text, wanted)
    return found


class _Reader:
    """Descends through the grammar above, one method a rule."""

    def __init__(self, text: str, most_share: float | None = 1.0) -> None:
        """`most_share`: a larger share is refused; None: none is."""
        self._text, self._most_share = text, most_share
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
                self._text, word.at, f"'{word.text}' is no quantity: {metric.name} {_wanted(metric)}"
            )
        number, unit = float(match["number"].replace("_", "")), match["unit"]
        if metric.unit is Unit.MILLISECONDS and unit in _MILLISECONDS:
            return number * _MILLISECONDS[unit], False
        if metric.unit is Unit.SHARE and unit == "%":
            if self._most_share is not None and number / 100 > self._most_share:
                raise ConditionError(self._text, word.at, f"{metric.name} is a share, and never above 100%")
            return number / 100, False
        if metric.unit is Unit.SHARE and not unit and number.is_integer() and metric.name != "cpu":
            return number, True
        if (metric.unit is Unit.RATE and unit in {"/s", ""}) or (metric.unit is Unit.COUNT and not unit):
            return number, False
        raise ConditionError(self._text, word.at, f"{metric.name} {_wanted(metric)}")


def _wanted(metric: LoadMetric) -> str:
    """Return how a limit of a metric is written, to follow its name."""
    if metric.name == "cpu":
        return "is a share of the CPU time that there is: write it in percent, as in 80%"
    return _WANTED[metric.unit]


# --- Comparisons as sentences: `p99 was 61.3 ms, and the limit is 50 ms`.


def comparison_sentence(compared: Compared) -> str:
    """Return figure and limit, or why there is no figure; a sentence without its end."""
    comparison, figure = compared.comparison, compared.figure
    name = comparison.metric.name
    limit = _quantity(comparison.limit, compared)
    if figure.value is None and figure.beyond is not None:
        return f"{name} counts as {figure.beyond}, and the limit is {limit}: {figure.but}"
    if figure.value is None:
        return f"{name} was not measured: {figure.missing}"
    at_least = "at least " if figure.lower_bound else ""
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
        return f"{quantity.thousands(round(value))} request{'' if round(value) == 1 else 's'}"
    match compared.comparison.metric.unit:
        case Unit.MILLISECONDS:
            return f"{quantity.significant(value, 4)} ms"
        case Unit.SHARE:
            return f"{quantity.significant(value * 100)} %"
        case Unit.RATE:
            return f"{quantity.significant(value, 4)}/s"
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
    _check_metric(text, metric)
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
            _check_metric(text, metric)
            own[metric] = _share(text, match["percent"], metric)
    return found | own


def _check_metric(text: str, metric: str) -> None:
    if metric not in DIFF_METRICS:
        raise ThresholdError(text, f"'{metric}' is not compared; these are: {', '.join(DIFF_METRICS)}")


def _share(text: str, percent: str, metric: str) -> float:
    share = float(percent) / 100
    if share <= 0:
        raise ThresholdError(text, "0 % is less than anything measured can differ by: give more")
    if share >= 1 and metric in {"throughput", "errors"}:
        raise ThresholdError(text, f"{metric} cannot become worse by {percent} %")
    return share
