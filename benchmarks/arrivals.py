"""Open loop at 10,000/s: how far from the ideal schedule requests arrive, seen at the target.

The target notes the kernel's time of arrival of each request (`SO_TIMESTAMPNS`). The ideal schedule is
n / rate; its beginning is where half of the arrivals are early and half late. What a generator does not send
at all moves everything after it.
"""

from array import array
from dataclasses import dataclass
from statistics import median

import generators
from generators import Generator, Shot
from rounds import Table, absent, extent, interleaved, middle, show
from track import Recorder, drive

RATE = 10_000
CONNECTIONS = 50
DURATION_S = 3.0
SETTLING_S = 0.5
"""Left out for all: connections are being opened."""


@dataclass(frozen=True)
class Seen:
    """One run; microseconds."""

    p50: float
    p99: float
    worst: float
    arrived: int
    cpu_s: float


def deviations(arrivals: "array[int]", rate: float, settling_s: float) -> list[float]:
    """Return how far each arrival lies from its place in the schedule, in order of size; microseconds.

    Schedule and arrivals are matched by number after the settling time.
    """
    begin = arrivals[0] + settling_s * 1e9
    settled = [at for at in arrivals if at >= begin]
    offsets = [at - settled[0] - n * 1e9 / rate for n, at in enumerate(settled)]
    phase = median(offsets)
    return sorted(abs(offset - phase) / 1000 for offset in offsets)


def run(target: Recorder, generator: Generator) -> Seen:
    """One contestant once."""
    target.arrivals()
    done = drive(generator.command(Shot(target.url, CONNECTIONS, DURATION_S, RATE)))
    arrivals = target.arrivals()
    if done.status or not arrivals:
        raise RuntimeError(f"{generator.name} failed: {done.output[-500:]}")
    off = deviations(arrivals, RATE, SETTLING_S)
    return Seen(off[len(off) // 2], off[len(off) * 99 // 100], off[-1], len(arrivals), done.cpu_s)


def tables(rounds: int) -> list[Table]:
    """The table of this benchmark."""
    contestants, missing = generators.present(
        ("velodrome", generators.velodrome("io_uring")),
        ("velodrome", generators.velodrome("epoll")),
        ("oha", generators.oha()),
        ("wrk2", generators.wrk2()),
        ("vegeta", generators.vegeta()),
    )
    with Recorder() as target:
        seen = interleaved(contestants, lambda generator: run(target, generator), rounds)
    rows = tuple(
        (
            f"{generator.name} {generator.version}",
            f"{middle(one.p50 for one in runs):.1f} µs",
            extent([one.p50 for one in runs], 1),
            f"{middle(one.p99 for one in runs):.0f} µs",
            extent([one.p99 for one in runs], 0),
            f"{middle(one.worst for one in runs) / 1000:.1f} ms",
            f"{middle(one.arrived / (RATE * DURATION_S) for one in runs) * 100:.1f} %",
            f"{middle(one.cpu_s / DURATION_S for one in runs) * 100:.0f} %",
        )
        for generator, runs in zip(contestants, seen, strict=True)
    )
    table = Table(
        f"Arrivals at {RATE}/s",
        f"Deviation from the ideal schedule, {CONNECTIONS} connections; "
        f"{rounds} interleaved rounds of {DURATION_S:g} s, medians.",
        ("generator", "p50", "of rounds", "p99", "of rounds", "worst", "arrived", "of its CPU"),
        rows,
        absent(missing),
    )
    return [table]


if __name__ == "__main__":
    show(tables, __doc__)
