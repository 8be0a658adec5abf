"""What the processes of a server use: CPU exact to the nanosecond on Linux, memory, threads, descriptors.

CPU of a tree = the CPU clock of every living process + what its dead children left with it (`cutime`,
`cstime`), so a server that forks for each connection is charged for all of it; a control group, where there
is one, accounts for every process that was ever in it. A child nobody waits for (SIGCHLD ignored) is lost
without a control group.

Numbers of /proc: proc_pid_stat(5). The clock of a process, all its threads included: clock_getcpuclockid(3),
made by hand because the standard library offers it for threads only.
"""

import os
import sys
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import psutil

LINUX = sys.platform == "linux"
_TICK_S = 1.0 / os.sysconf("SC_CLK_TCK")
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
MOST_SWITCH_FILES = 256
"""Context switches are reported per thread, some 15 us each to read: above this they are not read at all."""


@dataclass(frozen=True)
class ProcessUse:
    """One process at one moment. CPU in seconds since it started."""

    pid: int
    parent: int
    started: float
    """Tells a process from a later process with the same number; comparable on one machine only."""
    cpu_s: float
    """Its own, all threads, dead threads too."""
    user_share: float
    """Of its own CPU, the part spent outside the kernel, 0 to 1."""
    children_cpu_s: float
    """Of its children that have ended and were waited for."""
    rss_bytes: int
    threads: int
    name: str = ""


@dataclass(frozen=True)
class TreeUse:
    """A whole tree at one moment."""

    at_ns: int
    """CLOCK_MONOTONIC."""
    processes: tuple[ProcessUse, ...]
    """The root first, if it is alive."""
    cpu_s: float
    """Of all that ever ran in the tree."""
    cpu_user_s: float

    @property
    def rss_bytes(self) -> int:
        """Resident memory; pages shared by processes count for each."""
        return sum(process.rss_bytes for process in self.processes)

    @property
    def threads(self) -> int:
        """Threads of all processes."""
        return sum(process.threads for process in self.processes)


class Reader(Protocol):
    """Reads the processes of one server."""

    def use(self) -> TreeUse:
        """Read everything cheap about every process; never raises for a process that ends meanwhile."""

    def fds(self, pids: Iterable[int]) -> int | None:
        """Return how many file descriptors these processes hold, or None where it may not be known."""

    def switches(self, pids: Iterable[int]) -> Mapping[int, tuple[int, int]] | None:
        """Return context switches so far, (voluntary, involuntary) by process, or None where that costs too
        much.
        """

    def pss_bytes(self, pids: Iterable[int]) -> int | None:
        """Return memory with each shared page divided among its users. It holds up the process read."""


def of(root: int, group: Path | None = None) -> Reader:
    """Return the tree below `root` with the way of reading it that suits this system.

    `group` is a control group that holds the server and nothing else and accounts for CPU (v1 cpuacct or v2
    cpu).
    """
    if LINUX:
        return LinuxReader(root, group)
    return PortableReader(root)


def clock_s(pid: int) -> float:
    """Return the CPU seconds of a process, all its threads. Raises OSError when it is gone."""
    # MAKE_PROCESS_CPUCLOCK(pid, CPUCLOCK_SCHED) of the kernel's posix-timers_types.h
    return time.clock_gettime((~pid << 3) | 2)


