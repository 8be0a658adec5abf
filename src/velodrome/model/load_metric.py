"""What can be said of one load in a condition, by name: `p99`, `sent.p99.9`, `connect.max`, `errors`, `rate`.

A name is a statistic (`mean`, `max`, any percentile from `p1` on) of a span of time, which stands before it with a
point and is `due` where none is given; or it is one of the counts.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from velodrome.model.errors import UnknownLoadMetricError
from velodrome.model.measurement import OUTCOMES
from velodrome.model.metric import Unit

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

COUNTED: Mapping[str, tuple[Unit, str]] = {
    "rate": (Unit.RATE, "right answers a second"),
    "errors": (Unit.SHARE, "requests without a right answer"),
    **{
        name: (Unit.SHARE, f"requests that ended in {name.replace('_', ' ')}")
        for name in OUTCOMES
        if name != "ok"
    },
    "requests": (Unit.COUNT, "requests of the measured span"),
    "in_flight": (Unit.COUNT, "requests in flight, averaged over the span"),
    "cpu": (Unit.SHARE, "the generator's CPU time over that its threads could have had"),
}
"""Metrics that are no span of time: unit and meaning. Of a share, a bare number is the count it is a share of."""

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
        return LoadMetric(name, COUNTED[name][0], statistic=name)
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
    """Yield the names that are offered to somebody who mistyped one."""
    yield from COUNTED
    yield from _USUAL
    yield from (f"{span}.{statistic}" for span in SPANS for statistic in _USUAL)
