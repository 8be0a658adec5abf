"""A server frozen twice for 1 s in 10 s at 1,000/s: who reports the latencies users would have felt?

The truth is arithmetic: a request due while the server is frozen waits until it is not. It is computed from
the moments at which the server really was stopped and continued, so a late signal blames nobody.
"""

import os
import signal
import time
from collections.abc import Mapping
from dataclasses import dataclass

import generators
from generators import Generator, Shot
from rounds import Table, absent, interleaved, middle, show
from track import Driver, ThirdParty, until

RATE = 1000
CONNECTIONS = 50
DURATION_S = 10.0
FREEZES_S = ((2.0, 1.0), (6.0, 1.0))
"""When each begins after the first request, and how long it lasts."""
QUANTILES = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99}
FIGURES = ("mean", *QUANTILES, "max")


@dataclass(frozen=True)
class Seen:
    """One run: what was true and what was reported; milliseconds."""

    truth: Mapping[str, float]
    reported: Mapping[str, float]
    errors: int


def truth(freezes: list[tuple[float, float]]) -> dict[str, float]:
    """Return the latencies of all requests due in the run, milliseconds; `freezes` are (begin, end), seconds.

    A quantile is the smallest latency that at least this share of requests does not exceed (nearest rank).
    """
    count = int(RATE * DURATION_S)
    waits = sorted(
        next((end - n / RATE for begin, end in freezes if begin <= n / RATE < end), 0.0) * 1000
        for n in range(count)
    )
    figures = {name: waits[-(-int(share * count * 1000) // 1000) - 1] for name, share in QUANTILES.items()}
    return {"mean": sum(waits) / count, **figures, "max": waits[-1]}


def freeze(target: ThirdParty, began: float) -> list[tuple[float, float]]:
    """Stop and continue the target as planned; return when it really happened, seconds after `began`."""
    happened = []
    for begin, length in FREEZES_S:
        time.sleep(max(0.0, began + begin - time.monotonic()))
        os.kill(target.process.pid, signal.SIGSTOP)
        stopped = time.monotonic()
        time.sleep(length)
        os.kill(target.process.pid, signal.SIGCONT)
        happened.append((stopped - began, time.monotonic() - began))
    return happened


def run(generator: Generator) -> Seen:
    """One contestant once."""
    with ThirdParty() as target:
        driver = Driver(generator.command(Shot(target.url, CONNECTIONS, DURATION_S, RATE)))
        until(lambda: target.requests() > 0, "the first request arrives", every_s=0.005)
        freezes = freeze(target, time.monotonic())
        done = driver.finish()
    if done.status:
        raise RuntimeError(f"{generator.name} failed: {done.output[-500:]}")
    report = generator.read(done.output)
    return Seen(truth(freezes), report.latency_ms, report.errors)


def off(figure: str, seen: Seen) -> float:
    """Return how far a reported figure is from the truth: a share of it."""
    true = seen.truth[figure]
    return (seen.reported.get(figure, float("nan")) - true) / true if true else 0.0


def verdict(runs: list[Seen]) -> str:
    """Right is within 1 % of the truth or 1 ms, in the median of the rounds."""

    def misses(figure: str) -> bool:
        by = middle(abs(repeat.reported.get(figure, float("nan")) - repeat.truth[figure]) for repeat in runs)
        # A figure that is missing is no number, and no number is within anything.
        return not by <= max(1.0, 0.01 * middle(repeat.truth[figure] for repeat in runs))

    wrong = [name for name in FIGURES if misses(name)]
    return f"wrong: {', '.join(wrong)}" if wrong else "right"


def tables(rounds: int) -> list[Table]:
    """The table of this benchmark."""
    contestants, missing = generators.present(
        ("velodrome", generators.velodrome("io_uring")),
        ("velodrome", generators.velodrome("epoll")),
        ("oha", generators.oha()),
        ("oha --latency-correction", generators.oha(corrected=True)),
    )
    seen = interleaved(contestants, run, rounds)
    every = [repeat for runs in seen for repeat in runs]
    rows = [
        ("the truth", *(f"{middle(repeat.truth[name] for repeat in every):.1f}" for name in FIGURES), "", "")
    ]
    for generator, runs in zip(contestants, seen, strict=True):
        figures = [
            f"{middle(repeat.reported.get(name, float('nan')) for repeat in runs):.1f}" for name in FIGURES
        ]
        worst = max(
            (abs(off(name, repeat)) for repeat in runs for name in FIGURES if name != "p50"), default=0.0
        )
        rows.append(
            (f"{generator.name} {generator.version}", *figures, verdict(runs), f"{worst * 100:.1f} %")
        )
    table = Table(
        "Frozen twice for 1 s in 10 s at 1,000/s",
        f"Latency in ms as reported, {CONNECTIONS} connections, {rounds} interleaved rounds, medians.",
        ("generator", *FIGURES, "right to 1 % or 1 ms?", "worst figure of any round off by"),
        tuple(rows),
        absent(missing),
    )
    return [table]


if __name__ == "__main__":
    show(tables, __doc__)
