"""What /proc shows of a server's processes: which there are, what they use and what they may.

processes.tree(pid)                 [4211, 4212, 4213]: a server's first process, and all that it started
processes.memory(pid)               bytes that these have for themselves
processes.calls_and_cpu(server)     (412.0, 1.83): calls to third parties, and CPU seconds of all processes
"""

import os
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import psutil

from velodrome.run.instruments.standing import Standing
from velodrome.run.link import enter
from velodrome.run.machine import netlink
from velodrome.run.machine.facts import quota_cpus

HEAP = 64 * 2**20
"""Bytes to which the heaps of malloc's arenas are aligned, but the first's (glibc on 64 bits)."""


def tree(root: int) -> list[int]:
    """Return a process and all that it started."""
    with suppress(psutil.Error, OSError):
        return [root, *(process.pid for process in psutil.Process(root).children(recursive=True))]
    return []


def busiest(server: Standing) -> int:
    """Return the process of a server that used the most CPU time: the one that works."""
    used: dict[int, float] = {}
    for pid in tree(server.booted.server.pid):
        with suppress(psutil.Error, OSError):
            used[pid] = sum(psutil.Process(pid).cpu_times()[:2])
    return max(used, key=lambda pid: used[pid], default=server.booted.server.pid)


def workers(server: Standing, port: int) -> set[int]:
    """Return the processes of a server that can take its connections."""
    holding = _listening(server, port)
    return {pid for pid in holding if pid != server.booted.server.pid} or holding


def helpers(server: Standing) -> set[int]:
    """Return the processes that a server or its app started and that cannot take its connections."""
    holding = _listening(server, server.booted.server.serving.port)
    return set(tree(server.booted.server.pid)) - holding if holding else set()


def _listening(server: Standing, port: int) -> set[int]:
    with enter(server.booted.site.server):
        inodes = {sock.inode for sock in netlink.listening(port) or ()} - {0}
    return set(holders(server.booted.server.pid, inodes))


def holders(root: int, inodes: set[int]) -> dict[int, int]:
    """Return how many of these sockets each process of a tree holds."""
    found: Counter[int] = Counter()
    for pid in tree(root):
        with suppress(OSError):
            for name in os.listdir(f"/proc/{pid}/fd"):
                with suppress(OSError, ValueError):
                    link = os.readlink(f"/proc/{pid}/fd/{name}")
                    found[pid] += link.startswith("socket:[") and int(link[8:-1]) in inodes
    return {pid: count for pid, count in found.items() if count}


def calls_and_cpu(server: Standing) -> tuple[float, float]:
    """Return how often it had others work so far, and its CPU seconds.

    By calls to simulated third parties, or, if more, by what its processes count themselves (`Standing.worked`).
    """
    called = sum(third_party.so_far() for third_party in server.booted.upstreams)
    worked = server.worked()
    beside = helpers(server) if worked else set()
    calls = max(called, sum(count for pid, count in worked.items() if pid not in beside))
    return float(calls), cpu_s(tree(server.booted.server.pid))


def cpu_s(pids: Iterable[int]) -> float:
    """Return the CPU seconds that processes used so far."""
    used = 0.0
    for pid in pids:
        with suppress(psutil.Error, OSError):
            times = psutil.Process(pid).cpu_times()
            used += times.user + times.system
    return used


def memory(root: int) -> float:
    """Return the bytes that the processes of a tree have for themselves."""
    found = 0.0
    for pid in tree(root):
        with suppress(OSError, ValueError), open(f"/proc/{pid}/smaps_rollup") as file:
            found += sum(1024 * int(line.split()[1]) for line in file if line.startswith("Private_Dirty:"))
    return found


def heaps(pid: int) -> list[float]:
    """Return the dirty bytes of each heap of malloc's arenas in a process, but the first arena's."""
    found: list[float] = []
    inside = False
    with suppress(OSError, ValueError), open(f"/proc/{pid}/smaps") as lines:
        for line in lines:
            words = line.split()
            if "-" in words[0] and not words[0].endswith(":"):
                begin = int(words[0].split("-")[0], 16)
                inside = len(words) == 5 and begin % HEAP == 0
            elif inside and words[0] == "Private_Dirty:":
                found.append(1024.0 * int(words[1]))
                inside = False
    return [one for one in found if one]


def descriptors(root: int) -> float:
    """Return how many descriptors the processes of a tree have open."""
    found = 0
    for pid in tree(root):
        with suppress(OSError):
            found += len(os.listdir(f"/proc/{pid}/fd"))
    return found


def open_files(pid: int) -> int:
    """Return how many files a process may open; 0: that is not known."""
    with suppress(OSError, ValueError), open(f"/proc/{pid}/limits") as lines:
        for line in lines:
            if line.startswith("Max open files"):
                return int(line.split()[3])
    return 0


def epolls_of(pid: int) -> list[int]:
    """Return the descriptors of a process that are of epoll."""
    found = []
    with suppress(OSError, ValueError):
        for name in os.listdir(f"/proc/{pid}/fd"):
            with suppress(OSError):
                if os.readlink(f"/proc/{pid}/fd/{name}") == "anon_inode:[eventpoll]":
                    found.append(int(name))
    return found


def quota_of(pid: int) -> float | None:
    """Return the CPUs that its control groups pay for; None: as many as there are."""
    with suppress(OSError, ValueError):
        return quota_cpus(Path(f"/proc/{pid}/cgroup").read_text())
    return None
