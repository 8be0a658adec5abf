"""Closed loop: requests for each CPU-second the generator uses, beside its peers and beside the floors.

Requests are counted at the target, CPU time is all the generator's from start to end (rusage). A floor parses and
records nothing (`benchmarks/floors`): "of the floor" is the distance to what the kernel alone costs.
"""

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import generators
from floors import Plain, floor
from generators import Generator, Shot
from rounds import Table, absent, interleaved, middle, show, spread
from track import Nginx, Target, allow_files, drive, program

DURATION_S = 1.0
LARGE_BYTES = 220_000
Entered = tuple[str, Generator | None]


@dataclass(frozen=True)
class Race:
    """One table: who runs what. `peer` is the name of the generator that others are held against."""

    title: str
    shot: Shot
    entered: Sequence[Entered]
    notes: tuple[str, ...] = ()
    peer: str = "wrk"


@dataclass(frozen=True)
class Seen:
    """One run."""

    per_cpu_s: float
    per_s: float
    busy: float
    errors: int
    counted: float
    """What the generator counted over what the target counted."""


def run(target: Target, generator: Generator, shot: Shot) -> Seen:
    """One contestant once. Raises RuntimeError when it fails."""
    before = target.requests()
    done = drive(generator.command(shot))
    requests = target.requests() - before
    if done.status:
        raise RuntimeError(f"{generator.name} failed: {done.output[-500:]}")
    report = generator.read(done.output)
    # Asking nginx for its count is a request too.
    requests -= isinstance(target, Nginx)
    return Seen(
        requests / done.cpu_s,
        requests / shot.duration_s,
        done.cpu_s / done.wall_s,
        report.errors,
        report.requests / max(1, requests),
    )


def ratio(runs: Sequence[Seen], to: Sequence[Seen]) -> float:
    """How many times as many requests per CPU-second, the median of the rounds, each compared with its own."""
    return middle(repeat.per_cpu_s / other.per_cpu_s for repeat, other in zip(runs, to, strict=True))


def better(runs: Sequence[Sequence[Seen]]) -> Sequence[Seen] | None:
    """The runs of the floor that makes more requests per CPU-second."""
    return max(runs, key=lambda seen: middle(repeat.per_cpu_s for repeat in seen), default=None)


def table(target: Target, race: Race, rounds: int) -> Table:
    """All contestants against one target."""
    contestants, missing = generators.present(*race.entered)
    seen = interleaved(contestants, lambda generator: run(target, generator, race.shot), rounds)
    raced = list(zip(contestants, seen, strict=True))
    lowest = better([runs for generator, runs in raced if generator.name.startswith("floor")])
    peer = next((runs for generator, runs in raced if generator.name == race.peer), None)
    rows, names = [], set[str]()
    for generator, runs in raced:
        again = " (again)" if generator.name in names else ""
        names.add(generator.name)
        per_cpu_s = [repeat.per_cpu_s for repeat in runs]
        rows.append(
            (
                f"{generator.name} {generator.version}".strip() + again,
                f"{middle(per_cpu_s) / 1000:.1f} k",
                spread(per_cpu_s),
                f"{ratio(runs, lowest):.2f}" if lowest else "–",
                f"{ratio(runs, peer):.2f}" if peer else "–",
                f"{middle(repeat.per_s for repeat in runs) / 1000:.1f} k",
                f"{middle(repeat.busy for repeat in runs) * 100:.0f} %",
                f"{sum(repeat.errors for repeat in runs)}",
                f"{middle(repeat.counted for repeat in runs):.4f}",
            )
        )
    twice = ("wrk races twice: the difference between its rows is noise.",) if "wrk" in names else ()
    return Table(
        race.title,
        f"{rounds} interleaved rounds of {race.shot.duration_s:g} s, medians.",
        (
            "generator",
            "requests per CPU-second",
            "spread",
            "of the floor",
            f"of {race.peer}",
            "requests/s",
            "of its CPU",
            "errors",
            "counted ÷ arrived",
        ),
        tuple(rows),
        (*twice, *race.notes, *absent(sorted(set(missing)))),
    )


def ours(*transports: str) -> list[Entered]:
    """Our engine over these transports."""
    return [("velodrome", generators.velodrome(transport)) for transport in transports]


