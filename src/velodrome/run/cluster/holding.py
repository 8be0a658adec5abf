"""What a host may do for a cluster, held where code that is sent to its agent cannot reach it.

    velodrome agent, as root (hold) --- starts ---> worker of Dask, a user that nobody else is
                                    --- starts ---> engine, another user
                                    --- starts ---> a race on this host, a third user

Any code can be run on a worker of Dask. So where there is root, the worker is a process without any, and asks this one
over a socket for engines and races: `Held` there, `hold` here. This process reads nothing else, imports no Dask, and
decides by the policy it was started with. Without root the worker starts them itself (`Own`): code that is sent can
then do what its user can, and the policy protects from mistakes.
"""

import json
import os
import socket
import threading
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Protocol, Self

from velodrome.model.errors import AgentEndedError, AgentStartError, UsageError, VelodromeError
from velodrome.run import account
from velodrome.run.account import Account
from velodrome.run.machine.facts import usable_cpus
from velodrome.run.supervision import python, scratch

ENGINE = "velodrome.run.drivers.engine_process"
WORKER = "velodrome.run.cluster.coordinator"
RACES = {
    "blocks": "velodrome.run.cluster.blocks",
    "loads": "velodrome.usecases.tune_hosts",
    "examinations": "velodrome.usecases.diagnose_on_hosts",
    "looks": "velodrome.usecases.look_on_hosts",
}
"""What runs on a host, by what it is given there: blocks, single loads of a search (`usecases/tune_hosts.py`), whole
apps to examine, or apps to look at."""
ROLES = ("load", "server", "third-party")
"""What an agent may be for."""
START_S = 30.0
"""For the worker to have joined: it imports Dask, which takes a second."""
MOST_HEAD = 1 << 24
MOST_BODY = 1 << 30
"""Bytes of a question, so that whoever asks cannot fill the memory of this process."""
KEPT = (
    *("PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV"),
    *("SSL_CERT_FILE", "SSL_CERT_DIR"),  # whom to trust as a package index
)
"""Of root's environment, for the worker and for races: the rest may be root's secrets."""


@dataclass(frozen=True)
class Policy:
    """What an agent is, and what it may do; stated where it is started, and nowhere else."""

    name: str = ""
    """Empty: its host and its process."""
    roles: tuple[str, ...] = ("load",)
    cpus: tuple[int, ...] = ()
    """For its engine; empty: all this process may use."""
    allow_target: tuple[str, ...] = ()
    """Hosts it may load although they are not its own loopback."""

    def check(self) -> None:
        """Raise UsageError for CPUs that this process may not use."""
        if strange := sorted(set(self.cpus) - set(usable_cpus())):
            raise UsageError(
                f"--cpus: there is no CPU {strange[0]} on {socket.gethostname()} that this process may use; there are "
                + ", ".join(map(str, usable_cpus()))
            )

    @property
    def serves(self) -> bool:
        """Whether it runs races: their servers and apps."""
        return bool({"server", "load"} & {*self.roles})

    def permit(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        """Return the fields of a load with no more targets than may be loaded."""
        wanted = set(fields.get("allow_target") or ())
        return {**fields, "allow_target": sorted(wanted & set(self.allow_target))}

    @classmethod
    def read(cls, fields: Mapping[str, Any]) -> "Policy":
        """Read what `asdict` makes of one, from JSON; a field that is missing is as usual."""
        read: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value for name, value in fields.items()
        }
        return cls(**read)


