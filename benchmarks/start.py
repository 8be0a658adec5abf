"""From the start of the process to its first request, seen at the target: how long one waits for a generator.

Python programs start as they do where they were installed, from compiled modules. What the interpreter itself takes is
measured as well: a process that does nothing, from its start to its end.
"""

import os
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager

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


@contextmanager
def compiled() -> Iterator[None]:
    """Let interpreters keep what they compiled, whatever the environment says; the first of each kind compiles."""
    before = dict(os.environ)
    with tempfile.TemporaryDirectory(prefix="velodrome-bench-") as folder:
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        os.environ["PYTHONPYCACHEPREFIX"] = folder
        try:
            yield
        finally:
            os.environ.clear()
            os.environ.update(before)


def idle_ms() -> float:
    """Return the milliseconds of an interpreter that does nothing."""
    return drive([sys.executable, "-c", "pass"]).wall_s * 1000


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
    with Recorder() as target, compiled():
        for generator in contestants:
            run(target, generator)
        seen = interleaved(contestants, lambda generator: run(target, generator), rounds)
        idle = middle(idle_ms() for _ in range(2 * rounds))
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
                f"An interpreter that does nothing ends after {idle:.0f} ms.",
                *absent(missing),
            ),
        )
    ]


if __name__ == "__main__":
    show(tables, __doc__)
