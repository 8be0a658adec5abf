"""Whether a setting survives more workers: what was seen with how many, on which connections, and what that comes to.

The loads of such a check are trials like any other, with `PART` as their part of the question: stored in the same file,
and never ranked.
"""

from collections.abc import Iterable
from dataclasses import dataclass

PART = "workers"
UNEQUAL = 1.5
"""Work of the busiest worker, of an equal share: connections that fall on workers by chance, ten to each, differ by a
third."""
CONNECTIONS_EACH = 10
"""Connections for each worker; fewer are unequal by chance."""
WORK_S = 0.1
"""CPU seconds of all workers; less is start-up and housekeeping."""


def busiest(cpu_s: Iterable[float], workers: int, connections: int) -> float | None:
    """Return the work of the busiest of so many workers, of an equal share; None where that says nothing.

    `cpu_s` are the CPU seconds of all processes of the server. The master, and helpers such as multiprocessing's, use
    next to nothing: the busiest are the workers.
    """
    most = sorted(cpu_s, reverse=True)[:workers]
    total = sum(most)
    if workers < 2 or connections < CONNECTIONS_EACH * workers or total < WORK_S:
        return None
    return most[0] * workers / total


@dataclass(frozen=True)
class WorkersSeen:
    """One load of a setting with so many workers."""

    workers: int
    load: str
    """Its label: `closed-64`, `open-100-close`."""
    fresh: bool
    """Whether each request had a connection of its own; else connections were reused."""
    again: int
    """0 for the first time, 1 for the repeat that confirms or refutes what the first showed."""
    throughput_rps: float = 0.0
    """Right answers a second."""
    error_share: float = 0.0
    p50_ms: float | None = None
    p90_ms: float | None = None
    """From due."""
    cpus: float = 0.0
    """CPUs that the server kept busy."""
    busiest: float | None = None
    """Work of the busiest worker, of an equal share; None: too few connections or too little work to tell."""
    failed: str = ""
    """Why it could not be measured; empty: it was."""


@dataclass(frozen=True)
class WorkerCheck:
    """What the check of one contestant came to."""

    contestant: str
    """Its label."""
    survived: bool | None
    """None: it has no such setting, or what was measured does not tell."""
    sentence: str
    """What was seen, with the figures."""
    problems: tuple[str, ...] = ()
    """Why it is not recommended: each seen twice."""
    scales_to: int | None = None
    """The most workers with which it gave at least half of what as many separate workers would; None: not judged."""
    seen: tuple[WorkersSeen, ...] = ()
