"""What the kernel counts around a trial: the accept queue of a port, CPU of the whole machine, swap.

It also knows whether two processes share an open file: one was forked from the other, which had opened it before.

Sources: proc_stat(5), proc_net_netstat (TcpExt in `man nstat`), proc_vmstat(5), sock_diag(7), kcmp(2). Everything is
None on macOS, which has none of them.
"""

import ctypes
import os
import platform
import socket
import sys
import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar
from urllib.parse import urlsplit

from velodrome.model.bottleneck import ServerUse
from velodrome.model.measurement import CpuLosses, HostFacts, QueueFacts
from velodrome.run.machine import netlink
from velodrome.run.machine.limits import below

UNITS_S = {"throttled_usec": 1e-6, "throttled_time": 1e-9}
"""Of version 2 and of version 1."""


class Throttling:
    """The groups that a process is in when this is made, and all above them."""

    def __init__(self, pid: int, proc: Path = Path("/proc")) -> None:
        self._files: tuple[Path, ...] = ()
        with suppress(OSError, ValueError):
            mounts = (proc / "self" / "mountinfo").read_text()
            groups = (proc / str(pid) / "cgroup").read_text()
            self._files = tuple(_files(mounts, groups))

    def seconds(self) -> float | None:
        """Return the sum over these groups; None where none of them tells."""
        known = [found for file in self._files if (found := _throttled_s(file)) is not None]
        return sum(known) if known else None

    def periods(self) -> tuple[int, int] | None:
        """Return periods in which a quota was in force, and those in which it was spent, of all these groups.

        None where none of them tells.
        """
        counted = [found for file in self._files if (found := _periods(file)) is not None]
        return (sum(count for count, _ in counted), sum(count for _, count in counted)) if counted else None


def _files(mounts: str, groups: str) -> Iterator[Path]:
    """Yield `cpu.stat` of each group, the innermost first."""
    own = {names: path for _, names, path in (line.split(":", 2) for line in groups.splitlines())}
    for line in mounts.splitlines():
        before, _, after = line.partition(" - ")
        root, mount = before.split()[3:5]
        kind, _, options = after.split()[:3]
        if kind == "cgroup" and "cpu" in options.split(","):
            path = next((path for names, path in own.items() if "cpu" in names.split(",")), None)
        elif kind == "cgroup2":
            path = own.get("")
        else:
            continue
        if path is None:
            continue
        top = Path(mount)
        folder = below(top, root, path)
        for parent in (folder, *folder.parents):
            if (parent / "cpu.stat").exists():
                yield parent / "cpu.stat"
            if parent == top:
                break


def _fields(file: Path) -> dict[str, str]:
    return dict(line.split() for line in file.read_text().splitlines())


def _periods(file: Path) -> tuple[int, int] | None:
    try:
        fields = _fields(file)
        return int(fields["nr_periods"]), int(fields["nr_throttled"])
    except (OSError, ValueError, KeyError):
        return None


def _throttled_s(file: Path) -> float | None:
    try:
        fields = _fields(file)
        return next(int(fields[name]) * unit for name, unit in UNITS_S.items() if name in fields)
    except (OSError, ValueError, StopIteration):
        return None  # the group has gone, or has no quota to tell of


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


@dataclass(frozen=True)
class Listener:
    """A socket that listens on the server's port and is not the server's."""

    address: str
    pid: int | None
    """Who holds it, where that may be known."""
    name: str


def connections(port: int, pids: Iterable[int]) -> Mapping[int, int] | None:
    """Return established connections to `port` by the process that accepted them; None where it cannot be
    told.

    A connection inherited by several processes counts for each. About 2 us for each descriptor of these
    processes.
    """
    sockets = netlink.established_sockets(port)
    if sockets is None:
        return None
    wanted = {sock.inode for sock in sockets if sock.inode}
    return {pid: sum(inode in wanted for inode in _inodes(pid)) for pid in pids}


def holders(port: int) -> tuple[int, ...]:
    """Return the processes that hold a socket listening on `port`; empty where it is unknown.

    Looks at every descriptor of every process that may be looked at, some 2 us each.
    """
    wanted = {sock.inode for sock in netlink.listening(port) or () if sock.inode}
    return tuple(dict.fromkeys(pid for _, pid in _holders(wanted, ()))) if wanted else ()


def foreign(port: int, pids: Collection[int]) -> tuple[Listener, ...]:
    """Return the listeners of `port` that none of `pids` holds; empty where it is unknown."""
    sockets = netlink.listening(port) or ()
    ours = {inode for pid in pids for inode in _inodes(pid)} if sockets else set()
    strangers = {sock.inode: sock.address for sock in sockets if sock.inode not in ours}
    if not strangers or not ours:
        return ()
    holders = dict(_holders(strangers.keys(), pids))
    return tuple(
        Listener(address, holders.get(inode), _name(holders.get(inode)))
        for inode, address in strangers.items()
    )


def _inodes(pid: int) -> Iterator[int]:
    """Yield the inode of every socket a process holds."""
    folder = f"/proc/{pid}/fd"
    try:
        entries = os.listdir(folder)
    except OSError:
        return
    for entry in entries:
        try:
            link = os.readlink(f"{folder}/{entry}")
        except OSError:
            continue
        if link.startswith("socket:["):
            yield int(link[8:-1])


