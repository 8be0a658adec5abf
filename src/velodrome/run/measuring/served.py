"""Who serves a port of this machine, and what its threads have of the CPUs.

    serving = who_serves("http://127.0.0.1:8000/")
    serving.begin(); ... ; serving.end()
    use = serving.use()

Found by the listening socket: every process that holds it is taken for the server. CPU time and waiting for a CPU are
those of /proc/PID/task/TID/schedstat (Documentation/scheduler/sched-stats.rst), in nanoseconds; reading one takes
10 us.
"""

import os
import socket
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from velodrome.model.bottleneck import ServerUse
from velodrome.run.measuring import listeners

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
        """Return what they had between the two; None where it cannot be told."""
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
    pids = tuple(pid for pid in listeners.holders(port) if pid != os.getpid())
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
