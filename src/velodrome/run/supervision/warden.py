"""The warden: a small process between velodrome and what it starts; ends the tree when velodrome is gone.

    velodrome ──socket──▶ sentinel ──fork──▶ warden ──fork──▶ server ──▶ its workers

Run with the standard library alone (`python.alone_by_main`), so that it starts in 20 ms and needs nothing installed.
Its last argument is the number of a socket: the order (see `ward.py`) comes in as a line of JSON, reports go out as
such lines, and its end means that velodrome is gone, however it went. As a child subreaper (Linux) the warden inherits
every orphan of the tree, so no double fork escapes. The sentinel is its first self: a subreaper that does nothing but
wait, and ends the tree when the warden was killed. Elsewhere there is no sentinel, and the child's process group is
killed.

Nothing that is not of the tree gets a signal: see `send`. A tree that forks while it is ended is killed as a whole by
its control group where the kernel can (`kill_group`), else stopped before it is killed (`end_all`).
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import json
import os
import resource
import select
import signal
import socket
import sys
import time
from collections.abc import Mapping

TYPE_CHECKING = False  # typing's own, without typing, which is a tenth of the start
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any, NoReturn

LINUX = sys.platform == "linux"
PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
KILL_SECONDS = 10.0
"""After SIGKILL a process is gone at once, unless it sleeps uninterruptibly in the kernel: then we say so."""
ORPHAN_SECONDS = 1.0
"""How long workers may outlive a master that has ended by itself."""
STOPPING_SECONDS = 0.5
"""How long a tree is stopped before it is killed all the same: a tree that forks too fast to be stopped."""
FREEZING_SECONDS = 1.0
"""How long a control group may take to freeze; milliseconds, unless the kernel is busy for one of its processes."""
CHASING_SECONDS = 0.25
"""Spent at a time on a tree whose processes end as fast as they are found."""
QUIET = b"TtZXD"
"""States of /proc/*/stat in which a process does not fork: stopped, traced, dead, or waiting in the kernel."""
LOCK = "lock"
"""In the folder of a velodrome: held by it and by its wardens, see `scratch.py`."""

Found = Mapping[int, tuple[int, bytes]]
"""Processes: when they were started, in ticks since boot, and their state as in /proc/*/stat."""


def prctl(option: int, value: int) -> None:
    """Call prctl(2). A refusal is not fatal: the socket still tells of velodrome's end."""
    if LINUX:
        ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)


def look_up(pid: int) -> tuple[bytes, int, int] | None:
    """Return state, parent and start of a process; None: there is none."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as stat:
            fields = stat.read().rpartition(b")")[2].split()
        return fields[0], int(fields[1]), int(fields[19])
    except (OSError, ValueError, IndexError):
        return None


def start_time(pid: int) -> int:
    """Return when a living process was started, in ticks since boot: a number and this are never another's. 0: none."""
    found = look_up(pid)
    return found[2] if found and found[0] not in b"ZX" else 0


def processes() -> Iterator[tuple[int, bytes, int, int]]:
    """Yield number, state, parent and start of every process, zombies left out."""
    for name in filter(str.isdigit, os.listdir("/proc")):
        if (found := look_up(int(name))) and found[0] not in b"ZX":
            yield int(name), *found


def descendants(*roots: int) -> dict[int, tuple[int, bytes]]:
    """Return every living process below some others, zombies left out."""
    every = {pid: (parent, (start, state)) for pid, state, parent, start in processes()}
    found: dict[int, tuple[int, bytes]] = {}
    layer = set(roots)
    while layer:
        layer = {pid for pid, (parent, _) in every.items() if parent in layer and pid not in found}
        found |= {pid: every[pid][1] for pid in layer}
    return found


def below(pid: int, root: int) -> bool:
    """Return whether a process is a descendant of another now."""
    while pid > 1 and (found := look_up(pid)):
        if found[1] == root:
            return True
        pid = found[1]
    return False


