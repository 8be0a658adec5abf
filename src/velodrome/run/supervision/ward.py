"""A ward: a process and all its descendants under a warden, so that nothing of it survives velodrome.

with Ward(Order(argv=("/usr/bin/python3", "-m", "http.server"), env={}, cwd="/tmp")) as ward:
    ward.pid, ward.exit(), ward.tail.lines()
"""

import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import psutil

from velodrome.model import secrets
from velodrome.model.errors import StartRefusedError
from velodrome.run.account import Account
from velodrome.run.faults import refusals
from velodrome.run.supervision import python, scratch, warden
from velodrome.run.supervision.scratch import MARK

WARDEN = Path(warden.__file__)
START_SECONDS = 20.0
"""A warden starts in 20 ms; on a machine that swaps it may take long, but not longer than this."""
END_SECONDS = 15.0
"""On top of the stop deadline: the warden's own limits for orphans, SIGKILL and control groups, and some."""
KEPT_BYTES = 64 * 1024
"""Enough for several tracebacks; a server that prints megabytes neither blocks nor fills our memory."""
TORN_CHARACTERS = 4096
"""Left out of the beginning of one endless line of which only the end is kept."""
LINE_CHARACTERS = 500
"""A server may print one endless line."""


@dataclass(frozen=True)
class Group:
    """A control group to create, with the files to write in it, in order; removed at the end."""

    path: str
    settings: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Order:
    """What to execute, within which bounds. `argv[0]` is an absolute path; `env` is the whole environment."""

    argv: tuple[str, ...]
    env: Mapping[str, str]
    cwd: str = "/"
    cpus: tuple[int, ...] = ()
    rlimits: Mapping[str, int] = field(default_factory=dict)
    """`RLIMIT_AS` and the like to values, soft and hard alike."""
    groups: tuple[Group, ...] = ()
    scratch: tuple[str, ...] = ()
    """Folders removed with all their contents when the tree has ended."""
    stop_signal: int = int(signal.SIGTERM)
    stop_everyone: bool = False
    """Give the stop signal, and the time to obey it, to the whole tree and not to the child alone; for background
    processes that keep somebody's data.
    """
    orphan_deadline_s: float = 1.0
    """How long the child may take to stop when velodrome is gone, before it is killed."""
    user: Account | None = None
    """Whom the child becomes before anything of `argv` is executed; None: as whom velodrome runs."""


@dataclass(frozen=True)
class Exit:
    """How the child itself ended."""

    code: int
    """As in `subprocess`: negative is the number of the signal that killed it."""
    oom_kills: int
    monotonic_ns: int
    with_warden: bool = False
    """Whether it ended because its warden did, which velodrome had not ordered: no fault of its own."""

    @property
    def sentence(self) -> str:
        """`exit 1`, `killed by SIGSEGV` or `killed: its memory limit was reached`.

        A master of workers may end by itself, as if nothing were, once these were killed.
        """
        if self.with_warden:
            return (
                "killed with its warden, the process that watches it for velodrome: somebody ended the warden"
            )
        if self.code >= 0:
            limit = ", after its memory limit was reached and its workers killed" if self.oom_kills else ""
            return f"exit {self.code}{limit}"
        if self.oom_kills and -self.code == signal.SIGKILL:
            return "killed: its memory limit was reached"
        try:
            return f"killed by {signal.Signals(-self.code).name}"
        except ValueError:
            return f"killed by signal {-self.code}"


@dataclass(frozen=True)
class Ending:
    """How the whole tree ended."""

    exit: Exit | None
    hung: bool
    """Whether the child outlived the deadline after its stop signal and was killed."""
    orphans: int
    """Processes that outlived the child and were killed."""
    stuck: tuple[int, ...]
    """Processes that even SIGKILL did not end."""


