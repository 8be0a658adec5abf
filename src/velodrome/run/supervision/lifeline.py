"""Start a process of velodrome's own (engine, upstream) that ends when velodrome does.

Its standard input is a pipe that only we hold: it carries the work and, by its end, the news of our death,
even by `kill -9`. The process pins itself and gives up root by its command line, so nothing runs between fork and exec.
"""

import selectors
import signal
import subprocess
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType
from typing import IO, Self

from velodrome.model import secrets
from velodrome.run.account import acting
from velodrome.run.faults import refusals
from velodrome.run.supervision import python

LAST_LINES = 12
"""Kept of what a dead process wrote: a traceback's end and the sentence before it fit."""
GRACE_S = 3.0
"""Given to a process to end after its pipe was closed; it needs milliseconds."""


@dataclass
class Child:
    """A running process of ours; leaving the `with` block ends it."""

    process: subprocess.Popen[bytes]
    errors: IO[bytes]

    @property
    def pid(self) -> int:
        """Its process id."""
        return self.process.pid

    @property
    def input(self) -> IO[bytes]:
        """Its standard input; closing it tells the process to end."""
        assert self.process.stdin is not None
        return self.process.stdin

    @property
    def output(self) -> IO[bytes]:
        """Its standard output, unbuffered."""
        assert self.process.stdout is not None
        return self.process.stdout

    def send(self, message: bytes) -> None:
        """Write all of a message. A process that died before reading it is told by its exit status later."""
        left = memoryview(message)
        with suppress(BrokenPipeError):
            while left:
                left = left[self.input.write(left) :]

    def answer(self, patience_s: float) -> bytes:
        """Return the next line of its standard output.

        Raises TimeoutError when none comes in time, EOFError with what there was when it has ended.
        """
        line = b""
        with selectors.DefaultSelector() as selector:
            selector.register(self.output, selectors.EVENT_READ)
            while not line.endswith(b"\n"):
                if not selector.select(patience_s):
                    raise TimeoutError(f"no answer from its process within {patience_s:g} s")
                chunk = self.output.read(4096)
                if not chunk:
                    raise EOFError(
                        line.decode(errors="replace") or f"its process has ended ({self.ending()})"
                    )
                line += chunk
        return line

    def ending(self) -> str:
        """Return how it ended, once it closed its output: `exit 3`, `killed by SIGKILL`."""
        try:
            code = self.process.wait(GRACE_S)
        except subprocess.TimeoutExpired:
            return "it still runs, and says nothing"
        if code >= 0:
            return f"exit {code}"
        try:
            return f"killed by {signal.Signals(-code).name}"
        except ValueError:
            return f"killed by signal {-code}"

    def last_lines(self) -> tuple[str, ...]:
        """Return the end of what it wrote to standard error, secrets masked."""
        self.errors.seek(0)
        return tuple(secrets.mask(self.errors.read().decode(errors="replace")).splitlines()[-LAST_LINES:])

    def end(self) -> int:
        """Close its input, wait, kill it when it does not go; return its exit status. May be called again."""
        with suppress(BrokenPipeError):  # dead already: its exit status tells why
            self.input.close()
        try:
            return self.process.wait(GRACE_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return self.process.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end()
        self.output.close()
        self.errors.close()


def start(module: str, *arguments: str, cpus: Sequence[int] = (), pass_fds: Sequence[int] = ()) -> Child:
    """Start a module of velodrome's with `--cpus … --user … arguments`, return it at once; it inherits `pass_fds`.

    It pins itself, and becomes whom foreign code runs as once it has imported what it needs: see `own_process`.
    It gets a session of its own, so that Ctrl-C reaches velodrome alone, which then ends it in order. Raises
    ExhaustedError or ScratchError where the system has no more of what it takes.
    """
    account = acting()
    user = account.identity if account else ""
    begun = python.own(module, "--cpus", ",".join(map(str, cpus)), "--user", user, *arguments)
    with refusals():
        errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed by Child; a pipe could fill up and block the process
        try:
            process = subprocess.Popen(
                begun.argv,
                env=secrets.environment(begun.env),
                cwd=begun.cwd,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                bufsize=0,
                start_new_session=True,
                pass_fds=tuple(pass_fds),
            )
        except BaseException:
            errors.close()
            raise
    return Child(process, errors)