def send(pid: int, start: int, number: int, still: Callable[[int], bool]) -> bool:
    """Send a signal to the process `pid` that was started at `start`, if it is meant still; whether it was.

    The number of a process that has ended is given to another sooner or later. A descriptor of a process is not, so
    what is checked of the process once it is open holds when the signal is sent.
    """
    descriptor = -1
    if hasattr(os, "pidfd_open"):
        try:
            descriptor = os.pidfd_open(pid)
        except ProcessLookupError:
            return False
        except OSError:
            descriptor = (
                -1
            )  # Linux before 5.3, a sandbox without it, no descriptor left: then looked at just before
    try:
        if (found := look_up(pid)) is None or found[2] != start or not still(pid):
            return False
        if descriptor >= 0:
            signal.pidfd_send_signal(descriptor, number)
        else:
            os.kill(pid, number)
    except OSError:
        return False
    finally:
        if descriptor >= 0:
            os.close(descriptor)
    return True


def end_all(
    find: Callable[[], Found], still: Callable[[int], bool], seconds: float = KILL_SECONDS
) -> list[int]:
    """Kill all that is found until nothing is; return what is left. `still` says of a process whether it is meant."""
    until = time.monotonic() + seconds
    while (left := find()) and time.monotonic() < until:
        kill_stopped(find, still)
        time.sleep(0.005)
    return list(left)


def kill_stopped(find: Callable[[], Found], still: Callable[[int], bool]) -> None:
    """Stop in rounds all that is found until a round finds nothing new, then kill it.

    What is stopped neither forks nor starts anew what it sees die.
    """
    stopped: set[tuple[int, int]] = set()
    until = time.monotonic() + STOPPING_SECONDS
    while (left := find()) and time.monotonic() < until:
        new = {(pid, start) for pid, (start, _) in left.items()} - stopped
        stopped |= {process for process in new if send(*process, signal.SIGSTOP, still)}
        if not new and all(state in QUIET for _, state in left.values()):
            break
    for pid, (start, _) in left.items():
        # A process that was stopped is meant, whatever became of its parents, which were killed a moment ago.
        send(pid, start, signal.SIGKILL, (lambda _: True) if (pid, start) in stopped else still)


def members(group: str) -> dict[int, tuple[int, bytes]]:
    """Return the processes of a control group and of those below it."""
    found: dict[int, tuple[int, bytes]] = {}
    for folder, _, _ in os.walk(group):
        try:
            with open(os.path.join(folder, "cgroup.procs")) as procs:
                numbers = [int(line) for line in procs]
        except OSError:
            continue
        for pid in numbers:
            if process := look_up(pid):
                found[pid] = process[2], process[0]
    return found


def end_group(group: str, seconds: float = KILL_SECONDS) -> None:
    """Kill all that is in a control group: at one stroke where the kernel can, else process by process."""
    if not kill_group(group):
        end_all(lambda: members(group), lambda pid: pid in members(group), seconds=seconds)


def kill_group(group: str) -> bool:
    """Kill all that is in a control group, forks in progress included; False: this group cannot, or is gone."""
    kill, freezer = (os.path.join(group, name) for name in ("cgroup.kill", "freezer.state"))
    try:
        if os.path.exists(kill):
            with open(kill, "w") as file:
                file.write("1")
            return True
        if not os.path.exists(freezer):
            return False
        try:
            until = time.monotonic() + FREEZING_SECONDS
            while set_freezer(freezer, "FROZEN") != "FROZEN" and time.monotonic() < until:
                time.sleep(0.001)
            for pid, (start, _) in members(group).items():
                send(pid, start, signal.SIGKILL, lambda member: member in members(group))
        finally:
            set_freezer(freezer, "THAWED")
    except OSError:
        return False
    return True


def set_freezer(file: str, state: str) -> str:
    """Write the state a group shall have, and return the state it has."""
    with open(file, "r+") as freezer:
        freezer.write(state)
        freezer.seek(0)
        return freezer.read().strip()


def remove_group(group: str, seconds: float = 2.0) -> bool:
    """Remove a control group and what its processes made below it; whether it is gone.

    The kernel needs a moment after the last process has gone.
    """
    until = time.monotonic() + seconds
    while os.path.isdir(group):
        for folder, _, _ in os.walk(group, topdown=False):
            try:
                os.rmdir(folder)
            except OSError:
                continue
        if time.monotonic() >= until:
            break
        time.sleep(0.005)
    return not os.path.isdir(group)


