"""From the start of the process to its first request, seen at the target: how long one waits for a generator."""

import sys
import time

import generators
from generators import Generator, Report, Shot
from rounds import Table, absent, extent, interleaved, middle, show
from track import Recorder, drive

SCRIPT = "from velodrome.cli.main import main; main()"
"""What the program `velodrome` is."""


def command_line() -> Generator:
    """`velodrome load` as one types it."""

    def command(shot: Shot) -> list[str]:
        load = ["load", shot.url, "-c", str(shot.connections), "-z", f"{shot.duration_s:g}s"]
        return [sys.executable, "-c", SCRIPT, *load]

    return Generator("velodrome load", command, lambda _: Report(0, 0), generators.velodrome("auto").version)


def run(target: Recorder, generator: Generator) -> float:
    """Return the milliseconds of one contestant once."""
    target.arrivals()
    # The target's stamps are of this clock.
    began = time.time_ns()
    done = drive(generator.command(Shot(target.url, 1, 0.2)))
    arrivals = target.arrivals()
    if done.status or not arrivals:
        raise RuntimeError(f"{generator.name} failed: {done.output[-500:]}")
    return (arrivals[0] - began) / 1e6


def tables(rounds: int) -> list[Table]:
    """The table of this benchmark."""
    contestants, missing = generators.present(
        ("velodrome", generators.velodrome("auto")),
        ("velodrome load", command_line()),
        ("wrk", generators.wrk()),
        ("oha", generators.oha()),
        ("h2load", generators.h2load()),
    )
    with Recorder() as target:
        seen = interleaved(contestants, lambda generator: run(target, generator), rounds)
    rows = tuple(
        (f"{generator.name} {generator.version}", f"{middle(runs):.0f} ms", extent(runs, 0))
        for generator, runs in zip(contestants, seen, strict=True)
    )
    return [
        Table(
            "From start to first request",
            f"One connection, {rounds} interleaved rounds, medians; the start of the process included.",
            ("generator", "first request after", "of rounds, ms"),
            rows,
            (
                "velodrome auto is the engine in a bare Python; velodrome load has the command line before it.",
                *absent(missing),
            ),
        )
    ]


if __name__ == "__main__":
    show(tables, __doc__)
