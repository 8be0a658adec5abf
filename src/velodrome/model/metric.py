"""What can be named of a measurement: the metrics of claims, of one cell, and those of conditions, of one load.

`judge/figures.py` takes the first from a cell's measurements.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from velodrome.model.errors import UnknownLoadMetricError
from velodrome.model.measurement import OUTCOMES


class Unit(StrEnum):
    """How a number reads."""

    RATE = "/s"
    MILLISECONDS = "ms"
    MICROSECONDS = "µs"
    SECONDS = "s"
    BYTES = "bytes"
    SHARE = "%"
    COUNT = ""
    RATIO = "×"


@dataclass(frozen=True)
class Metric:
    """A number that can be named in a study file."""

    about: str
    unit: Unit


METRICS: Mapping[str, Metric] = {
    "throughput_rps": Metric("right answers a second", Unit.RATE),
    "answered_rps": Metric("right answers a second, whatever became of the other requests", Unit.RATE),
    "sustained_rps": Metric("highest rate of the question's open loops that still holds", Unit.RATE),
    "ceiling_rps": Metric("what Little's law allows", Unit.RATE),
    "ceiling_share": Metric("right answers a second over what Little's law allows", Unit.SHARE),
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
    "p50_told_ms": Metric("latency as the driver tells it, half of the requests", Unit.MILLISECONDS),
    "p99_told_ms": Metric("latency as the driver tells it, 99 %", Unit.MILLISECONDS),
    "min_service_ms": Metric("latency from sent, the fastest", Unit.MILLISECONDS),
    "max_service_ms": Metric("latency from sent, the slowest", Unit.MILLISECONDS),
    "stdev_service_ms": Metric("latency from sent, its standard deviation", Unit.MILLISECONDS),
    "cpu_us": Metric("server CPU per right answer", Unit.MICROSECONDS),
    "cpu_share": Metric("CPUs the server kept busy", Unit.COUNT),
    "memory_bytes": Metric("highest memory of the server", Unit.BYTES),
    "error_share": Metric("requests without a right answer", Unit.SHARE),
    "reset_share": Metric("requests whose connection was reset", Unit.SHARE),
    "refused_share": Metric("requests whose connection was refused", Unit.SHARE),
    "timeout_share": Metric("requests given up", Unit.SHARE),
    "failed_share": Metric("blocks in which nothing could be measured", Unit.SHARE),
    "listen_overflows": Metric("connections turned away by a full listen queue, a block", Unit.COUNT),
    "listen_peak": Metric("most connections in the listen queue", Unit.COUNT),
    "idle_share": Metric("samples of a profile in which the server waits", Unit.SHARE),
    "depth_mean": Metric("frames of a sample of a profile that is not idle", Unit.COUNT),
    "depth_max": Metric("most frames of a sample of a profile", Unit.COUNT),
}
"""By name. Facts of experiments are named as the experiment names them, and are not in here."""

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


# --- What can be said of one load in a condition, by name: `p99`, `sent.p99.9`, `connect.max`, `errors`, `rate`.
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
