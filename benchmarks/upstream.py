"""The simulated third party: CPU for each request, and how late its answers are.

Late is the time from when an answer was due to when it is written, in the third party's own count. Callers
that wait together (wrk, closed loop) are answered together, and the last of them waits until the answers of
the others are written; requests spread over time (velodrome, open loop) show the timer and the cost of waking.
"""

import os
import time
from dataclasses import dataclass
from typing import Any

import generators
from generators import Generator, Shot
from rounds import Table, absent, interleaved, middle, show, spread
from track import ThirdParty, cpus, drive

DURATION_S = 3.0
ALLOWED = os.sched_getaffinity(0)


@dataclass(frozen=True)
class Case:
    """One kind of caller."""

    title: str
    generator: Generator
    latency: str
    connections: int
    rate: float | None = None


def run(case: Case) -> dict[str, Any]:
    """One case once: the facts of the third party over the run."""
    with ThirdParty({"latency": case.latency}) as target:
        target.facts()
        done = drive(case.generator.command(Shot(target.url, case.connections, DURATION_S, case.rate)))
        if done.status:
            raise RuntimeError(f"{case.generator.name} failed: {done.output[-500:]}")
        since: dict[str, Any] = target.facts()["since"]
        return since


def row(case: Case, runs: list[dict[str, Any]]) -> tuple[str, ...]:
    """One line of the table."""
    cpu_us = [repeat["cpu_s"] * 1e6 / max(1, repeat["requests"]) for repeat in runs]
    late = {name: middle(repeat["late_ms"][name] for repeat in runs) for name in ("p50", "p99", "max")}
    return (
        case.title,
        f"{middle(repeat['requests'] for repeat in runs) / DURATION_S:.0f}",
        f"{middle(cpu_us):.1f} µs",
        spread(cpu_us),
        *(f"{late[name]:.3f} ms" for name in ("p50", "p99", "max")),
    )


def waking_us() -> float:
    """Return what sleeping and waking once costs on this machine, microseconds of CPU."""
    count = 2000
    os.sched_setaffinity(0, {cpus()[0]})
    before = time.process_time()
    for _ in range(count):
        time.sleep(0.0002)
    used = time.process_time() - before
    os.sched_setaffinity(0, ALLOWED)
    return used / count * 1e6


def tables(rounds: int) -> list[Table]:
    """The table of this benchmark."""
    ours, wrk = generators.velodrome("epoll"), generators.wrk()
    cases = [
        Case("open loop, 1,000/s, uniform(20ms,80ms)", ours, "uniform(20ms,80ms)", 200, 1000),
        Case("open loop, 5,000/s, 200ms", ours, "200ms", 2000, 5000),
        Case("open loop, 5,000/s, exponential(50ms)", ours, "exponential(50ms)", 2000, 5000),
    ]
    if wrk:
        together = [
            Case("wrk, 40 connections, 200ms", wrk, "200ms", 40),
            Case("wrk, 1,000 connections, 200ms", wrk, "200ms", 1000),
            Case("wrk, 50 connections, at once", wrk, "0", 50),
        ]
        cases = together + cases
    seen = interleaved(cases, run, rounds)
    table = Table(
        "The simulated third party",
        f"One thread, {rounds} interleaved rounds of {DURATION_S:g} s, medians.",
        ("callers", "requests/s", "CPU a request", "spread", "late p50", "late p99", "late max"),
        tuple(row(case, runs) for case, runs in zip(cases, seen, strict=True)),
        (
            f"Sleeping and waking once costs {middle(waking_us() for _ in range(rounds)):.0f} µs of CPU here; "
            "a request that comes alone needs two wakings.",
            *absent([] if wrk else ["wrk"]),
        ),
    )
    return [table]


if __name__ == "__main__":
    show(tables, __doc__)
