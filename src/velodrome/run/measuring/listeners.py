"""Who holds the sockets of a port: connections by process, listeners that are not the server's, and a server's threads.

A second server may bind the same port in silence (SO_REUSEPORT: grpcio does) and take a share of the connections.

    serving = who_serves("http://127.0.0.1:8000/")
    serving.begin(); ... ; serving.end()
    use = serving.use()

CPU time of threads and their waiting for a CPU are those of /proc/PID/task/TID/schedstat
(Documentation/scheduler/sched-stats.rst), in nanoseconds; reading a file takes 10 us.
"""

import os
import socket
import sys
import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from velodrome.model.bottleneck import ServerUse
from velodrome.run.machine import netlink


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
    sockets = netlink.established(port)
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
        """Return what they had between the two; None where it is unknown."""
        none = _Ran(0, 0)
        ran = {}
        for thread, after in self._after.items():
            before = self._before.get(thread, none)
            ran[thread] = (after.cpu_ns - before.cpu_ns, after.queued_ns - before.queued_ns)
        if not self._before or not ran or self._ended <= self._began:
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
            cpus=len(_cpus({pid for pid, _ in ran})),
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


def _cpus(pids: set[int]) -> set[int]:
    """Return the CPUs that processes may run on, control groups aside."""
    found: set[int] = set()
    for pid in pids:
        try:
            found |= os.sched_getaffinity(pid)
        except OSError:
            continue
    return found or set(range(os.cpu_count() or 1))