def floors(*kinds: str) -> list[Entered]:
    """Floors, the batched one by `uring 100`."""
    return [(f"floor {kind}", floor(*kind.split())) for kind in kinds]


def wrk_twice() -> list[Entered]:
    """`wrk`, two times."""
    return [("wrk", generators.wrk()), ("wrk", generators.wrk())]


def small(target: Plain, rounds: int) -> list[Table]:
    """Small answers on kept connections."""
    shot = Shot(target.url, 50, DURATION_S, answer_bytes=target.answer_bytes)
    every = [("oha", generators.oha()), ("h2load", generators.h2load())]
    about = f"{target.answer_bytes} bytes on the wire, against one epoll thread"
    both = ours("io_uring", "epoll")
    kinds = ["epoll", "uring", "uring 100"]
    return [
        table(
            target,
            Race(f"50 connections, {about}", shot, [*floors(*kinds), *both, *wrk_twice(), *every]),
            rounds,
        ),
        table(
            target,
            Race(
                f"1 connection, {about}",
                replace(shot, connections=1),
                [*floors("epoll", "uring"), *both, *wrk_twice()],
            ),
            rounds,
        ),
        table(
            target,
            Race(
                f"1,000 connections, {about}",
                replace(shot, connections=1000),
                [*floors(*kinds), *both, *wrk_twice()],
            ),
            rounds,
        ),
        table(
            target,
            Race(
                f"10,000 connections, {about}",
                replace(shot, connections=10_000, duration_s=2.0),
                [*floors("epoll", "uring"), *both, *wrk_twice()],
                ("CPU time includes the opening of the connections.",),
            ),
            # Caches and what others do to them move this most: one round tells nothing.
            max(3, rounds),
        ),
    ]


def large(rounds: int) -> Table:
    """Answers of 220 kB."""
    with Plain(LARGE_BYTES) as target, tempfile.NamedTemporaryFile() as right:
        right.write(target.body)
        right.flush()
        shot = Shot(target.url, 50, DURATION_S, answer_bytes=target.answer_bytes, right=Path(right.name))
        varied = ("velodrome", generators.velodrome("auto", varied=True))
        entered = [*floors("epoll", "discard"), *ours("auto", "io_uring"), varied, *wrk_twice()]
        notes = (
            "velodrome auto reads every 100th answer and compares it whole; of the others the kernel drops the body, "
            "and the length is compared. Filled in anew, each request has its number in a header, and no body is "
            'compared. The floor that reads all is the plain one; "of the floor" is of the better.',
        )
        race = Race("50 connections, answers of 220 kB", shot, [*entered, ("oha", generators.oha())], notes)
        return table(target, race, rounds)


def fresh(rounds: int) -> Table:
    """A connection for each request."""
    with Plain(44, "close") as target:
        shot = Shot(target.url, 50, DURATION_S, keepalive=False, answer_bytes=target.answer_bytes)
        entered = [
            *floors("fresh"),
            *ours("auto", "io_uring", "epoll"),
            *wrk_twice(),
            ("oha", generators.oha()),
        ]
        title = f"A connection for each request, 50 at once, {target.answer_bytes} bytes"
        return table(target, Race(title, shot, entered), rounds)


def real(rounds: int) -> list[Table]:
    """nginx, in the clear and over TLS 1.3."""
    made = []
    for tls in (False, True):
        with Nginx(tls) as nginx:
            version = generators._version([program("nginx") or "nginx", "-v"])
            over = " over TLS 1.3" if tls else ""
            title = f"50 connections, answers with 84 bytes of body, against nginx {version}{over}"
            entered = [*ours("io_uring", "epoll"), *wrk_twice(), ("oha", generators.oha())]
            made.append(table(nginx, Race(title, Shot(nginx.url, 50, DURATION_S), entered), rounds))
    return made


def tables(rounds: int) -> list[Table]:
    """Every table of this benchmark."""
    allow_files()
    with Plain() as target:
        made = small(target, rounds)
    made += [large(rounds), fresh(rounds)]
    return made + (real(rounds) if program("nginx") and program("openssl") else [])


if __name__ == "__main__":
    show(tables, __doc__)
