"""Watch a server's process tree and the machine around it while a load runs, from a thread of ours.

sampler = Sampler(pid, port, span_s=load.duration_s)
sampler.rest()                                 # what it uses with nothing to do; before any load
sampler.accompany(upstream.pid)                # not to be taken for other load
with sampler:                                  # samples every half second
    facts = driver.run(load, target, sampler.on)
sampled = sampler.result(boot_s=0.4)

CPU is read when the engine tells that the measured span begins and ends; a sample in between costs about 2 ms
of CPU (reported as `Sampled.own_cpu_s`).
"""

import os
import sys
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

import psutil

from velodrome.model.measurement import (
    CpuLosses,
    HostFacts,
    QueueFacts,
    ServerFacts,
    ServerSample,
    WorkerUse,
)
from velodrome.run.drivers.driver import LoadEvent
from velodrome.run.link import Namespace, enter
from velodrome.run.measuring import kernel
from velodrome.run.measuring.kernel import Counters, Listener, Throttling, host_facts

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
    allowed: Mapping[int, frozenset[int]] = field(default_factory=dict)
    """CPUs that the first process of server and database, engine, upstream and velodrome may run on, by process id."""

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
    """CPUs used by process, those that used more than a twentieth of a CPU."""


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


def host_over(
    begin: Moment, end: Moment, used: Mapping[int, float], server: int, generator: int | None
) -> HostFacts:
    """Return what the rest of the machine did over the span.

    `used` are the CPU seconds of everything that belongs to the trial, by its first process, among them `server` and
    `generator`.
    """
    trees = (begin.use, end.use, *begin.beside.values(), *end.beside.values())
    known = {process.pid for use in trees for process in use.processes} | set(used)
    facts = host_facts(begin.counters, end.counters, sum(used.values()), known)
    allowed = {**end.allowed, **begin.allowed}

    def lost(by: int | None) -> CpuLosses | None:
        cpus = allowed.get(by, frozenset()) if by is not None else frozenset()
        here = sum(cpu_s for pid, cpu_s in used.items() if cpus & allowed.get(pid, cpus))
        return kernel.losses(begin.counters, end.counters, cpus, here, facts.other_cpu_s)

    return replace(facts, server_cpus=lost(server), load_cpus=lost(generator))


def _used_over(begin: Moment, end: Moment, roots: Mapping[str, int]) -> dict[int, float]:
    """Return CPU seconds of everything beside the server, by its first process; `roots` are those of databases."""
    used = {
        pid: max(0.0, cpu_s - begin.companions_cpu_s.get(pid, 0.0))
        for pid, cpu_s in end.companions_cpu_s.items()
    }
    for name, use in begin.beside.items():
        used[roots[name]] = max(0.0, end.beside[name].cpu_s - use.cpu_s)
    return used | {os.getpid(): end.host_cpu_s - begin.host_cpu_s}


def _allowed_cpus(pid: int) -> frozenset[int] | None:
    """Return the CPUs that a process may run on; None where that is not reported."""
    try:
        return frozenset(os.sched_getaffinity(pid)) if hasattr(os, "sched_getaffinity") else None
    except OSError:
        return None


