"""What the kernel counts around a trial: the accept queue of a port, CPU of the whole machine, swap.

Sources: proc_stat(5), proc_net_netstat (TcpExt in `man nstat`), proc_vmstat(5), sock_diag(7). Everything is
None on macOS, which has none of them.
"""

import os
import sys
import time
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeVar

from velodrome.model.measurement import CpuLosses, HostFacts, QueueFacts
from velodrome.run.machine import netlink

Number = TypeVar("Number", int, float)

_TICK_S = 1.0 / os.sysconf("SC_CLK_TCK")
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
NAMED_FROM = 0.1
"""An other process is named when it used this part of a CPU: less moves no figure that repeats can tell
apart.
"""

Processes = Mapping[tuple[int, int], tuple[str, float]]
"""(process id, start) -> (name, CPU seconds with those of children that have ended)."""


@dataclass(frozen=True)
class CpuTimes:
    """One CPU, or all of them together, since the machine started; seconds of CPU."""

    busy_s: float
    """Went to anything but idling, waiting for disks, and other machines."""
    steal_s: float


@dataclass(frozen=True)
class Counters:
    """The machine at one moment; None where it does not tell."""

    at_ns: int
    busy_s: float | None = None
    """CPU seconds of all CPUs that went to anything but idling, waiting for disks, and other machines."""
    steal_s: float | None = None
    """CPU seconds that this machine wanted and its host gave to others."""
    overflows: int | None = None
    """Connections any listening socket of this thread's network namespace turned away because its queue was full."""
    swapped_bytes: int | None = None
    processes: Processes | None = None
    closed_unread: int | None = None
    """Connections of this network namespace that were closed with data unread in them."""
    cpus: Mapping[int, CpuTimes] | None = None
    """Each CPU by itself, by its number."""


def read() -> Counters:
    """Read all counters: about 2 ms with a hundred processes. Never raises."""
    at_ns = time.monotonic_ns()
    if sys.platform != "linux":
        return Counters(at_ns)
    cpus = _cpus()
    every = cpus.pop(ALL, None)
    busy, steal = (every.busy_s, every.steal_s) if every else (None, None)
    tcp = tcp_counters()
    overflows, unread = tcp.get("ListenOverflows"), tcp.get("TCPAbortOnClose")
    return Counters(at_ns, busy, steal, overflows, _swapped(), _processes(), unread, cpus or None)


def host_facts(before: Counters, after: Counters, known_cpu_s: float, known: Collection[int]) -> HostFacts:
    """Return what the rest of the machine did between two readings.

    `known_cpu_s` is what server, generator, upstream and velodrome used meanwhile, `known` their processes.

    What others used is known from two sources, and the smaller counts. The machine's own clock looks who runs at each
    tick; a load at 1,000/s beats with the ticks, so that it is seen at all of them or at none. The clocks of
    the other processes are exact, but a process that reaps a child is charged with all the child ever did.
    """
    other = None
    if before.busy_s is not None and after.busy_s is not None:
        other = max(0.0, after.busy_s - before.busy_s - known_cpu_s)
        if before.processes is not None and after.processes is not None:
            other = min(other, sum(used for _, used in _others(before.processes, after.processes, known)))
    return HostFacts(
        steal_s=difference(before.steal_s, after.steal_s),
        other_cpu_s=other,
        busiest_other=_busiest(before, after, known),
        swapped_bytes=difference(before.swapped_bytes, after.swapped_bytes),
        closed_unread=difference(before.closed_unread, after.closed_unread),
    )


def losses(
    before: Counters, after: Counters, cpus: Collection[int], known_cpu_s: float, other_cpu_s: float | None
) -> CpuLosses | None:
    """Return what these CPUs lost between two readings; None where the machine does not tell of each.

    `known_cpu_s` is what the trial's own processes used that may run on them; a process that may run elsewhere as well
    is counted as if it had been here all the time, so that nothing of the trial is taken for others. `other_cpu_s` is
    what others used of the whole machine, and no more than that can have been here.
    """
    if (
        before.cpus is None
        or after.cpus is None
        or not cpus
        or not before.cpus.keys() & after.cpus.keys() >= {*cpus}
    ):
        return None
    busy = sum(after.cpus[cpu].busy_s - before.cpus[cpu].busy_s for cpu in cpus)
    stolen = sum(after.cpus[cpu].steal_s - before.cpus[cpu].steal_s for cpu in cpus)
    other = None if other_cpu_s is None else min(max(0.0, busy - known_cpu_s), other_cpu_s)
    return CpuLosses(tuple(sorted(cpus)), max(0.0, stolen), other)


