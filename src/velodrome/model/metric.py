"""What a claim may be checked by: one number of a cell under a load. `judge/figures/` tells how each is taken."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


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
