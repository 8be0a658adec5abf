"""The latency reported for an idle server of 10 us, beside the truth: kernel time stamps of each request and answer.

Open loop at 10,000/s. The truth is what passed the loopback device (`wire.py`): from when a request was handed to it to
when its answer was. A generator's figure holds its own wake-up and its own work as well; that is what is measured here.
"""

from dataclasses import dataclass
from urllib.parse import urlsplit

import generators
from floors import Plain
from generators import Generator, Shot
from rounds import Table, absent, extent, interleaved, middle, show
from track import drive
from wire import Wire, permitted

WORK_US = 10
RATE = 10_000
CONNECTIONS = 50
DURATION_S = 2.0


@dataclass(frozen=True)
class Seen:
    """One run; microseconds."""

    true_p50: float
    true_p99: float
    p50: float
    p99: float


def run(target: Plain, generator: Generator) -> Seen:
    """One contestant once. Raises RuntimeError when it fails."""
    with Wire(urlsplit(target.url).port or 0) as wire:
        done = drive(generator.command(Shot(target.url, CONNECTIONS, DURATION_S, RATE)))
        if done.status:
            raise RuntimeError(f"{generator.name} failed: {done.output[-500:]}")
        true = sorted(wire.round_trips_us())
    if len(true) < RATE * DURATION_S * 0.95:
        raise RuntimeError(f"only {len(true)} answers passed the wire: its buffer is too small")
    reported = generator.read(done.output).latency_ms
    p50, p99 = (reported.get(name, float("nan")) * 1000 for name in ("p50", "p99"))
    return Seen(true[len(true) // 2], true[len(true) * 99 // 100], p50, p99)


def tables(rounds: int) -> list[Table]:
    """The table of this benchmark; none where the device may not be watched."""
    if not permitted():
        return []
    contestants, missing = generators.present(
        ("velodrome", generators.velodrome("io_uring")),
        ("velodrome", generators.velodrome("epoll")),
        ("oha", generators.oha()),
        ("oha --latency-correction", generators.oha(corrected=True)),
    )
    with Plain(44, "work", str(WORK_US)) as target:
        seen = interleaved(contestants, lambda generator: run(target, generator), rounds)
    rows = tuple(
        (
            f"{generator.name} {generator.version}",
            f"{middle(repeat.true_p50 for repeat in runs):.1f} µs",
            f"{middle(repeat.p50 for repeat in runs):.1f} µs",
            f"{middle(repeat.p50 - repeat.true_p50 for repeat in runs):+.1f} µs",
            extent([repeat.p50 - repeat.true_p50 for repeat in runs], 1),
            f"{middle(repeat.true_p99 for repeat in runs):.0f} µs",
            f"{middle(repeat.p99 for repeat in runs):.0f} µs",
        )
        for generator, runs in zip(contestants, seen, strict=True)
    )
    columns = ("true p50", "reported p50", "off by", "of rounds", "true p99", "reported p99")
    return [
        Table(
            f"Latency of an idle server that works {WORK_US} µs, at {RATE:,}/s",
            f"{CONNECTIONS} connections, {rounds} interleaved rounds of {DURATION_S:g} s, medians.",
            ("generator", *columns),
            rows,
            (
                "True: between the kernel's time stamps of request and answer on the loopback device.",
                *absent(missing),
            ),
        )
    ]


if __name__ == "__main__":
    show(tables, __doc__)
