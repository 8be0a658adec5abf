"""This engine beside another build of it, such as the one before a change:

    python benchmarks/builds.py /path/to/other/.venv/bin/python [--rounds 20] [--only '220 kB' …]

Both run in each round, in another order each time, against the targets of the other benchmarks. What counts is
requests per CPU-second of the generator, and the ratio of a round's own two runs: the median, with the 95 % interval of
its order statistics. Where this build stands against itself (`sys.executable`), the ratios are noise.
"""

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import closed_loop
import generators
import grpc
from floors import Plain
from generators import Generator, Shot
from rounds import Table, alone, arguments, interleaved, measured, middle, spread
from scipy import stats
from track import Nginx, allow_files, program

PAIRS = 20
LEVEL = 0.95
RATES = (1_000, 10_000)


@dataclass(frozen=True)
class Row:
    """One workload: `run` carries it with an interpreter's build and returns requests per CPU-second."""

    name: str
    run: Callable[[str], float]


def within(values: Sequence[float]) -> tuple[float, float]:
    """Return the interval of a median by order statistics; of fewer than six values, their ends.

    The number of values below the median is binomial (H. A. David, «Order Statistics», section 2.5).
    """
    ordered = sorted(values)
    below = int(stats.binom.ppf((1 - LEVEL) / 2, len(ordered), 0.5))
    low = max(0, below - 1) if below else 0
    return ordered[low], ordered[len(ordered) - 1 - low]


def of(generator: Any, python: str) -> Callable[..., list[str]]:
    """Return a generator's command, carried out by the build of that interpreter."""
    return lambda *shape: [python, *generator.command(*shape)[1:]]


def http(name: str, target: Plain | Nginx, generator: Generator, shot: Shot) -> Row:
    """A row of HTTP/1.1."""

    def run(python: str) -> float:
        return closed_loop.run(target, replace(generator, command=of(generator, python)), shot).per_cpu_s

    return Row(name, run)


def calls(target: grpc.Greeter, transport: str, connections: int, streams: int) -> Row:
    """A row of unary gRPC calls."""
    caller = grpc.velodrome(transport)

    def run(python: str) -> float:
        other = replace(caller, command=of(caller, python))
        return grpc.run(target, other, connections, streams).per_cpu_s

    return Row(f"gRPC, {connections} × {streams} streams, {transport}", run)


def groups() -> Iterator[list[Row]]:
    """Yield the rows of one target at a time, while it is there."""
    names = ("io_uring", "epoll")
    every = {name: generators.velodrome(name) for name in (*names, "auto")}
    filled_in = generators.velodrome("auto", varied=True)
    with Plain() as target:
        shot = Shot(target.url, 50, closed_loop.DURATION_S, answer_bytes=target.answer_bytes)
        crowd = replace(shot, connections=10_000, duration_s=2.0)
        yield [
            *(http(f"50 connections, {name}", target, every[name], shot) for name in names),
            http("50 connections, filled in anew", target, filled_in, shot),
            *(
                http(f"1 connection, {name}", target, every[name], replace(shot, connections=1))
                for name in names
            ),
            *(
                http(f"1,000 connections, {name}", target, every[name], replace(shot, connections=1000))
                for name in names
            ),
            *(http(f"10,000 connections, {name}", target, every[name], crowd) for name in names),
            *(
                http(f"open loop, {rate:,}/s", target, every["auto"], replace(shot, rate=rate))
                for rate in RATES
            ),
        ]
    with Plain(closed_loop.LARGE_BYTES) as target:
        shot = Shot(target.url, 50, closed_loop.DURATION_S, answer_bytes=target.answer_bytes)
        yield [http(f"220 kB, {name}", target, every[name], shot) for name in ("auto", "io_uring")]
    with Plain(44, "close") as target:
        shot = Shot(target.url, 50, closed_loop.DURATION_S, keepalive=False, answer_bytes=target.answer_bytes)
        yield [http(f"a connection for each request, {name}", target, every[name], shot) for name in names]
    if program("nginx") and program("openssl"):
        for tls in (False, True):
            with Nginx(tls) as nginx:
                shot = Shot(nginx.url, 50, closed_loop.DURATION_S)
                over = " over TLS 1.3" if tls else ""
                yield [http(f"nginx{over}, {name}", nginx, every[name], shot) for name in names]
    with grpc.Greeter() as greeter:
        yield [calls(greeter, name, *shape) for shape in grpc.SHAPES for name in names]


def table(other: str, rounds: int, parts: Sequence[str]) -> list[Table]:
    """Return the rows with one of these parts in their names as one table; all, where there is none."""
    allow_files()
    rows = []
    for group in groups():
        for row in group:
            if parts and not any(part in row.name for part in parts):
                continue
            before, now = interleaved((other, sys.executable), row.run, rounds)
            ratios = [new / old for new, old in zip(now, before, strict=True)]
            low, high = within(ratios)
            rows.append(
                (
                    row.name,
                    f"{middle(before) / 1000:.1f} k",
                    f"{middle(now) / 1000:.1f} k",
                    f"{middle(ratios):.3f}",
                    f"[{low:.3f}, {high:.3f}]",
                    spread(ratios),
                )
            )
            print("  ".join(rows[-1]), file=sys.stderr, flush=True)
    return [
        Table(
            "This engine and another build of it",
            f"Requests per CPU-second of the generator; {rounds} interleaved pairs, medians.",
            ("", "other", "this", "ratio", "95 %", "spread"),
            tuple(rows),
        )
    ]


if __name__ == "__main__":
    parser = arguments(__doc__)
    parser.add_argument(
        "other", help="the interpreter of the environment in which the other build is installed"
    )
    parser.add_argument("--only", nargs="+", default=(), metavar="PART", help="rows with this in their names")
    parser.set_defaults(rounds=PAIRS)
    given = parser.parse_args()
    if not os.access(given.other, os.X_OK):
        parser.error(f"{given.other} is no interpreter")
    with alone("a benchmark"):
        for made in measured(lambda rounds: table(given.other, rounds, given.only), max(1, given.rounds)):
            print(made.text())
