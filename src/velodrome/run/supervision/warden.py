"""The warden: a small process between velodrome and what it starts; ends the tree when velodrome is gone.

    velodrome ──socket──▶ warden ──fork──▶ server ──▶ its workers

Run by file path, `python -I -S warden.py FD`, so that it starts in 20 ms and needs nothing installed. FD is
a socket: the order (see `ward.py`) comes in as a line of JSON, reports go out as such lines, and its end
means that velodrome is gone, however it went. As a child subreaper (Linux) the warden inherits every orphan
of the tree, so no double fork escapes. Elsewhere the child's process group is killed.
"""

import ctypes
import json
import os
import resource
import select
import shutil
import signal
import socket
import sys
import time
from collections.abc import Iterator
from typing import Any, NoReturn

LINUX = sys.platform == "linux"
PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
KILL_SECONDS = 10.0
"""After SIGKILL a process is gone at once, unless it sleeps uninterruptibly in the kernel: then we say so."""
ORPHAN_SECONDS = 1.0
"""How long workers may outlive a master that has ended by itself."""


def prctl(option: int, value: int) -> None:
    """Call prctl(2). A refusal is not fatal: the socket still tells of velodrome's end."""
    if LINUX:
        ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)


def descendants(root: int) -> list[int]:
    """Return every living process below `root`, zombies left out."""
    parent_of = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat", "rb") as stat:
                state, parent = stat.read().rpartition(b")")[2].split()[:2]
        except (OSError, ValueError):
            continue  # it went while we looked
        if state not in (b"Z", b"X"):
            parent_of[int(name)] = int(parent)
    found: list[int] = []
    layer = [root]
    while layer:
        layer = [pid for pid, parent in parent_of.items() if parent in layer]
        found += layer
    return found


class RefusedError(Exception):
    """The child could not be prepared: `args` are the stage, what it was about, and the errno."""


class Warden:
    """One order, one child, one tree."""

    def __init__(self, control: socket.socket, order: dict[str, Any], pending: bytes) -> None:
        self.control, self.order, self.pending = control, order, pending
        self.child = 0
        self.exit: int | None = None
        self.parent_gone = self.ending = False
        self.deadline_s = float(order["orphan_deadline_s"])
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
        """Velodrome is gone, or this process is told to go: end everything, and soon."""
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
                self.kill_rest()
            self.remove_groups()
            for folder in self.order["scratch"]:
                shutil.rmtree(folder, ignore_errors=True)

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

    def remove_groups(self) -> None:
        """Remove them; the kernel needs a moment after the last process has gone."""
        until = time.monotonic() + 2.0
        for path in (group["path"] for group in self.order["groups"]):
            while os.path.isdir(path) and time.monotonic() < until:
                try:
                    os.rmdir(path)
                except OSError:
                    time.sleep(0.01)

    def start(self) -> None:
        """Fork and execute; an error before the exec comes back through a pipe that the exec closes."""
        try:
            told, tell = os.pipe()
            self.child = os.fork()
        except OSError as error:
            raise RefusedError("fork", "", error.errno or 0) from error
        if self.child == 0:
            become(self.order, tell)
        os.close(tell)
        with os.fdopen(told, "rb") as pipe:
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
        """Take up what velodrome asked for: that the tree ends, `{"deadline_s": …}`."""
        *lines, self.pending = self.pending.split(b"\n")
        for line in lines:
            self.deadline_s = float(json.loads(line)["deadline_s"])
            self.ending = True

    def reap(self) -> bool:
        """Collect the dead; whether anything of the tree is still alive."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if pid == 0:
                return True
            if pid == self.child:
                self.exit = os.waitstatus_to_exitcode(status)
                self.report("exited", code=self.exit, oom_kills=self.oom_kills())

    def end_tree(self) -> None:
        """Stop signal to the child, a deadline, then SIGKILL to all that is left."""
        hung = False
        if self.exit is None:
            os.kill(self.child, self.order["stop_signal"])
            until = time.monotonic() + self.deadline_s
            while self.exit is None and time.monotonic() < until:
                self.listen(until - time.monotonic())
                if self.parent_gone:
                    until = min(until, time.monotonic() + self.deadline_s)
            hung = self.exit is None
        if not hung:
            until = time.monotonic() + ORPHAN_SECONDS
            while self.reap() and time.monotonic() < until and not self.parent_gone:
                self.listen(0.02)
        left = len(self.alive())
        stuck = self.kill_rest()
        self.report("ended", hung=hung, orphans=0 if hung else left, stuck=stuck)

    def alive(self) -> list[int]:
        """Return what is left of the tree, as kill(2) takes it."""
        left = self.reap()
        if LINUX:
            return descendants(os.getpid()) if left else []
        try:
            os.killpg(self.child, 0)
        except OSError:
            return []
        return [-self.child]

    def kill_rest(self) -> list[int]:
        """SIGKILL until nothing is left; return what survived even that."""
        until = time.monotonic() + KILL_SECONDS
        while (left := self.alive()) and time.monotonic() < until:
            for pid in left:
                try:
                    os.kill(pid, signal.SIGKILL)
                except OSError:
                    continue
            self.listen(0.005)
        return left

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
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != order["warden"]:
        os._exit(1)  # it went before it could be watched
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
    yield "cwd", order["cwd"]
    os.chdir(order["cwd"])
    yield "exec", order["argv"][0]


def become(order: dict[str, Any], tell: int) -> NoReturn:
    """In the forked child: prepare and execute, or tell at which stage and why not."""
    signal.set_wakeup_fd(-1)
    for one in ("CHLD", "TERM", "INT", "HUP", "PIPE", "XFSZ"):
        signal.signal(signal.Signals["SIG" + one], signal.SIG_DFL)
    for number, source in enumerate(order["stdio"]):
        os.dup2(source, number)
    stage = what = ""
    try:
        for stage, what in preparations(order):  # noqa: B007 - read after the loop is left by an error
            pass
        os.execve(order["argv"][0], order["argv"], order["env"])  # noqa: S606 - no shell on purpose
    except (OSError, ValueError) as error:
        os.write(tell, json.dumps([stage, what, getattr(error, "errno", None) or 0]).encode())
    os._exit(127)


def main() -> None:
    """Read one order from the socket and see it through."""
    control = socket.socket(fileno=int(sys.argv[1]))
    control.set_inheritable(False)
    data = b""
    while b"\n" not in data:
        if not (piece := control.recv(65536)):
            return
        data += piece
    line, _, pending = data.partition(b"\n")
    order = json.loads(line) | {"warden": os.getpid()}
    for number in order["stdio"][1:]:
        os.set_inheritable(number, False)
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    Warden(control, order, pending).run()


if __name__ == "__main__":
    main()