class Started(Protocol):
    """A running engine that has its load, or a race; leaving the `with` block ends it."""

    @property
    def input(self) -> IO[bytes]:
        """Takes the line that has it begin; its end ends the load."""

    @property
    def output(self) -> IO[bytes]:
        """Its events and its document."""

    def send(self, message: bytes) -> None:
        """Write all of a message."""

    def ending(self) -> str:
        """Return how it ended, once it closed its output."""

    def last_lines(self) -> tuple[str, ...]:
        """Return the end of what it wrote to standard error."""

    def end(self) -> object:
        """Have it end, and wait until it has."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class Starter(Protocol):
    """What starts engines and races for an agent."""

    by: str
    """Who decides what may be loaded: `root`, or `itself`: the agent."""

    def start(self, fields: Mapping[str, Any], body: bytes, expected: bytes | None) -> Started:
        """Start an engine with a load, as far as that is permitted. Raises VelodromeError."""

    def race(self, given: str) -> Started:
        """Start what runs a race here (`RACES`). Raises VelodromeError, KeyError."""


class Own:
    """Processes that the agent starts itself."""

    by = "itself"

    def __init__(self, policy: Policy) -> None:
        self.policy = policy

    def start(self, fields: Mapping[str, Any], body: bytes, expected: bytes | None) -> python.Child:
        """See Starter."""
        child = python.start_own(ENGINE, cpus=self.policy.cpus)
        head = json.dumps(self.policy.permit(fields)).encode()
        sizes = f"{len(head)} {len(body)} {-1 if expected is None else len(expected)}\n"
        child.send(sizes.encode() + head + body + (expected or b""))
        return child

    def race(self, given: str) -> python.Child:
        """See Starter."""
        return python.start_own(RACES[given])


class Held:
    """Processes that another process starts, which has root; the end of it that the agent has."""

    by = "root"

    def __init__(self, descriptor: int) -> None:
        self._connection = socket.socket(fileno=descriptor)
        self._guard = threading.Lock()

    def start(self, fields: Mapping[str, Any], body: bytes, expected: bytes | None) -> "HeldProcess":
        """See Starter."""
        sizes = {"body": len(body), "expected": -1 if expected is None else len(expected)}
        head = json.dumps({"do": "start", "fields": fields, **sizes}).encode()
        return self._start("engine", head + b"\n" + body + (expected or b""))

    def race(self, given: str) -> "HeldProcess":
        """See Starter."""
        return self._start("race", json.dumps({"do": "race", "given": given}).encode() + b"\n")

    def end(self, which: str) -> dict[str, Any]:
        """Have the `engine` or the `race` end; return how it did."""
        return self._ask(json.dumps({"do": "end", "which": which}).encode() + b"\n")[0]

    def _start(self, which: str, question: bytes) -> "HeldProcess":
        answer, descriptors = self._ask(question)
        if "error" in answer:
            raise AgentStartError(answer["error"], "")
        return HeldProcess(self, which, *descriptors)

    def _ask(self, question: bytes) -> tuple[dict[str, Any], list[int]]:
        answer, descriptors = b"", []
        with self._guard:
            try:
                self._connection.sendall(question)
                while not answer.endswith(b"\n"):
                    chunk, more, _, _ = socket.recv_fds(self._connection, 1 << 16, 2)
                    if not chunk:
                        raise EOFError
                    answer += chunk
                    descriptors += more
            except (OSError, EOFError) as error:
                raise AgentStartError(
                    "the process that holds its policy has ended", "Start it again"
                ) from error
        return json.loads(answer), descriptors


class HeldProcess:
    """A child of another process, by its pipes."""

    def __init__(self, held: Held, which: str, to_it: int, from_it: int) -> None:
        self._held, self._which = held, which
        self._ending = threading.Lock()
        self.input: IO[bytes] = open(to_it, "wb", buffering=0)  # noqa: SIM115 - closed at the end
        self.output: IO[bytes] = open(from_it, "rb", buffering=0)  # noqa: SIM115
        self._ended: dict[str, Any] | None = None

    def send(self, message: bytes) -> None:
        """See Started."""
        with suppress(BrokenPipeError):
            self.input.write(message)

    def ending(self) -> str:
        """See Started."""
        return str(self.end()["ending"])

    def last_lines(self) -> tuple[str, ...]:
        """See Started."""
        return tuple(self.end()["last_lines"])

    def end(self) -> dict[str, Any]:
        """See Started. Returns how it ended and what it wrote last."""
        with self._ending:
            if self._ended is None:
                with suppress(OSError):
                    self.input.close()
                self._ended = self._held.end(self._which)
            return self._ended

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with suppress(OSError, VelodromeError):
            self.end()
        self.output.close()


def hold(how: Mapping[str, Any], policy: Policy, user: str, on_ready: Callable[[str], None]) -> None:
    """Start the worker of an agent without root, and engines and races for it, until the worker ends. Root only.

    `how` is what the worker is to do (`coordinator.py`), with the contents of the cluster's keys. Engines run as
    `user`, else as who called sudo, else as a user that nobody else is. Races run any code that is sent, so they are of
    a real user only where one is named here; else as yet another that nobody is, who cannot change an engine either.
    Raises AccountError, AgentStartError, AgentEndedError.
    """
    worker = account.unused_account()
    of_engines = account.account_for(user) or account.unused_account(worker.uid)
    named = account.account_for(user) if user else None
    of_races = named or account.unused_account(worker.uid, of_engines.uid)
    ours, theirs = socket.socketpair()
    with ExitStack() as stack:
        stack.callback(ours.close)
        folder = stack.enter_context(scratch.hold_folder("worker"))
        give(folder, worker)
        kept = {name: os.environ[name] for name in KEPT if name in os.environ}
        variables = {**kept, **worker.variables, "TMPDIR": str(folder)}
        with account.acting_as(worker):
            child = python.start_own(WORKER, "-", pass_fds=[theirs.fileno()], variables=variables)
        stack.enter_context(child)
        descriptor = theirs.fileno()
        child.send(
            json.dumps(["worker", {**how, "policy": asdict(policy), "holder": descriptor}]).encode() + b"\n"
        )
        theirs.close()
        try:
            line = child.answer(START_S).decode(errors="replace").strip()
        except (TimeoutError, EOFError) as error:
            raise AgentStartError(f"{error} {' '.join(child.last_lines())}".strip()) from error
        if line.startswith("error "):
            raise AgentStartError(line.removeprefix("error "), "")
        on_ready(line)
        races = _AsUser(of_races, {**kept, **of_races.variables})
        if policy.serves and of_races.home == account.NOWHERE:
            # Environments and what apps write; for as long as the agent runs, because its user is nobody afterwards.
            home = stack.enter_context(scratch.hold_folder("races"))
            give(home, of_races)
            races = _AsUser(of_races, {**races.variables, "HOME": str(home), "TMPDIR": str(home)})
        _Answering(ours, policy, of_engines, races).serve()
        last = child.output.read().decode(errors="replace").strip()
        raise (
            AgentEndedError(how["address"])
            if last
            else AgentStartError(f"its worker ended ({child.ending()})")
        )


def give(folder: Path, to: Account) -> None:
    """Give a folder of this process's temporary files to a user. Raises AgentStartError."""
    try:
        os.chown(folder, to.uid, to.gid)
    except PermissionError as error:  # in a container, root may have no rights
        raise AgentStartError(
            f"root may not act for other users here ({error.strerror})", "Start it as an ordinary user"
        ) from error


