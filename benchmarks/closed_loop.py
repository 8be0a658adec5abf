"""Closed loop, 84-byte answers, 50 keep-alive connections: requests for each CPU-second the generator uses.

Requests are counted at the target, CPU time is all the generator's from start to end (rusage).
"""

from dataclasses import dataclass

import generators
from generators import Generator, Shot
from rounds import Table, absent, interleaved, middle, show, spread
from track import Nginx, Target, ThirdParty, drive, program

CONNECTIONS = 50
DURATION_S = 2.0


@dataclass(frozen=True)
class Seen:
    """One run."""

    per_cpu_s: float
    per_s: float
    busy: float
    errors: int
    counted: float
    """What the generator counted over what the target counted."""


def run(target: Target, generator: Generator) -> Seen:
    """One contestant once."""
    before = target.requests()
    done = drive(generator.command(Shot(target.url, CONNECTIONS, DURATION_S)))
    requests = target.requests() - before
    if done.status:
        raise RuntimeError(f"{generator.name} failed: {done.output[-500:]}")
    report = generator.read(done.output)
    # Asking nginx for its count is a request too.
    requests -= isinstance(target, Nginx)
    return Seen(
        requests / done.cpu_s,
        requests / DURATION_S,
        done.cpu_s / done.wall_s,
        report.errors,
        report.requests / max(1, requests),
    )


def table(target: Target, what: str, rounds: int) -> Table:
    """All contestants against one target."""
    contestants, missing = generators.present(
        ("velodrome", generators.velodrome("io_uring")),
        ("velodrome", generators.velodrome("epoll")),
        ("wrk", generators.wrk()),
        ("wrk", generators.wrk()),
        ("oha", generators.oha()),
        ("h2load", generators.h2load()),
    )
    seen = interleaved(contestants, lambda generator: run(target, generator), rounds)
    rows, names = [], set[str]()
    for generator, runs in zip(contestants, seen, strict=True):
        again = " (again)" if generator.name in names else ""
        names.add(generator.name)
        per_cpu_s = [one.per_cpu_s for one in runs]
        rows.append(
            (
                f"{generator.name} {generator.version}{again}",
                f"{middle(per_cpu_s) / 1000:.1f} k",
                spread(per_cpu_s),
                f"{middle(one.per_s for one in runs) / 1000:.1f} k",
                f"{middle(one.busy for one in runs) * 100:.0f} %",
                f"{sum(one.errors for one in runs)}",
                f"{middle(one.counted for one in runs):.4f}",
            )
        )
    return Table(
        f"Closed loop against {what}",
        f"{CONNECTIONS} keep-alive connections, {rounds} interleaved rounds of {DURATION_S:g} s, medians.",
        (
            "generator",
            "requests per CPU-second",
            "spread",
            "requests/s",
            "of its CPU",
            "errors",
            "counted ÷ arrived",
        ),
        tuple(rows),
        ("wrk races twice: the difference between its rows is noise.", *absent(sorted(set(missing)))),
    )


def tables(rounds: int) -> list[Table]:
    """Every table of this benchmark."""
    with ThirdParty() as target:
        made = [table(target, "one epoll thread, 84 bytes on the wire", rounds)]
    if program("nginx"):
        with Nginx() as nginx:
            made.append(
                table(nginx, f"nginx {generators._version(['nginx', '-v'])}, 84 bytes of body", rounds)
            )
    return made


if __name__ == "__main__":
    show(tables, __doc__)
