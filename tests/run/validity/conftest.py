"""A measurement with nothing wrong in it; each test spoils one thing."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from velodrome.model.load import Closed, Load, Open
from velodrome.model.measurement import (
    Flag,
    FlagKind,
    HostFacts,
    Latency,
    LoadFacts,
    LoadSecond,
    QueueFacts,
    ServerFacts,
    WorkerUse,
)
from velodrome.run.measuring.sampler import Rest, Sampled
from velodrome.run.validity import Evidence, flags

FLAT = Latency(10.0, 10.0, 10.0, 10.0, 10.0, 10.0, 10.0, 10.0)
NO_LAG = Latency(0.01, 0.01, 0.01, 0.01, 0.02, 0.04, 0.1, 0.4)

FACTS = LoadFacts(
    requests=40_000,
    ok=40_000,
    duration_s=10.0,
    throughput_rps=4000.0,
    outcomes={"ok": 40_000},
    due=FLAT,
    sent=FLAT,
    lag=NO_LAG,
    connections_asked=40,
    connections_opened=40,
    connections_reopened=0,
    connections_answered=40,
    mean_in_flight=40.0,
    generator_cpu_s=2.0,
    generator_cpu_user_s=0.4,
    generator_cpu_sys_s=1.6,
    generator_transport="epoll",
    generator_saturated=False,
    engine_flags=(),
    series=tuple(LoadSecond(float(s), 4000, 4000, 0, 40, 10.0, 10.0, 10.0) for s in range(10)),
    hdr_due="",
    hdr_sent="",
)
SAMPLED = Sampled(
    server=ServerFacts(
        cpu_s=9.0,
        cpu_user_s=6.0,
        cpu_sys_s=3.0,
        rss_peak_bytes=50_000_000,
        pss_peak_bytes=40_000_000,
        threads_peak=2,
        fds_peak=50,
        switches_voluntary=10,
        switches_involuntary=10,
        workers=(WorkerUse(100, 0.0, 0), WorkerUse(101, 4.6, 21), WorkerUse(102, 4.4, 19)),
        samples=(),
        boot_s=0.3,
    ),
    queue=QueueFacts(0, 2048, 0, 0),
    host=HostFacts(0.0, 0.0),
    rest=Rest(100, (100, 101, 102), 0.0, {}),
    root_alive=True,
    gone=(),
    came=(),
    foreign=(),
    span_s=10.0,
    late_s=0.0,
    own_cpu_s=0.05,
)

FORTY = Closed(40)
Flags = Callable[..., dict[FlagKind, Flag]]


def spoil(
    facts: dict[str, Any] | None = None,
    sampled: dict[str, Any] | None = None,
    pace: Closed | Open = FORTY,
    keepalive: bool = True,
    **more: Any,
) -> Evidence:
    """Return the evidence with some facts replaced."""
    duration_s = (facts or {}).get("duration_s", FACTS.duration_s)
    return Evidence(
        load=Load(pace, duration_s, keepalive=keepalive),
        facts=replace(FACTS, **(facts or {})),
        sampled=replace(SAMPLED, **(sampled or {})),
        machine_cpus=more.pop("machine_cpus", 2),
        **more,
    )


@pytest.fixture
def raised() -> Flags:
    """The flags raised when some facts are replaced, by kind."""
    return lambda *args, **kwargs: {flag.kind: flag for flag in flags(spoil(*args, **kwargs))}
