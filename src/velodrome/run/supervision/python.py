"""How every Python process is started: none imports anything from the folder it is started in.

    begun = own("velodrome.run.drivers.engine_process", "--cpus", "1")
    subprocess.Popen(begun.argv, env=begun.env, cwd=begun.cwd)
    with start_own("velodrome.run.upstream_process", cpus=(1,)) as child: ...

`python -m` puts the current folder first on `sys.path`, and so does an empty or relative entry of PYTHONPATH. A
`json.py` or `signal.py` of a user's there would run inside of velodrome, perhaps as root. Four kinds are started:

own         velodrome's own modules, on its own interpreter: `-P`, and no entry of PYTHONPATH that means the folder
alone       files of velodrome's that need nothing but the standard library: `-I -S`
answering   a line of code for an interpreter of the user's: `-I`
guest       modules of the guest tree, on any interpreter from 3.7 on. These know no `-P`, so they run in a folder of
            velodrome's, the tree itself by default

A server runs in the folder of its app, or in an empty folder (`run/servers.py`), and so does what looks at an app
(`run/apps/looking.py`): there the folder is meant to be imported from.
"""

import os
import selectors
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from velodrome.model import secrets
from velodrome.run.account import acting, current_process
from velodrome.run.faults import refusals

HOME = str(Path(__file__).parents[3])
"""The folder that the package `velodrome` lies in."""
FOR_TERMINALS = ("PYTHONSTARTUP", "PYTHONINSPECT")
"""Variables that name what is run before or after a program for somebody at a terminal."""
NAMING_FOLDERS = ("PYTHONHOME", "PYTHONUSERBASE", "PYTHONPYCACHEPREFIX")
"""Variables by which Python finds code; relative paths depend on the current folder."""


@dataclass(frozen=True)
class Start:
    """A process to be started."""

    argv: tuple[str, ...]
    env: Mapping[str, str]
    """The whole environment."""
    cwd: str | None = None
    """None: the folder that this process is in."""


def own(module: str, *arguments: str) -> Start:
    """Return how to run a module of velodrome's as a process of its own, in the current folder."""
    return Start((sys.executable, "-P", "-m", module, *arguments), own_environment())


def read_by_own() -> tuple[str, str]:
    """Return the folder and the file that a user must be able to reach whose process runs a module of velodrome's."""
    return HOME, os.path.realpath(sys.executable)


def own_environment() -> dict[str, str]:
    """Return this process's environment without what would make a Python import from the current folder."""
    kept = {name: value for name, value in os.environ.items() if name not in FOR_TERMINALS}
    for name in NAMING_FOLDERS:
        if not os.path.isabs(kept.get(name, os.sep)):
            del kept[name]
    named = kept.pop("PYTHONPATH", "")
    path = _absolute(named.split(os.pathsep) if named else [])
    return {**kept, "PYTHONPATH": os.pathsep.join(path)} if path else kept


def _absolute(entries: list[str]) -> list[str]:
    """Return the absolute entries; with velodrome's own home, where it was found through a relative entry.

    So it is when its source is run as it lies there, `PYTHONPATH=src python -m velodrome`.
    """
    path = [entry for entry in entries if os.path.isabs(entry)]
    try:
        reached = {os.path.abspath(entry) for entry in [*entries, *sys.path[:1]]}
    except OSError:  # the current folder was removed
        return path
    return [*path, HOME] if HOME in reached and HOME not in path else path


def alone(*words: str) -> tuple[str, ...]:
    """Return the arguments that run a file (or `-c`, code) with the standard library and nothing else.

    Whatever the environment says: `-I` does not read it, and `-S` leaves out what is installed. Starts in 20 ms.
    """
    return (sys.executable, "-I", "-S", *words)


def alone_by_main(file: Path, *words: str) -> tuple[str, ...]:
    """Return the arguments that run `main` of a file as `alone` does; from its bytecode, where that is written.

    A file that is run by its path is compiled each time, which took a warden a fifth of its start.
    """
    code = f"import sys; sys.path.append(sys.argv[1].rpartition('/')[0]); import {file.stem} as it; it.main()"
    return alone("-c", code, str(file), *words)


def answering(python: str, code: str) -> tuple[str, ...]:
    """Return the arguments that run a line of code on some interpreter, without the current folder or PYTHONPATH."""
    return (python, "-I", "-c", code)


def guest(
    python: str | Path, tree: Path, module: str, *arguments: str, env: Mapping[str, str], cwd: str = ""
) -> Start:
    """Return how to run a module of the guest tree on an interpreter of its environment.

    `env` is the whole environment, but for PYTHONPATH; `cwd` a folder of velodrome's, the tree itself unless given.
    """
    argv = (str(python), "-m", module, *arguments)
    return Start(argv, {**env, "PYTHONPATH": str(tree)}, cwd or str(tree))


def guest_answer(begun: Start, limit_s: float) -> subprocess.CompletedProcess[str]:
    """Run what `guest` began to its end, as whom foreign code runs as; its answer is the last line it printed.

    Raises OSError where it cannot be started, subprocess.TimeoutExpired after `limit_s`.
    """
    return subprocess.run(
        begun.argv,
        env=begun.env,
        cwd=begun.cwd,
        capture_output=True,
        text=True,
        check=False,
        timeout=limit_s,
        **current_process(),
    )


LAST_LINES = 12
"""Kept of what a dead process wrote: a traceback's end and the sentence before it fit."""
GRACE_S = 3.0
"""Given to a process to end after its pipe was closed; it needs milliseconds."""


@dataclass
class Child:
    """A running process of velodrome's own (engine, relay, third party), which ends when velodrome does.

    Its standard input is a pipe that only we hold: it carries the work and, by its end, the news of our death, even by
    `kill -9`. The process pins itself and gives up root by its command line (`own_process`), so nothing runs between
    fork and exec. Leaving the `with` block ends it.
    """

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
        """Write all of a message. A process that died before reading it is known by its exit status later."""
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


def start_own(
    module: str,
    *arguments: str,
    cpus: Sequence[int] = (),
    pass_fds: Sequence[int] = (),
    variables: Mapping[str, str] | None = None,
) -> Child:
    """Start a module of velodrome's with `--cpus … --user … arguments`, return it at once; it inherits `pass_fds`.

    Its environment is ours without secrets, or else `variables`.

    It pins itself, and becomes whom foreign code runs as once it has imported what it needs: see `own_process`.
    It gets a session of its own, so that Ctrl-C reaches velodrome alone, which then ends it in order. Raises
    ExhaustedError or ScratchError where the system has no more of what it takes.
    """
    account = acting()
    user = account.identity if account else ""
    begun = own(module, "--cpus", ",".join(map(str, cpus)), "--user", user, *arguments)
    with refusals():
        errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed by Child; a pipe could fill up and block the process
        try:
            process = subprocess.Popen(
                begun.argv,
                env=secrets.environment(begun.env if variables is None else variables),
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
