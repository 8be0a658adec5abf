"""From what a sampler read at moments to the facts of a span; pure functions."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from velodrome.model.measurement import HostFacts, QueueFacts, ServerFacts, ServerSample, WorkerUse
from velodrome.run.measuring.kernel import Counters, host_facts
from velodrome.run.measuring.listeners import Listener
from velodrome.run.measuring.usage import TreeUse

Switches = Mapping[int, tuple[int, int]] | None


@dataclass(frozen=True)
class Moment:
    """Everything read at one end of the measured span."""

    due_ns: int
    """When the engine says it was."""
    use: TreeUse
    counters: Counters
    companions_cpu_s: Mapping[int, float]
    """CPU seconds of engine and upstream so far, by process id."""
    host_cpu_s: float
    """CPU seconds of velodrome's own process so far."""
    switches: Switches
    beside: Mapping[str, TreeUse] = field(default_factory=dict)
    """Process trees of databases, by name."""

    @property
    def late_s(self) -> float:
        """How late it was read."""
        return max(0.0, (self.use.at_ns - self.due_ns) / 1e9)


@dataclass(frozen=True)
class Rest:
    """The server with nothing to do, before any load."""

    root: int
    """Its first process: the master, where there are several."""
    processes: tuple[int, ...]
    cpus: float | None
    """CPUs used, e.g. 1.0: one whole CPU; None: not watched."""
    busy: Mapping[int, float]
    """CPUs used by process, those that used more than a twentieth of one."""


@dataclass(frozen=True)
class Sampled:
    """Everything a sampler saw. The first three go into a measurement, the rest feeds its flags."""

    server: ServerFacts
    queue: QueueFacts
    host: HostFacts
    rest: Rest
    root_alive: bool
    """Whether the server's first process lived at the end of the span."""
    gone: tuple[int, ...]
    """Processes that were there at rest and not at the end of the span."""
    came: tuple[int, ...]
    """Processes that were there at the end of the span and not at rest."""
    foreign: tuple[Listener, ...]
    """Who else listens on the server's port."""
    span_s: float
    """Length of the span as sampled."""
    late_s: float
    """How late CPU was read after the span began, plus how late after it ended."""
    own_cpu_s: float
    """CPU that sampling itself used over the span."""
    beside_cpu_s: Mapping[str, float] = field(default_factory=dict)
    """CPU seconds of databases over the span, by name."""


def cpu_by_process(before: TreeUse, after: TreeUse) -> dict[int, float]:
    """Return the CPU seconds each process alive at the end used since `before`, with its dead children's."""
    then = {(process.pid, process.started): process for process in before.processes}
    used = {}
    for process in after.processes:
        old = then.get((process.pid, process.started))
        total = process.cpu_s + process.children_cpu_s
        used[process.pid] = max(0.0, total - (old.cpu_s + old.children_cpu_s if old else 0.0))
    return used


def span_cpu(begin: Moment, end: Moment) -> tuple[float, float]:
    """Return (CPU, user CPU) seconds of the server over the span.

    What was used between the true beginning and its reading is missing and put back at the mean rate; what
    was used between the true end and its reading is not taken off, because there the load had stopped.
    """
    read_s = max(1e-9, (end.use.at_ns - begin.use.at_ns) / 1e9 - end.late_s)
    missed = 1.0 + begin.late_s / read_s
    total = max(0.0, end.use.cpu_s - begin.use.cpu_s)
    user = min(total, max(0.0, end.use.cpu_user_s - begin.use.cpu_user_s))
    return total * missed, user * missed


def machine(begin: Moment, end: Moment, server_cpu_s: float) -> HostFacts:
    """Return what the rest of the machine did over the span."""
    companions = sum(
        max(0.0, cpu_s - begin.companions_cpu_s.get(pid, 0.0)) for pid, cpu_s in end.companions_cpu_s.items()
    )
    beside = sum(max(0.0, end.beside[name].cpu_s - use.cpu_s) for name, use in begin.beside.items())
    trees = (begin.use, end.use, *begin.beside.values(), *end.beside.values())
    known = {process.pid for use in trees for process in use.processes}
    known_cpu_s = server_cpu_s + companions + beside + end.host_cpu_s - begin.host_cpu_s
    return host_facts(
        begin.counters, end.counters, known_cpu_s, known | set(end.companions_cpu_s) | {os.getpid()}
    )


def server(
    begin: Moment,
    end: Moment,
    samples: Sequence[ServerSample],
    *,
    connections: Mapping[int, int] | None,
    pss_bytes: int | None,
    boot_s: float,
) -> ServerFacts:
    """Return what the server used over the span; `connections` are those of mid-span, by process."""
    cpu_s, user_s = span_cpu(begin, end)
    voluntary, involuntary = _switched(begin.switches, end.switches)
    fds = [sample.fds for sample in samples if sample.fds is not None]
    ends = (begin.use, end.use)
    return ServerFacts(
        cpu_s=cpu_s,
        cpu_user_s=user_s,
        cpu_sys_s=cpu_s - user_s,
        rss_peak_bytes=max(*(use.rss_bytes for use in ends), *(sample.rss_bytes for sample in samples)),
        pss_peak_bytes=pss_bytes,
        threads_peak=max(*(use.threads for use in ends), *(sample.threads for sample in samples)),
        fds_peak=max(fds, default=None),
        switches_voluntary=voluntary,
        switches_involuntary=involuntary,
        workers=tuple(
            WorkerUse(pid, used, None if connections is None else connections.get(pid, 0))
            for pid, used in cpu_by_process(begin.use, end.use).items()
        ),
        samples=tuple(samples),
        boot_s=boot_s,
    )


def _switched(before: Switches, after: Switches) -> tuple[int | None, int | None]:
    """Return switches between two readings of the processes alive at the second."""
    if before is None or after is None:
        return None, None
    pairs = [(count, before.get(pid, (0, 0))) for pid, count in after.items()]
    return (
        sum(max(0, now[0] - then[0]) for now, then in pairs),
        sum(max(0, now[1] - then[1]) for now, then in pairs),
    )