class ListenQueue:
    """The accept queue of one port, watched from `begin` on; of several (SO_REUSEPORT) the fullest."""

    def __init__(self, port: int) -> None:
        self.port = port
        self._peak: int | None = None
        self._limit: int | None = None
        self._drops_before: int | None = None

    def sample(self) -> int | None:
        """Look once; return how many connections wait to be accepted."""
        sockets = netlink.listening(self.port)
        if not sockets:
            return None
        fullest = max(sockets, key=lambda sock: sock.receive)
        self._peak = max(self._peak or 0, fullest.receive)
        self._limit = fullest.send
        return fullest.receive

    def begin(self) -> None:
        """Forget what was seen; the measured span begins."""
        self._peak = None
        self._drops_before = self._drops()
        self.sample()

    def facts(self, before: Counters, after: Counters) -> QueueFacts:
        """Return what happened since `begin`; the counters are of the same span.

        Overflows are counted for the whole machine only; no more of them are this port's than it dropped.
        """
        overflows = difference(before.overflows, after.overflows)
        drops = difference(self._drops_before, self._drops())
        if overflows is not None and drops is not None:
            overflows = min(overflows, drops)
        return QueueFacts(peak=self._peak, limit=self._limit, overflows=overflows, drops=drops)

    def _drops(self) -> int | None:
        sockets = netlink.listening(self.port)
        if not sockets or any(sock.drops is None for sock in sockets):
            return None
        return sum(sock.drops or 0 for sock in sockets)


def difference(before: Number | None, after: Number | None) -> Number | None:
    """Return by how much a counter rose; None where one reading is missing."""
    if before is None or after is None:
        return None
    return max(after - before, after - after)  # never below zero, and of the same type


ALL = -1
"""Stands for all CPUs together among their numbers."""


def _cpus() -> dict[int, CpuTimes]:
    """Return each CPU that is on, and `ALL` together; nothing where the kernel does not tell."""
    found = {}
    try:
        with open("/proc/stat") as file:
            for line in file:
                name, *fields = line.split()
                if not name.startswith("cpu"):
                    break
                user, nice, system, _idle, _wait, irq, softirq, steal = map(int, fields[:8])
                busy = user + nice + system + irq + softirq
                found[int(name[3:] or ALL)] = CpuTimes(busy * _TICK_S, steal * _TICK_S)
    except (OSError, ValueError):
        return {}
    return found


def tcp_counters() -> dict[str, int]:
    """Return what the kernel counts of TCP in this thread's network namespace, by name (TcpExt, see nstat(8)).

    Nothing where it does not tell.
    """
    try:
        with open("/proc/thread-self/net/netstat") as file:  # /proc/net is that of the first thread
            names, values = file.readline().split(), file.readline().split()
        return dict(zip(names[1:], map(int, values[1:]), strict=True))
    except (OSError, ValueError):
        return {}


def _swapped() -> int | None:
    try:
        with open("/proc/vmstat") as file:
            pages = dict(line.split() for line in file)
        return (int(pages["pswpin"]) + int(pages["pswpout"])) * _PAGE_BYTES
    except (OSError, KeyError, ValueError):
        return None


def _processes() -> dict[tuple[int, int], tuple[str, float]]:
    found = {}
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            with open(f"/proc/{entry}/stat", "rb") as file:
                text = file.read()
        except OSError:
            continue
        name = text[text.index(b"(") + 1 : text.rindex(b")")].decode(errors="replace")
        fields = text[text.rindex(b")") + 2 :].split(None, 20)
        found[int(entry), int(fields[19])] = name, sum(map(int, fields[11:15])) * _TICK_S
    return found


def _busiest(before: Counters, after: Counters, known: Collection[int]) -> str:
    """Return the name of the other process that used most, or nothing when all used little."""
    if before.processes is None or after.processes is None:
        return ""
    least = NAMED_FROM * (after.at_ns - before.at_ns) / 1e9
    name, most = "", least
    for their_name, used in _others(before.processes, after.processes, known):
        if used >= most:
            name, most = their_name, used
    return name


def _others(before: Processes, after: Processes, known: Collection[int]) -> Iterator[tuple[str, float]]:
    """Yield the name of every process that is not known, and the CPU seconds it used in between."""
    for (pid, started), (name, cpu_s) in after.items():
        if pid not in known:
            yield name, max(0.0, cpu_s - before.get((pid, started), ("", 0.0))[1])
