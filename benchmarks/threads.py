"""Several threads: whether a request costs each of two threads what it costs one alone.

Two threads and a target do not fit on two CPUs, so requests per second cannot show on such a machine whether threads
add up. What can be measured: CPU for each request, with all threads on the CPUs that are not the target's. It holds
what switching between threads costs where there are more of them than CPUs; a lock or a counter they shared would show
on top of that only where they run at the same time.
"""

import os
import subprocess

import generators
from closed_loop import Seen, ratio
from floors import Plain
from generators import Generator, Shot
from rounds import Table, interleaved, middle, show, spread
from track import cpus

DURATION_S = 1.0
CONNECTIONS = 64
COUNTS = (1, 2, 4)


def run(target: Plain, generator: Generator, threads: int) -> Seen:
    """So many threads once, on all CPUs but the target's."""
    before = target.requests()
    shot = Shot(target.url, CONNECTIONS, DURATION_S, threads=threads)
    free = os.sched_getaffinity(0) - {cpus()[0]} or {cpus()[0]}
    child = subprocess.Popen(
        generator.command(shot),
        stdout=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: os.sched_setaffinity(0, free),  # noqa: PLW1509 - there are no threads
    )
    assert child.stdout
    text = child.stdout.read()
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise RuntimeError(f"{generator.name} failed: {text[-500:]}")
    report, cpu_s = generator.read(text), usage.ru_utime + usage.ru_stime
    requests = target.requests() - before
    return Seen(
        requests / cpu_s,
        requests / DURATION_S,
        cpu_s / DURATION_S,
        report.errors,
        report.requests / max(1, requests),
    )


def tables(rounds: int) -> list[Table]:
    """The table of this benchmark."""
    ours, wrk = generators.velodrome("auto"), generators.wrk()
    contestants = [(generator, count) for generator in (ours, wrk) if generator for count in COUNTS]
    with Plain() as target:
        seen = interleaved(contestants, lambda contestant: run(target, *contestant), rounds)
    alone = {
        generator.name: runs for (generator, count), runs in zip(contestants, seen, strict=True) if count == 1
    }
    rows = tuple(
        (
            f"{generator.name} {generator.version}, {count} thread{'s' if count > 1 else ''}",
            f"{middle(repeat.per_cpu_s for repeat in runs) / 1000:.1f} k",
            spread([repeat.per_cpu_s for repeat in runs]),
            f"{ratio(runs, alone[generator.name]):.2f}",
            f"{middle(repeat.per_s for repeat in runs) / 1000:.1f} k",
            f"{middle(repeat.busy for repeat in runs) * 100:.0f} %",
            f"{sum(repeat.errors for repeat in runs)}",
        )
        for (generator, count), runs in zip(contestants, seen, strict=True)
    )
    count = len(os.sched_getaffinity(0))
    columns = ("requests per CPU-second", "spread", "of one thread's", "requests/s", "of a CPU", "errors")
    return [
        Table(
            "Several threads",
            f"{CONNECTIONS} connections in all, {rounds} interleaved rounds of {DURATION_S:g} s, medians.",
            ("generator", *columns),
            rows,
            (
                f"{count} CPUs, one of them the target's: requests per second tell nothing of threads here, nor what "
                "threads that run at once cost each other."
                if count <= 2
                else f"{count} CPUs, one of them the target's.",
            ),
        )
    ]


if __name__ == "__main__":
    show(tables, __doc__)
