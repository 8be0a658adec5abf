"""What another generator told of its load, before what is known of its process is added."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from itertools import pairwise

from velodrome.model.measurement import UNTOLD, Latency, LoadSecond

RISING = ("p50", "p75", "p90", "p95", "p99", "p99_9", "max")


@dataclass(frozen=True)
class Told:
    """Fields as in `LoadFacts`."""

    requests: int
    ok: int
    duration_s: float
    throughput_rps: float
    outcomes: Mapping[str, int]
    due: Latency = UNTOLD
    sent: Latency = UNTOLD
    hdr_due: str | None = None
    hdr_sent: str | None = None
    series: tuple[LoadSecond, ...] = ()
    examples: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    corrected: bool = False

    @property
    def failed(self) -> int:
        """Requests that came to anything but a right answer or the end of the load."""
        return sum(number for kind, number in self.outcomes.items() if kind not in ("ok", "unfinished"))

    def __post_init__(self) -> None:
        """Raise ValueError for figures that no load can have: then the output was misunderstood."""
        numbers = {"duration": self.duration_s, "rate": self.throughput_rps, "requests": self.requests}
        for name, value in {**numbers, **self.outcomes}.items():
            if not (math.isfinite(value) and value >= 0):
                raise ValueError(f"its {name} is {value}")
        if self.duration_s <= 0:
            raise ValueError("it took no time")
        if self.ok > self.requests or sum(self.outcomes.values()) != self.requests:
            raise ValueError(
                f"{self.ok} answers, {dict(self.outcomes)} and {self.requests} requests do not agree"
            )
        for latency in (self.due, self.sent):
            _check(latency)


def _check(latency: Latency) -> None:
    """Raise ValueError unless percentiles are durations that rise."""
    told = {field.name: getattr(latency, field.name) for field in fields(latency)}
    for name, value in told.items():
        if value is not None and not (math.isfinite(value) and value >= 0):
            raise ValueError(f"its latency at {name} is {value}")
    known = [told[name] for name in RISING if told[name] is not None]
    if any(high < low for low, high in pairwise(known)):
        raise ValueError("its percentiles do not rise")
