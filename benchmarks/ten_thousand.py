"""Ten thousand connections and eighteen thousand held in one run: who gets them all, how soon, for how much memory.

The target answers each request after 1 s, so every connection is busy nearly all the time.
"""

from contextlib import suppress
from dataclasses import dataclass

import generators
from generators import Generator, Shot
from rounds import Table, absent, interleaved, middle, show, spread
from track import PATIENCE_S, Driver, ThirdParty, allow_files, until

CONNECTIONS = (10_000, 18_000)
DURATION_S = 4.0
POLL_S = 0.02


@dataclass(frozen=True)
class Seen:
    """One run."""

    held: int
    connect_s: float | None
    answers: int
    errors: int
    memory_bytes: int
    cpu_s: float


def run(generator: Generator, connections: int) -> Seen:
    """One contestant once."""
    with ThirdParty({"latency": "1s"}) as target:
        driver = Driver(generator.command(Shot(target.url, connections, DURATION_S)))
        held, connect_s = 0, None

        def all_in() -> bool:
            nonlocal held
            held = max(held, int(target.facts()["connections"]))
            return held >= connections

        with suppress(TimeoutError):
            connect_s = until(all_in, "all connections are open", POLL_S, min(PATIENCE_S, DURATION_S))
        memory = driver.memory(DURATION_S * 0.75)
        done = driver.finish()
        if done.status:
            raise RuntimeError(f"{generator.name} failed: {done.output[-500:]}")
        answers = int(target.facts()["answered"])
        return Seen(held, connect_s, answers, generator.read(done.output).errors, memory, done.cpu_s)


def row(generator: Generator, runs: list[Seen], bare_bytes: int, count: int) -> tuple[str, ...]:
    """One line of the table."""
    connected = [repeat.connect_s for repeat in runs if repeat.connect_s is not None]
    return (
        f"{generator.name} {generator.version}",
        f"{min(repeat.held for repeat in runs)}",
        f"{middle(connected):.2f} s" if len(connected) == len(runs) else "never all",
        spread(connected) if len(connected) == len(runs) else "–",
        f"{middle(repeat.answers for repeat in runs):.0f}",
        f"{sum(repeat.errors for repeat in runs)}",
        f"{middle((repeat.memory_bytes - bare_bytes) / count / 1000 for repeat in runs):.1f} kB",
        f"{middle(repeat.cpu_s * 1e6 / max(1, repeat.answers) for repeat in runs):.1f} µs",
    )


def bare(generator: Generator) -> int:
    """Return the memory of a run with one connection: what is not the connections'."""
    with ThirdParty() as target:
        driver = Driver(generator.command(Shot(target.url, 1, 1.0)))
        memory = driver.memory(0.7)
        driver.finish()
        return memory


def table(contestants: list[Generator], missing: list[str], count: int, rounds: int) -> Table:
    """So many connections."""
    seen = interleaved(contestants, lambda generator: run(generator, count), rounds)
    rows = tuple(
        row(generator, runs, bare(generator), count)
        for generator, runs in zip(contestants, seen, strict=True)
    )
    return Table(
        f"{count:,} connections at once",
        f"Each request answered after 1 s; {rounds} interleaved rounds of {DURATION_S:g} s, medians.",
        (
            "generator",
            "held (least of all rounds)",
            "all open after",
            "spread",
            "answers",
            "errors",
            "memory each",
            "CPU a request",
        ),
        rows,
        (
            "Open after: seen at the target, from the start of the process, the interpreter's included.",
            "Memory each: the most resident memory, beyond that of a run with one connection.",
            *absent(missing),
        ),
    )


def tables(rounds: int) -> list[Table]:
    """The tables of this benchmark; the larger one of ours alone beside wrk."""
    allow_files()
    contestants, missing = generators.present(
        ("velodrome", generators.velodrome("io_uring")),
        ("velodrome", generators.velodrome("epoll")),
        ("wrk", generators.wrk()),
        ("oha", generators.oha()),
    )
    fewer = [contestant for contestant in contestants if not contestant.name.startswith("oha")]
    many, more = CONNECTIONS
    return [table(contestants, missing, many, rounds), table(fewer, missing, more, rounds)]


if __name__ == "__main__":
    show(tables, __doc__)