class Tail:
    """The end of what a process printed: its pipe is always drained, and only the last bytes are kept.

    Owns the read end `number` and closes it when the last writer has gone.
    """

    def __init__(self, number: int) -> None:
        self._number = number
        self._kept = bytearray()
        self._lock = threading.Lock()
        self.total_bytes = 0
        self._thread = threading.Thread(target=self._drain, name="tail", daemon=True)
        self._thread.start()

    def _drain(self) -> None:
        while True:
            try:
                piece = os.read(self._number, 1 << 16)
            except OSError:
                break
            if not piece:
                break
            with self._lock:
                self.total_bytes += len(piece)
                self._kept += piece
                del self._kept[:-KEPT_BYTES]
        os.close(self._number)

    def settle(self, timeout_s: float) -> bool:
        """Wait until all writers have gone and everything was read; whether that came about in time."""
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def lines(self, count: int = 20) -> tuple[str, ...]:
        """Return the last lines that are not blank, undecodable bytes replaced, overlong lines cut, secrets masked."""
        with self._lock:
            text = bytes(self._kept).decode("utf-8", "replace")
            torn = self.total_bytes > len(self._kept)
        if torn:
            # Its beginning may be the end of a secret, which nobody would know any more.
            first, end, rest = text.partition("\n")
            text = rest if end else first[TORN_CHARACTERS:]
        found = [line.rstrip() for line in secrets.mask(text).splitlines() if line.strip()]
        return tuple(
            line if len(line) <= LINE_CHARACTERS else line[:LINE_CHARACTERS] + "…" for line in found[-count:]
        )