def clear(folder: str) -> None:
    """Remove a folder with all in it, also what its owner may not enter. Follows no symbolic link."""
    import shutil  # noqa: PLC0415 - seldom needed, and a tenth of the start

    shutil.rmtree(folder, ignore_errors=True)
    if os.path.isdir(folder) and not os.path.islink(folder) and os.geteuid() != 0:
        os.chmod(folder, 0o700)
        for above, names, _ in os.walk(folder):
            for name in names:
                if not os.path.islink(os.path.join(above, name)):
                    os.chmod(os.path.join(above, name), 0o700)
        shutil.rmtree(folder, ignore_errors=True)


def claim(lock: str) -> int:
    """Return a descriptor that holds a lock nobody else holds; -1: somebody does, or there is none."""
    try:
        number = os.open(lock, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return -1
    try:
        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.fstat(number).st_nlink:  # else it was removed between the two
            return number
    except OSError:
        pass
    os.close(number)
    return -1


def take_away(home: str) -> None:
    """Remove the folder of a velodrome whose lock the caller holds: the lock last, as without it nobody else would."""
    for name in os.listdir(home):
        path = os.path.join(home, name)
        if os.path.isdir(path) and not os.path.islink(path):
            clear(path)
        elif name != LOCK:
            os.unlink(path)
    os.unlink(os.path.join(home, LOCK))
    os.rmdir(home)


class RefusedError(Exception):
    """The child could not be prepared: `args` are the stage, what it was about, and the errno."""


class Tree:
    """All below this process, and what is to be removed when it has ended."""

    def __init__(self, order: dict[str, Any]) -> None:
        self.order = order
        self.parent_gone = False
        self.deadline_s = float(order["orphan_deadline_s"])

    def reap(self) -> bool:
        """Collect the dead; whether anything of the tree is still alive."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if pid == 0:
                return True
            self.reaped(pid, status)

    def reaped(self, pid: int, status: int) -> None:
        """Take note of a child that was collected."""

    def pause(self, seconds: float) -> None:
        """Let some time pass."""
        time.sleep(seconds)

    def alive(self) -> Found:
        """Return what is seen of the tree; what forks and ends fast may not be, but `reap` knows of it."""
        return descendants(os.getpid())

    def is_ours(self, pid: int) -> bool:
        """Return whether a process is of this tree now."""
        return below(pid, os.getpid())

    def ask_all(self) -> bool:
        """Stop signal to the whole tree, and time to obey; whether it did. What is started to obey is left alone."""
        asked = self.ask(self.alive())
        last = time.clock_gettime(time.CLOCK_BOOTTIME) * os.sysconf("SC_CLK_TCK")
        until = time.monotonic() + self.deadline_s
        while left := self.reap():
            if time.monotonic() >= until:
                break
            self.pause(0.02)
            # What a process forked after the tree was read, and before its own signal came, nobody else would ask.
            asked |= self.ask(
                {
                    pid: (start, state)
                    for pid, state, parent, start in processes()
                    if parent == os.getpid() and start <= last and (pid, start) not in asked
                }
            )
            if self.parent_gone:
                until = min(until, time.monotonic() + self.deadline_s)
        return not left

    def ask(self, found: Found) -> set[tuple[int, int]]:
        """Send the stop signal to processes; return them."""
        for pid, (start, _) in found.items():
            for number in (self.order["stop_signal"], signal.SIGCONT):
                send(pid, start, number, self.is_ours)
        return {(pid, start) for pid, (start, _) in found.items()}

    def kill_all(self) -> list[int]:
        """Kill until nothing is left; return what survived even that."""
        until = time.monotonic() + KILL_SECONDS
        while (left := self.reap()) and time.monotonic() < until:
            for group in self.order["groups"]:
                kill_group(group["path"])
            kill_stopped(self.alive, self.is_ours)
            self.chase()
        return list(self.alive()) if left else []

    def chase(self) -> None:
        """Kill and collect what forks and ends faster than all of /proc is read.

        Whatever was orphaned is a child of ours, whose number is no other's until we collect it; nor is that of its
        process group, which the kernel signals as a whole, forks in progress included.
        """
        until = time.monotonic() + CHASING_SECONDS
        own, before = os.getpid(), [0]
        while self.reap() and time.monotonic() < until:
            try:
                with open(f"/proc/{own}/task/{own}/children", "rb") as children:
                    pids = [int(pid) for pid in children.read().split()]
            except OSError:
                pids = before  # a kernel without CONFIG_PROC_CHILDREN
            if pids == before:
                self.pause(0.005)
                continue
            for pid in pids:
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
                    if (group := os.getpgid(pid)) != os.getpgid(0):
                        os.killpg(group, signal.SIGKILL)
            before = pids

    def clean_up(self) -> None:
        """Remove control groups and folders; and velodrome's own folder, if nobody is left who will."""
        for group in self.order["groups"]:
            remove_group(group["path"])
        for folder in self.order["scratch"]:
            clear(folder)
        descriptor, lock = self.order["lock"]
        os.close(descriptor)
        if (number := claim(lock)) >= 0:
            with contextlib.suppress(OSError):  # the next velodrome sweeps it
                take_away(os.path.dirname(lock))
            os.close(number)


class Sentinel(Tree):
    """Waits for the warden, and ends the tree in its place when it was killed."""

    def __init__(self, order: dict[str, Any], warden: int) -> None:
        super().__init__(order)
        self.warden, self.ended_well = warden, False

    def reaped(self, pid: int, status: int) -> None:
        """Take note of the warden's end."""
        if pid == self.warden:
            self.warden, self.ended_well = 0, status == 0

    def run(self) -> None:
        """Sleep until the warden has ended, then see to what it left."""
        while self.warden:
            os.waitid(os.P_PID, self.warden, os.WEXITED | os.WNOWAIT)
            self.reap()
        if not self.ended_well:
            if self.order["stop_everyone"]:
                self.ask_all()
            self.kill_all()
        self.clean_up()


class Warden(Tree):
    """One order, one child, one tree."""

    def __init__(self, control: socket.socket, order: dict[str, Any], pending: bytes) -> None:
        super().__init__(order)
        self.control, self.pending = control, pending
        self.child = 0
        self.exit: int | None = None
        self.ending = False
        self.woken, wake = os.pipe()
        os.set_blocking(wake, False)  # as set_wakeup_fd demands
        signal.signal(signal.SIGCHLD, lambda *_: None)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, self.mourn)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)

    def report(self, event: str, **facts: object) -> None:
        """Tell velodrome, if it still listens."""
        try:
            facts |= {"event": event, "monotonic_ns": time.monotonic_ns()}
            self.control.sendall(json.dumps(facts).encode() + b"\n")
        except OSError:
            self.mourn()

    def mourn(self, *_: object) -> None:
        """Velodrome is gone, or this process shall end: end everything, and soon."""
        self.parent_gone = self.ending = True
        self.deadline_s = min(self.deadline_s, float(self.order["orphan_deadline_s"]))

    def run(self) -> None:
        """Start the child, watch it, end the tree, clean up; every path ends in the clean-up."""
        try:
            self.make_groups()
            self.start()
            self.report("started", pid=self.child)
            self.obey()
            while self.exit is None and not self.ending:
                self.listen(None)
            self.end_tree()
        except RefusedError as refused:
            self.report("refused", **dict(zip(("stage", "what", "errno"), refused.args, strict=True)))
        finally:
            if self.child:
                self.kill_all()
            self.clean_up()

    def make_groups(self) -> None:
        """Create the control groups of the order and write their settings."""
        for group in self.order["groups"]:
            try:
                os.mkdir(group["path"])
                for name, value in group["settings"]:
                    with open(os.path.join(group["path"], name), "w") as setting:
                        setting.write(value)
            except OSError as error:
                raise RefusedError("group", group["path"], error.errno or 0) from error

    def start(self) -> None:
        """Fork and execute; an error before the exec comes back through a pipe that the exec closes."""
        try:
            reading, writing = os.pipe()
            self.child = os.fork()
        except OSError as error:
            raise RefusedError("fork", "", error.errno or 0) from error
        if self.child == 0:
            become(self.order, writing)
        os.close(writing)
        with os.fdopen(reading, "rb") as pipe:
            trouble = pipe.read()
        os.close(self.order["stdio"][1])  # or the end of the tree would not end its output
        if trouble:
            os.waitpid(self.child, 0)
            self.child = 0
            raise RefusedError(*json.loads(trouble))

    def listen(self, timeout_s: float | None) -> None:
        """Wait for velodrome, a signal or a dead child, at most `timeout_s`; take note of what came."""
        poll = select.poll()
        poll.register(self.woken, select.POLLIN)
        if not self.parent_gone:
            poll.register(self.control, select.POLLIN)
        for number, _ in poll.poll(None if timeout_s is None else max(0.0, timeout_s) * 1000):
            if number == self.woken:
                os.read(self.woken, 4096)
            else:
                self.hear()
        self.reap()

    def pause(self, seconds: float) -> None:
        """Let some time pass, listening."""
        self.listen(seconds)

    def hear(self) -> None:
        """Read from velodrome; nothing to read means that it is gone."""
        try:
            data = self.control.recv(65536)
        except OSError:
            data = b""
        if not data:
            self.mourn()
        self.pending += data
        self.obey()

    def obey(self) -> None:
        """Take up what velodrome ordered: that the tree ends, `{"deadline_s": …}`."""
        *lines, self.pending = self.pending.split(b"\n")
        for line in lines:
            self.deadline_s = float(json.loads(line)["deadline_s"])
            self.ending = True

    def reaped(self, pid: int, status: int) -> None:
        """Report the child's own end."""
        if pid == self.child and self.exit is None:
            self.exit = os.waitstatus_to_exitcode(status)
            self.report("exited", code=self.exit, oom_kills=self.oom_kills())

    def end_tree(self) -> None:
        """Stop signal to the child (or to all), a deadline, then SIGKILL to all that is left."""
        if self.order["stop_everyone"] and LINUX:
            hung = not self.ask_all()
        else:
            hung = self.exit is None and not self.ask_child()
            if not hung:
                until = time.monotonic() + ORPHAN_SECONDS
                while self.reap() and time.monotonic() < until and not self.parent_gone:
                    self.listen(0.02)
        left = len(self.alive()) if self.reap() else 0
        stuck = self.kill_all()
        self.report("ended", hung=hung, orphans=0 if hung else left, stuck=stuck)

    def ask_child(self) -> bool:
        """Stop signal to the child, and time to obey; whether it did."""
        ask = os.killpg if self.order["stop_everyone"] else os.kill
        for number in (self.order["stop_signal"], signal.SIGCONT):
            ask(self.child, number)  # ours until it is collected
        until = time.monotonic() + self.deadline_s
        while self.exit is None and time.monotonic() < until:
            self.listen(until - time.monotonic())
            if self.parent_gone:
                until = min(until, time.monotonic() + self.deadline_s)
        return self.exit is not None

    def alive(self) -> Found:
        """Return what is left of the tree; where orphans are not inherited, of the child's process group."""
        if LINUX:
            return super().alive()
        try:
            os.killpg(self.child, 0)
        except OSError:
            return {}
        return {self.child: (0, b"")}

    def kill_all(self) -> list[int]:
        """Kill until nothing is left; return what survived even that."""
        if LINUX:
            return super().kill_all()
        until = time.monotonic() + KILL_SECONDS
        self.reap()
        while (left := self.alive()) and time.monotonic() < until:
            with contextlib.suppress(OSError):
                os.killpg(self.child, signal.SIGKILL)
            self.listen(0.005)
        return list(left)

    def oom_kills(self) -> int:
        """Return how many processes of the tree the kernel killed for want of memory."""
        names = ("memory.events", "memory.oom_control")  # cgroup v2, v1
        files = [os.path.join(group["path"], name) for group in self.order["groups"] for name in names]
        for path in filter(os.path.exists, files):
            with open(path) as counters:
                return sum(int(line.split()[1]) for line in counters if line.startswith("oom_kill "))
        return 0