@dataclass(frozen=True)
class _AsUser:
    """Whom races run as, and in which environment."""

    account: Account
    variables: Mapping[str, str]


class _Answering:
    """The side that decides."""

    def __init__(self, connection: socket.socket, policy: Policy, user: Account, races: _AsUser) -> None:
        self.connection, self.policy, self.user, self.races = connection, policy, user, races
        self.running: dict[str, python.Child] = {}
        """`engine` and `race`: an agent carries one part of a load at a time, and runs one race."""

    def serve(self) -> None:
        """Answer the worker until it ends, or asks what it should not; then end what runs."""
        try:
            with (
                self.connection.makefile("rb") as questions,
                suppress(OSError, ValueError, KeyError, TypeError),
            ):
                while head := questions.readline(MOST_HEAD):
                    self._answer(json.loads(head), questions)
        finally:
            for which in ("engine", "race"):
                self._end(which)

    def _answer(self, question: Mapping[str, Any], rest: IO[bytes]) -> None:
        if question["do"] == "end":
            self.connection.sendall(json.dumps(self._end(question["which"])).encode() + b"\n")
            return
        which = "race" if question["do"] == "race" else "engine"
        try:
            child = self._race(question["given"]) if which == "race" else self._engine(question, rest)
        except VelodromeError as error:
            self.connection.sendall(json.dumps({"error": str(error)}).encode() + b"\n")
            return
        self.running[which] = child
        socket.send_fds(self.connection, [b"{}\n"], [child.input.fileno(), child.output.fileno()])
        # It ends when the worker closes its end, so there must be no other.
        child.input.close()
        child.output.close()

    def _engine(self, question: Mapping[str, Any], rest: IO[bytes]) -> python.Child:
        body = _exactly(rest, question["body"])
        expected = None if question["expected"] < 0 else _exactly(rest, question["expected"])
        self._end("engine")
        with account.acting_as(self.user):
            return Own(self.policy).start(question["fields"], body, expected)

    def _race(self, given: str) -> python.Child:
        if not self.policy.serves:
            raise UsageError("its roles do not let it serve; start it with: velodrome agent --roles server")
        races = self.races.account
        if closed := next(filter(None, map(races.first_closed, python.read_by_own())), ""):
            raise UsageError(
                f"races run as user {races.name} there, who may not enter {closed}, where velodrome lies; install it "
                "where everybody may read it, or start the agent with --user"
            )
        self._end("race")
        with account.acting_as(races):
            return python.start_own(RACES[given], variables=self.races.variables)

    def _end(self, which: str) -> dict[str, Any]:
        child = self.running.pop(which, None)
        if child is None:
            return {"ending": "it was not started", "last_lines": []}
        with child:
            child.end()
            return {"ending": child.ending(), "last_lines": child.last_lines()}


def _exactly(rest: IO[bytes], size: int) -> bytes:
    if not 0 <= size <= MOST_BODY:
        raise ValueError(f"a body of {size} bytes")
    found = rest.read(size)
    if len(found) < size:
        raise ValueError("the question ended early")
    return found