def _holders(wanted: Collection[int], but: Collection[int]) -> Iterator[tuple[int, int]]:
    for entry in os.listdir("/proc"):
        if entry.isdigit() and int(entry) not in but:
            yield from ((inode, int(entry)) for inode in _inodes(int(entry)) if inode in wanted)


def _name(pid: int | None) -> str:
    if pid is None:
        return ""
    try:
        with open(f"/proc/{pid}/comm") as file:
            return file.read().strip()
    except OSError:
        return ""


PORTS = {"http": 80, "https": 443, "ws": 80, "wss": 443, "grpc": 80, "grpcs": 443}
MOST_THREADS = 512
"""Above this many the server is not looked at: it would take over 5 ms of the generator's time."""


LEAST_SEEN_S = 0.1
"""Between two looks: what threads had of less says nothing of the load. A thread that waits for its turn a few
milliseconds looks idle, and one that was in the middle of a response looks busy."""


@dataclass(frozen=True)
class _Ran:
    cpu_ns: int
    queued_ns: int


class Serving:
    """The processes of a server, looked at twice."""

    def __init__(self, pids: tuple[int, ...]) -> None:
        self.pids = pids
        self._before: Mapping[tuple[int, str], _Ran] = {}
        self._after: Mapping[tuple[int, str], _Ran] = {}
        self._began = self._ended = 0.0

    def begin(self) -> None:
        """The measured span begins."""
        self._before = _threads(self.pids)
        self._began = time.monotonic()

    def end(self) -> None:
        """It ends."""
        self._after = _threads(self.pids)
        self._ended = time.monotonic()

    def use(self) -> ServerUse | None:
        """Return what they had between the two; None where it is unknown, or the two are too near each other."""
        none = _Ran(0, 0)
        ran = {}
        for thread, after in self._after.items():
            before = self._before.get(thread, none)
            ran[thread] = (after.cpu_ns - before.cpu_ns, after.queued_ns - before.queued_ns)
        if not self._before or not ran or self._ended - self._began < LEAST_SEEN_S:
            return None
        busiest = max(ran.values(), key=sum)
        return ServerUse(
            span_s=self._ended - self._began,
            processes=len({pid for pid, _ in ran}),
            threads=len(ran),
            cpu_s=sum(cpu for cpu, _ in ran.values()) / 1e9,
            queued_s=sum(queued for _, queued in ran.values()) / 1e9,
            busiest_cpu_s=busiest[0] / 1e9,
            busiest_queued_s=busiest[1] / 1e9,
            cpus=len(_cpus_of({pid for pid, _ in ran})),
        )


def who_serves(url: str) -> Serving | None:
    """Return the server of a URL, where it is on this machine and may be looked at, and is not this process."""
    parts = urlsplit(url)
    try:
        port = parts.port or PORTS.get(parts.scheme)
    except ValueError:
        return None
    if sys.platform != "linux" or port is None or not _is_here(parts.hostname or ""):
        return None
    pids = tuple(pid for pid in holders(port) if pid != os.getpid())
    return Serving(pids) if pids and len(_threads(pids)) <= MOST_THREADS else None


def _is_here(host: str) -> bool:
    """Whether a host is this machine's loopback; no name is looked up for it."""
    if host == "localhost":
        return True
    for family, loopback in ((socket.AF_INET, b"\x7f"), (socket.AF_INET6, b"\0" * 15 + b"\1")):
        try:
            if socket.inet_pton(family, host).startswith(loopback):
                return True
        except OSError:
            continue
    return False


def _threads(pids: tuple[int, ...]) -> dict[tuple[int, str], _Ran]:
    found = {}
    for pid in pids:
        folder = f"/proc/{pid}/task"
        try:
            names = os.listdir(folder)
        except OSError:
            continue
        for name in names:
            try:
                with open(f"{folder}/{name}/schedstat", "rb") as file:
                    cpu, queued, _ = file.read().split()
            except (OSError, ValueError):
                continue
            found[pid, name] = _Ran(int(cpu), int(queued))
    return found


def _cpus_of(pids: set[int]) -> set[int]:
    """Return the CPUs that processes may run on, control groups aside."""
    found: set[int] = set()
    for pid in pids:
        try:
            found |= os.sched_getaffinity(pid)
        except OSError:
            continue
    return found or set(range(os.cpu_count() or 1))


# --- kcmp(2).

KCMP = {"x86_64": 312, "aarch64": 272, "riscv64": 272}
"""The number of the system call, by machine."""
KCMP_FILE = 0


def same_open_file(pid: int, descriptor: int, other: int, others: int) -> bool | None:
    """Return whether both descriptors are of one open file; None: this system does not tell, or one has gone."""
    number = KCMP.get(platform.machine())
    if number is None or platform.system() != "Linux":
        return None
    call = ctypes.CDLL(None, use_errno=True).syscall
    call.restype = ctypes.c_long
    found = call(*map(ctypes.c_long, (number, pid, other, KCMP_FILE, descriptor, others)))
    return None if found < 0 else bool(found == 0)


def tells_open_files() -> bool:
    """Return whether this system tells which files processes share."""
    reading, writing = os.pipe()
    try:
        return same_open_file(os.getpid(), reading, os.getpid(), reading) is True
    finally:
        os.close(reading)
        os.close(writing)