def server_over(
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
    voluntary, involuntary = _count_switches(begin.switches, end.switches)
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


def _count_switches(before: Switches, after: Switches) -> tuple[int | None, int | None]:
    """Return switches between two readings of the processes alive at the second."""
    if before is None or after is None:
        return None, None
    pairs = [(count, before.get(pid, (0, 0))) for pid, count in after.items()]
    return (
        sum(max(0, now[0] - then[0]) for now, then in pairs),
        sum(max(0, now[1] - then[1]) for now, then in pairs),
    )


EVERY_S = 0.5
"""Two samples for each second of the load's series: a peak of memory lasts longer than that."""
REST_S = 0.1
"""How long the server is watched with nothing to do."""
SETTLE_S = 1.5
"""How long it may take to come to rest: a worker that imports a large framework needs about a second."""
BUSY_AT_REST = 0.05
"""CPUs. An event loop's or a master's housekeeping takes below one per cent; a loop that polls takes a whole
CPU.
"""


class Sampler:
    """Samples one server through one load; make another for the next load."""

    def __init__(
        self,
        root: int,
        port: int,
        span_s: float,
        group: Path | None = None,
        *,
        every_s: float = EVERY_S,
        inside: Namespace | None = None,
    ) -> None:
        """`group`: a control group that holds the server alone and accounts for CPU, if there is one.

        `inside`: the server's network, where it has a network of its own.
        """
        self._inside = inside
        self.root, self.port, self.span_s, self.every_s = root, port, span_s, every_s
        self._reader = of(root, group)
        self._queue = kernel.ListenQueue(port)
        self._throttling = Throttling(root)
        self._throttled_before_s: float | None = None
        self._companions: set[int] = set()
        self._generator: int | None = None
        self._trees: dict[str, Reader] = {}
        self._roots: dict[str, int] = {}
        self._rest = Rest(root, tuple(process.pid for process in self._reader.use().processes), None, {})
        self._begin: Moment | None = None
        self._end: Moment | None = None
        self._after_span: tuple[int | None, tuple[kernel.Listener, ...]] = (None, ())
        self._samples: list[ServerSample] = []
        self._connections: dict[int, int] | None = None
        self._own_cpu_s = 0.0
        self._wake = threading.Condition()
        self._stopped = False
        self._thread = threading.Thread(target=self._run, name="sampler", daemon=True)

    def rest(self) -> Rest:
        """Watch the server do nothing, until it does nothing, at most `SETTLE_S`; blocks that long.

        Workers that still import when the first answers are waited for in passing.
        """
        until = time.monotonic() + SETTLE_S
        while True:
            before = self._reader.use()
            time.sleep(REST_S)
            self._rest = self._at_rest(before, self._reader.use())
            if (self._rest.cpus or 0.0) <= BUSY_AT_REST or time.monotonic() >= until:
                return self._rest

    def _at_rest(self, before: TreeUse, after: TreeUse) -> Rest:
        wall_s = (after.at_ns - before.at_ns) / 1e9
        used = {pid: cpu_s / wall_s for pid, cpu_s in cpu_by_process(before, after).items()}
        throughout = {process.pid for process in before.processes}
        return Rest(
            root=self.root,
            processes=tuple(process.pid for process in after.processes if process.pid in throughout),
            cpus=max(0.0, after.cpu_s - before.cpu_s) / wall_s,
            busy={pid: cpus for pid, cpus in used.items() if cpus > BUSY_AT_REST},
        )

    def accompany(self, pid: int) -> None:
        """Do not take this process for other load: the upstream. The generator's is learnt from `started`."""
        self._companions.add(pid)

    def accompany_tree(self, name: str, root: int) -> None:
        """Do not take this process and its descendants for other load, and tell what CPU they used: a database."""
        self._trees[name], self._roots[name] = of(root), root

    def on(self, event: LoadEvent) -> bool:
        """Take note of a driver's event; always True, so that it can be a driver's `on_event` by itself."""
        if event.kind == "started":
            self._generator = event.facts["pid"]
            self.accompany(event.facts["pid"])
        elif event.kind == "measuring":
            self.begin(event.facts["monotonic_ns"])
        elif event.kind == "span_ended":
            self.end(event.facts["monotonic_ns"])
        return True

    def begin(self, monotonic_ns: int) -> None:
        """The measured span began at this CLOCK_MONOTONIC."""
        own_s = time.thread_time()
        with enter(self._inside):
            moment = self._moment(monotonic_ns)
            self._queue.begin()
            self._throttled_before_s = self._throttling.seconds()
        with self._wake:
            self._begin = moment
            self._own_cpu_s += time.thread_time() - own_s
            self._wake.notify()

    def end(self, monotonic_ns: int) -> None:
        """The measured span ended at this CLOCK_MONOTONIC."""
        own_s = time.thread_time()
        with enter(self._inside):
            moment = self._moment(monotonic_ns)
        with self._wake:
            if self._begin is None or self._end is not None:
                return
            self._end = moment
            self._own_cpu_s += time.thread_time() - own_s
            self._wake.notify()
        # Reading PSS holds the process up, and listeners need a walk over every descriptor: only now.
        pids = [process.pid for process in moment.use.processes]
        with enter(self._inside):
            self._after_span = self._reader.pss_bytes(pids), kernel.foreign(self.port, pids)

    def result(self, boot_s: float) -> Sampled:
        """Return what was seen. Raises ValueError when the load reported no measured span."""
        begin, end = self._begin, self._end
        if begin is None or end is None:
            raise ValueError("the load reported no measured span")
        pss_bytes, foreign = self._after_span
        with enter(self._inside):
            queue = self._queue.facts(begin.counters, end.counters)
        server = server_over(
            begin, end, self._samples, connections=self._connections, pss_bytes=pss_bytes, boot_s=boot_s
        )
        now = {process.pid for process in end.use.processes}
        used = _used_over(begin, end, self._roots) | {self.root: server.cpu_s}
        return Sampled(
            server=server,
            queue=queue,
            host=host_over(begin, end, used, self.root, self._generator),
            rest=self._rest,
            root_alive=self.root in now,
            gone=tuple(pid for pid in self._rest.processes if pid not in now),
            came=tuple(sorted(now - set(self._rest.processes))),
            foreign=foreign,
            span_s=(end.use.at_ns - begin.use.at_ns) / 1e9,
            late_s=begin.late_s + end.late_s,
            own_cpu_s=self._own_cpu_s,
            beside_cpu_s={
                name: max(0.0, end.beside[name].cpu_s - use.cpu_s) for name, use in begin.beside.items()
            },
        )

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._wake:
            self._stopped = True
            self._wake.notify()
        self._thread.join()

    def _moment(self, due_ns: int) -> Moment:
        """Read everything; the server's CPU first, because that is what must be on time."""
        use = self._reader.use()
        companions = {}
        for pid in self._companions:
            try:
                companions[pid] = clock_s(pid)
            except OSError:
                continue
        beside = {name: reader.use() for name, reader in self._trees.items()}
        switches = self._reader.switches(process.pid for process in use.processes)
        counters, own_s = kernel.read(), time.process_time()
        ours = (self.root, *companions, *self._roots.values(), os.getpid())
        allowed = {pid: cpus for pid in ours if (cpus := _allowed_cpus(pid)) is not None}
        return Moment(due_ns, use, counters, companions, own_s, switches, beside, allowed)

    def _run(self) -> None:
        """Sample from the beginning of the span to its end."""
        with self._wake:
            self._wake.wait_for(lambda: self._begin is not None or self._stopped)
        begin = self._begin
        if begin is None:
            return
        number = 1
        while True:
            due_s = begin.due_ns / 1e9 + number * self.every_s
            with self._wake:
                over = self._wake.wait_for(
                    lambda: self._end is not None or self._stopped, max(0.0, due_s - time.monotonic())
                )
            if over:
                return
            own_s = time.thread_time()
            with enter(self._inside):
                self._sample(begin)
            self._own_cpu_s += time.thread_time() - own_s
            # A late sample is not made up for: sampling must not cost more when the machine is busy.
            number = max(number + 1, int((time.monotonic() - begin.due_ns / 1e9) / self.every_s) + 1)

    def _sample(self, begin: Moment) -> None:
        use = self._reader.use()
        pids = [process.pid for process in use.processes]
        at_s = (use.at_ns - begin.due_ns) / 1e9
        overflows = kernel.tcp_counters().get("ListenOverflows")
        throttled_s = self._throttling.seconds()
        self._samples.append(
            ServerSample(
                at_s=at_s,
                cpu_s=max(0.0, use.cpu_s - begin.use.cpu_s),
                rss_bytes=use.rss_bytes,
                threads=use.threads,
                processes=len(pids),
                fds=self._reader.fds(pids),
                listen_queue=self._queue.sample(),
                overflows=kernel.difference(begin.counters.overflows, overflows),
                throttled_s=kernel.difference(self._throttled_before_s, throttled_s),
            )
        )
        if self._connections is None and at_s >= self.span_s / 2:
            held = kernel.connections(self.port, pids)
            self._connections = None if held is None else dict(held)