def preparations(order: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Turn the forked child into what was ordered, naming each stage before it is done."""
    yield "session", ""
    os.setsid()  # a server that signals its own group must not reach the warden
    end_with(order["warden"])
    for group in order["groups"]:
        yield "group", group["path"]
        with open(os.path.join(group["path"], "cgroup.procs"), "w") as procs:
            procs.write("0")
    if order["cpus"]:
        yield "affinity", ",".join(map(str, order["cpus"]))
        os.sched_setaffinity(0, order["cpus"])
    for name, value in order["rlimits"].items():
        yield "rlimit", f"{name}={value}"
        resource.setrlimit(getattr(resource, name), (value, value))
    for folder in order["scratch"]:
        yield "cwd", folder
        os.makedirs(folder, 0o700, exist_ok=True)  # made here: no moment at which nobody removes it
        if order["user"]:
            os.chown(folder, order["user"]["uid"], order["user"]["gid"])
    if order["user"]:
        yield "user", order["user"]["name"]
        give_up_root(order["user"])
        end_with(order["warden"])  # the kernel forgets it with the change of user
    yield "cwd", order["cwd"]
    os.chdir(order["cwd"])
    yield "exec", order["argv"][0]


def end_with(warden: int) -> None:
    """Have the kernel kill this process when the warden goes, however it goes."""
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != warden:
        os._exit(1)  # it went before it could be watched


def give_up_root(user: dict[str, Any]) -> None:
    """Become an ordinary user for good. Output may be opened anew by its path (/dev/stderr), so it is theirs too."""
    for number in (1, 2):
        with contextlib.suppress(OSError):
            os.fchown(number, user["uid"], user["gid"])
    os.umask(0o022)  # what an installer makes becomes root's, and is read by them
    os.setgroups(user["groups"])
    os.setgid(user["gid"])
    os.setuid(user["uid"])


def become(order: dict[str, Any], pipe: int) -> NoReturn:
    """In the forked child: prepare and execute, or tell at which stage and why not."""
    signal.set_wakeup_fd(-1)
    for name in ("CHLD", "TERM", "INT", "HUP", "PIPE", "XFSZ"):
        signal.signal(signal.Signals["SIG" + name], signal.SIG_DFL)
    for number, source in enumerate(order["stdio"]):
        os.dup2(source, number)
    stage = what = ""
    try:
        for stage, what in preparations(order):  # noqa: B007 - read after the loop is left by an error
            pass
        os.execve(order["argv"][0], order["argv"], order["env"])  # noqa: S606 - no shell on purpose
    except (OSError, ValueError) as error:
        os.write(pipe, json.dumps([stage, what, getattr(error, "errno", None) or 0]).encode())
    os._exit(127)


def main() -> None:
    """Read one order from the socket and see it through."""
    control = socket.socket(fileno=int(sys.argv[-1]))
    control.set_inheritable(False)
    data = b""
    while b"\n" not in data:
        if not (piece := control.recv(65536)):
            return
        data += piece
    line, _, pending = data.partition(b"\n")
    order = json.loads(line)
    for number in (*order["stdio"][1:], order["lock"][0]):
        os.set_inheritable(number, False)
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    if (warden := fork()) > 0:
        # As long as it held the output, or the socket, the end of the warden would not be their end.
        control.close()
        null = os.open(os.devnull, os.O_RDWR)
        for number in {1, 2, *order["stdio"][1:]}:
            os.dup2(null, number, inheritable=False)
        Sentinel(order, warden).run()
    else:
        prctl(PR_SET_CHILD_SUBREAPER, 1)  # not inherited
        Warden(control, order | {"warden": os.getpid()}, pending).run()
    os._exit(0)  # the interpreter would take 10 ms to clear itself away


def fork() -> int:
    """Fork where a sentinel can inherit the tree; as fork(2), but -1 where it is done without a sentinel."""
    try:
        return os.fork() if LINUX else -1
    except OSError:
        return -1  # the child will not be forked either, and that is reported
