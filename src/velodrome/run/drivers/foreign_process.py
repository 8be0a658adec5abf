"""The process that holds another program: `python -m velodrome.run.drivers.foreign_process --cpus 1`.

    velodrome ──pipe──▶ this ──fork──▶ wrk

Standard input carries the length of the order in ten digits, the order as JSON (`argv`, `env` on top of ours,
the `folder` to run in, and `files` to put there: names with sizes), the bytes of these files, then lines: `go`,
and `reap` when the program has ended. Its end, which is also the end of velodrome, kills the program. Standard
output carries lines of JSON: `started` (forked, waiting for `go`), `refused`, `exited` (dead, and kept as a
zombie until `reap`, so that its CPU clock can still be read), and `ended` with status, CPU time by wait4(2) and
the sizes of the files it left, followed by their bytes.

The folder is removed at the end, by velodrome if it is there, else by this process. The program is killed
with us (PR_SET_PDEATHSIG).
"""

import ctypes
import json
import os
import resource
import shutil
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any, NoReturn

PR_SET_PDEATHSIG = 1
LARGEST_FILE = 1 << 30
"""Bytes that the program may write to one file: a million calls reported one by one are 160 MB."""
SIZE_DIGITS = 10
OUTPUT, ERRORS = "output", "errors"
"""Where its standard output and error go."""


class Held:
    """The program, from its fork to its end."""

    def __init__(self, order: dict[str, Any], folder: str) -> None:
        self.order, self.folder = order, folder
        self.pid = 0
        self.reaped = self.told_to_end = False
        self.lock = threading.Lock()

    def fork(self) -> tuple[int, int]:
        """Fork; return where to write `go` to, and where a refused exec is reported."""
        wait, go = os.pipe()
        failed, report = os.pipe()
        parent = os.getpid()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(go)
            self._become(wait, report, parent)
        os.close(wait)
        os.close(report)
        return go, failed

    def _become(self, wait: int, tell: int, parent: int) -> NoReturn:
        """In the child: end with the parent, wait for `go`, and execute."""
        stage = "session"
        try:
            os.setsid()
            _end_with(parent)
            stage = "files"
            os.chdir(self.folder)
            _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
            largest = LARGEST_FILE if most == resource.RLIM_INFINITY else min(most, LARGEST_FILE)
            resource.setrlimit(resource.RLIMIT_FSIZE, (largest, largest))
            null = os.open(os.devnull, os.O_RDONLY)
            os.dup2(null, 0)
            for number, name in ((1, OUTPUT), (2, ERRORS)):
                os.dup2(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), number)
            for number in (signal.SIGTERM, signal.SIGINT, signal.SIGPIPE, signal.SIGXFSZ):
                signal.signal(number, signal.SIG_DFL)
            if os.read(wait, 1):
                stage = "exec"
                argv = self.order["argv"]
                os.execve(argv[0], argv, {**os.environ, **self.order["env"]})  # noqa: S606
        except OSError as error:
            os.write(tell, json.dumps([stage, self.order["argv"][0], error.errno or 0]).encode())
        os._exit(127)

    def kill(self) -> None:
        """End it and whatever it started, unless it has been waited for: its number may be another's then."""
        with self.lock:
            self.told_to_end = True
            if self.pid and not self.reaped:
                for kill, whom in ((os.killpg, self.pid), (os.kill, self.pid)):
                    try:
                        kill(whom, signal.SIGKILL)
                    except OSError:
                        continue

    def reap(self) -> tuple[int, resource.struct_rusage]:
        """Wait for it; return status, as in `subprocess`, and what it used."""
        _, status, used = os.wait4(self.pid, 0)
        with self.lock:
            self.reaped = True
        return os.waitstatus_to_exitcode(status), used


class Channel:
    """Lines from velodrome, read by a thread of its own: the end of them kills what is held."""

    def __init__(self, held: Held) -> None:
        self.held = held
        self.come = threading.Condition()
        self.lines: list[bytes] = []
        self.ended = False
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        rest = b""
        while data := os.read(0, 4096):
            *whole, rest = (rest + data).split(b"\n")
            with self.come:
                self.lines += whole
                self.come.notify()
        self.held.kill()
        with self.come:
            self.ended = True
            self.come.notify()

    def line(self) -> bytes:
        """Return the next line; empty when there is no velodrome any more."""
        with self.come:
            self.come.wait_for(lambda: self.lines or self.ended)
            return self.lines.pop(0) if self.lines else b""


def main() -> int:
    """Carry out one order. Exit status 0, or 3 when it was ended before its end."""
    cpus = sys.argv[2]
    if cpus and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {int(cpu) for cpu in cpus.split(",")})
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: sys.exit(3))
    order = json.loads(_exactly(int(_exactly(SIZE_DIGITS))))
    folder = order["folder"]
    held = Held(order, folder)
    try:
        for name, size in order["files"]:
            (Path(folder) / name).write_bytes(_exactly(size))
        return _hold(held)
    finally:
        held.kill()
        shutil.rmtree(folder, ignore_errors=True)


def _hold(held: Held) -> int:
    go, failed = held.fork()
    channel = Channel(held)
    say(event="started", pid=held.pid)
    if channel.line() != b"go":
        return 3
    began_ns = time.monotonic_ns()
    os.write(go, b"g")
    os.close(go)
    with os.fdopen(failed, "rb") as pipe:
        trouble = pipe.read()
    if trouble:
        held.reap()
        say(event="refused", **dict(zip(("stage", "what", "errno"), json.loads(trouble), strict=True)))
        return 0
    if hasattr(os, "waitid"):
        os.waitid(os.P_PID, held.pid, os.WEXITED | os.WNOWAIT)
        say(event="exited", monotonic_ns=time.monotonic_ns(), wall_s=(time.monotonic_ns() - began_ns) / 1e9)
        channel.line()
        status, used = held.reap()
    else:  # macOS: its CPU clock is gone when its end is reported
        status, used = held.reap()
        say(event="exited", monotonic_ns=time.monotonic_ns(), wall_s=(time.monotonic_ns() - began_ns) / 1e9)
        channel.line()
    if held.told_to_end:
        return 3
    _report(held.folder, status, used)
    return 0


def _report(folder: str, status: int, used: resource.struct_rusage) -> None:
    """Tell how it ended and send all it left in its folder."""
    left = {path.name: path.read_bytes() for path in sorted(Path(folder).iterdir()) if path.is_file()}
    sizes = [[name, len(data)] for name, data in left.items()]
    say(event="ended", status=status, cpu_user_s=used.ru_utime, cpu_sys_s=used.ru_stime, files=sizes)
    for data in left.values():
        sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def say(**facts: object) -> None:
    """Tell velodrome something."""
    sys.stdout.buffer.write(json.dumps(facts).encode() + b"\n")
    sys.stdout.buffer.flush()


def _exactly(size: int) -> bytes:
    """Read so many bytes of standard input, never more: the rest is read by another."""
    found = bytearray()
    while len(found) < size:
        if not (piece := os.read(0, min(size - len(found), 1 << 20))):
            sys.exit(3)
        found += piece
    return bytes(found)


def _end_with(parent: int) -> None:
    """Have the kernel kill us when the parent goes, however it goes."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:
            os._exit(3)


if __name__ == "__main__":
    try:
        outcome = main()
    except (BrokenPipeError, SystemExit):
        outcome = 3
    # Without the interpreter's own end: the reading thread sits in a read that only our starter can end.
    os._exit(outcome)