def read_process(pid: int) -> ProcessUse | None:
    """Read /proc/PID/stat; None when the process is gone or a zombie that nobody has waited for yet."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            text = file.read()
        cpu_s = clock_s(pid)
    except OSError:
        return None
    name = text[text.index(b"(") + 1 : text.rindex(b")")]
    fields = text[text.rindex(b")") + 2 :].split()  # fields[0] is field 3 of the manual page: state
    user, system, child_user, child_system = (int(ticks) for ticks in fields[11:15])
    return ProcessUse(
        pid=pid,
        parent=int(fields[1]),
        started=int(fields[19]) * _TICK_S,
        cpu_s=cpu_s,
        user_share=user / (user + system) if user + system else 1.0,
        children_cpu_s=(child_user + child_system) * _TICK_S,
        rss_bytes=int(fields[21]) * _PAGE_BYTES,
        threads=0 if fields[0] in (b"Z", b"X") else int(fields[17]),
        name=name.decode(errors="replace"),
    )


class LinuxReader:
    """Reads /proc, and the control group where the server has one."""

    def __init__(self, root: int, group: Path | None = None) -> None:
        self.root = root
        self._group = group if group is not None and _group_cpu(group) is not None else None

    def use(self) -> TreeUse:
        """See `Reader.use`."""
        at_ns = time.monotonic_ns()
        read = [process for pid in self._members() if (process := read_process(pid))]
        cpu_s = sum(process.cpu_s + process.children_cpu_s for process in read)
        user_s = sum((process.cpu_s + process.children_cpu_s) * process.user_share for process in read)
        if self._group is not None and (accounted := _group_cpu(self._group)) is not None:
            cpu_s, user_s = accounted
        # A zombie's clock counts, until it moves into its parent's account; no process.
        return TreeUse(at_ns, tuple(process for process in read if process.threads), cpu_s, user_s)

    def _members(self) -> list[int]:
        """Return root, its descendants, and whoever lives in its session: orphans are in there."""
        if self._group is not None:
            try:
                pids = [int(line) for line in (self._group / "cgroup.procs").read_text().split()]
            except OSError:
                pids = []
            return sorted(pids, key=lambda pid: (pid != self.root, pid))
        parents, sessions = _relations()
        session = self.root if sessions.get(self.root, self.root) == self.root else None
        found, layer = [self.root], {self.root}
        while layer:
            layer = {pid for pid, parent in parents.items() if parent in layer} - set(found)
            found += sorted(layer)
        known = set(found)
        return found + sorted(
            pid for pid, theirs in sessions.items() if theirs == session and pid not in known
        )

    def fds(self, pids: Iterable[int]) -> int | None:
        """See `Reader.fds`. Linux 6.2 and later tell the count as the size of the folder."""
        total = 0
        for pid in pids:
            try:
                total += os.stat(f"/proc/{pid}/fd").st_size or len(os.listdir(f"/proc/{pid}/fd"))
            except FileNotFoundError:
                continue
            except OSError:
                return None
        return total

    def switches(self, pids: Iterable[int]) -> Mapping[int, tuple[int, int]] | None:
        """See `Reader.switches`."""
        found = {}
        budget = MOST_SWITCH_FILES
        for pid in pids:
            try:
                threads = os.listdir(f"/proc/{pid}/task")
            except OSError:
                continue
            budget -= len(threads)
            if budget < 0:
                return None
            counts = [_thread_switches(pid, thread) for thread in threads]
            found[pid] = (sum(c[0] for c in counts), sum(c[1] for c in counts))
        return found

    def pss_bytes(self, pids: Iterable[int]) -> int | None:
        """See `Reader.pss_bytes`."""
        total = 0
        for pid in pids:
            try:
                with open(f"/proc/{pid}/smaps_rollup", "rb") as file:
                    for line in file:
                        if line.startswith(b"Pss:"):
                            total += int(line.split()[1]) * 1024
                            break
            except (FileNotFoundError, ProcessLookupError):
                continue
            except OSError:
                return None
        return total


def _relations() -> tuple[dict[int, int], dict[int, int]]:
    """Return parent and session of every process of the machine."""
    parents, sessions = {}, {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                with open(f"/proc/{entry}/stat", "rb") as file:
                    text = file.read()
            except OSError:
                continue
            fields = text[text.rindex(b")") + 2 :].split(None, 4)
            parents[int(entry)], sessions[int(entry)] = int(fields[1]), int(fields[3])
    return parents, sessions


def _thread_switches(pid: int, thread: str) -> tuple[int, int]:
    voluntary = involuntary = 0
    try:
        with open(f"/proc/{pid}/task/{thread}/status", "rb") as file:
            for line in file:
                if line.startswith(b"voluntary_ctxt_switches:"):
                    voluntary = int(line.split()[1])
                elif line.startswith(b"nonvoluntary_ctxt_switches:"):
                    involuntary = int(line.split()[1])
    except OSError:
        pass
    return voluntary, involuntary


def _group_cpu(group: Path) -> tuple[float, float] | None:
    """Return (CPU, user CPU) in seconds of a control group, or None where it does not account for it."""
    try:
        if (group / "cpuacct.usage").exists():
            total = int((group / "cpuacct.usage").read_text()) / 1e9
            ticks = dict(line.split() for line in (group / "cpuacct.stat").read_text().splitlines())
            user, system = int(ticks["user"]), int(ticks["system"])
            return total, total * (user / (user + system) if user + system else 1.0)
        micros = dict(line.split() for line in (group / "cpu.stat").read_text().splitlines())
        return int(micros["usage_usec"]) / 1e6, int(micros["user_usec"]) / 1e6
    except (OSError, KeyError, ValueError):
        return None


class PortableReader:
    """Reads through psutil: macOS. No CPU of ended children: forking servers look cheap."""

    def __init__(self, root: int) -> None:
        self.root = root

    def use(self) -> TreeUse:
        """See `Reader.use`."""
        at_ns = time.monotonic_ns()
        try:
            top = psutil.Process(self.root)
            members = [top, *top.children(recursive=True)]
        except psutil.Error:
            members = []
        read = [use for member in members if (use := self._read(member))]
        cpu_s = sum(process.cpu_s for process in read)
        return TreeUse(at_ns, tuple(read), cpu_s, sum(process.cpu_s * process.user_share for process in read))

    @staticmethod
    def _read(process: psutil.Process) -> ProcessUse | None:
        try:
            with process.oneshot():
                if process.status() == psutil.STATUS_ZOMBIE:
                    return None
                times = process.cpu_times()
                cpu_s = times.user + times.system
                return ProcessUse(
                    pid=process.pid,
                    parent=process.ppid(),
                    started=process.create_time(),
                    cpu_s=cpu_s,
                    user_share=times.user / cpu_s if cpu_s else 1.0,
                    children_cpu_s=0.0,
                    rss_bytes=process.memory_info().rss,
                    threads=process.num_threads(),
                    name=process.name(),
                )
        except psutil.Error:
            return None

    def fds(self, pids: Iterable[int]) -> int | None:
        """See `Reader.fds`."""
        try:
            return sum(psutil.Process(pid).num_fds() for pid in pids)
        except psutil.Error:
            return None

    def switches(self, pids: Iterable[int]) -> Mapping[int, tuple[int, int]] | None:
        """See `Reader.switches`."""
        try:
            counts = {pid: psutil.Process(pid).num_ctx_switches() for pid in pids}
        except psutil.Error:
            return None
        return {pid: (count.voluntary, count.involuntary) for pid, count in counts.items()}

    def pss_bytes(self, pids: Iterable[int]) -> int | None:
        """Not known on macOS."""
        return None