class Ward:
    """Starts when created. Raises StartRefusedError when the kernel refuses a part of the order, ExhaustedError when it
    has no more of what a start takes.
    """

    def __init__(self, order: Order, stdout: int | None = None, keeps: Sequence[int] = ()) -> None:
        """`stdout`: a file descriptor that takes standard output, which else goes to the tail with the errors.

        `keeps`: file descriptors that warden and tree hold open as long as they live, such as that of a lock.
        """
        self.order = order
        self._keeps = tuple(keeps)
        self._stdout = stdout
        home = scratch.home()
        self.mark = scratch.mark(str(home.lock))
        self._held = home.descriptor, str(home.lock)
        self._lock = threading.Lock()
        self._pending = b""
        self._exit: Exit | None = None
        self._ending: Ending | None = None
        self._warden_gone = False
        self.pid = 0
        with refusals():
            self._control, theirs = socket.socketpair()
            try:
                self._spawn(theirs)
                self._await_start()
            except BaseException:
                theirs.close()
                self.stop(0.0)
                raise

    def _spawn(self, theirs: socket.socket) -> None:
        read, write = os.pipe()
        try:
            self.tail = Tail(read)
        except BaseException:
            os.close(read)
            os.close(write)
            raise
        output = write if self._stdout is None else self._stdout
        try:
            self._warden = subprocess.Popen(
                python.alone_by_main(WARDEN, str(theirs.fileno())),
                pass_fds=(theirs.fileno(), write, output, self._held[0], *self._keeps),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=write,
                env=secrets.environment(),
                start_new_session=True,
            )
        finally:
            os.close(write)
        theirs.close()
        env = {**self.order.env, MARK: self.mark}
        order = asdict(self.order) | {"stdio": [0, output, write], "env": env, "lock": self._held}
        self._control.sendall(json.dumps(order).encode() + b"\n")

    def _await_start(self) -> None:
        until = time.monotonic() + START_SECONDS
        while not self.pid:
            self._hear(until - time.monotonic())
            if self._warden_gone or time.monotonic() > until:
                raise StartRefusedError("warden", " ".join(self.tail.lines(3)), 0)

    def _hear(self, timeout_s: float) -> None:
        """Take in what the warden reports, waiting at most `timeout_s` for the first of it."""
        with self._lock:
            if self._warden_gone or not select.select([self._control], [], [], max(0.0, timeout_s))[0]:
                return
            try:
                data = self._control.recv(65536)
            except OSError:
                data = b""
            if not data:
                self._warden_gone = True
            *lines, self._pending = (self._pending + data).split(b"\n")
        for line in lines:
            self._take(json.loads(line))

    def _take(self, report: Mapping[str, Any]) -> None:
        if report["event"] == "started":
            self.pid = report["pid"]
        elif report["event"] == "refused":
            raise StartRefusedError(report["stage"], report["what"], report["errno"])
        elif report["event"] == "exited":
            self._exit = Exit(report["code"], report["oom_kills"], report["monotonic_ns"])
        elif report["event"] == "ended":
            self._ending = Ending(self._exit, report["hung"], report["orphans"], tuple(report["stuck"]))

    def exit(self) -> Exit | None:
        """Return how the child ended, or None while it runs. Cheap enough to be called often."""
        self._hear(0.0)
        if self._exit is None and self._warden_gone:
            return Exit(-int(signal.SIGKILL), 0, time.monotonic_ns(), with_warden=True)  # by PR_SET_PDEATHSIG
        return self._exit

    def wait(self, timeout_s: float) -> Exit | None:
        """Wait for the child to end by itself, at most `timeout_s`."""
        until = time.monotonic() + timeout_s
        while (ended := self.exit()) is None and time.monotonic() < until:
            self._hear(until - time.monotonic())
        return ended

    def family(self) -> tuple[int, ...]:
        """Return every living process that carries this tree's mark, the warden left out."""
        found = []
        for process in psutil.process_iter():
            try:
                if process.environ().get(MARK) == self.mark and process.status() != psutil.STATUS_ZOMBIE:
                    found.append(process.pid)
            except (psutil.Error, OSError):
                continue
        return tuple(found)

    def stop(self, deadline_s: float = 10.0) -> Ending:
        """Stop signal, `deadline_s` to obey it, then SIGKILL to the whole tree. May be called again."""
        until = time.monotonic() + deadline_s + END_SECONDS
        with suppress(OSError):  # it may have ended already
            self._control.sendall(json.dumps({"deadline_s": deadline_s}).encode() + b"\n")
        while self._ending is None and not self._warden_gone and time.monotonic() < until:
            self._hear(until - time.monotonic())
        self._close()
        if self._ending is None:
            # Without a warden from the beginning there is nothing to end.
            stuck = self._end_without_warden() if hasattr(self, "_warden") else ()
            self._ending = Ending(self.exit(), hung=False, orphans=0, stuck=stuck)
        return self._ending

    def _end_without_warden(self) -> tuple[int, ...]:
        """The warden was killed, and its sentinel: their duty falls to us, by the mark and the control groups."""
        for group in self.order.groups:
            warden.end_group(group.path)
            warden.remove_group(group.path)
        stuck = scratch.end_marked(self.mark, END_SECONDS) if sys.platform == "linux" else self._end_by_name()
        for folder in self.order.scratch:
            warden.clear(folder)
        return tuple(stuck)

    def _end_by_name(self) -> list[int]:
        """Elsewhere than on Linux: by the mark alone."""
        until = time.monotonic() + END_SECONDS
        while (left := self.family()) and time.monotonic() < until:
            for pid in left:
                with suppress(psutil.Error):
                    psutil.Process(pid).kill()
            time.sleep(0.01)
        return list(left)

    def _close(self) -> None:
        process: subprocess.Popen[bytes] | None = getattr(self, "_warden", None)
        if process is None:
            self._control.close()
            return
        try:
            process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        # It was the sentinel: where that was killed the warden may still be at work.
        until = time.monotonic() + END_SECONDS
        while not self._warden_gone and time.monotonic() < until:
            self._hear(until - time.monotonic())
        self._control.close()
        self._warden_gone = True
        self.tail.settle(2.0)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop(0.0 if kind and not self.order.stop_everyone else 10.0)
