"""The registry of metrics: name, unit, and whether more is better, of everything that can be named of a measurement.

`METRICS` are those of a cell, which claims and published tables name; `judge/figures.py` takes each (`TAKING`). A diff
compares some of them (`DIFF_METRICS`), thresholds and margins bound these. Conditions name the metrics of a single load
(`load_metric`): `judge/load_figures.py` takes them. What two of them share, they share here.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from velodrome.model.errors import UnknownLoadMetricError
from velodrome.model.measurement import OUTCOMES
from velodrome.model.quantity import Unit


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
