"""One server under test: a fresh port, its process in its own environment, and when it counts as ready.

with Server(serving, bounds, cpus=(0,)) as server:
    ready = await_right_answer(target, server.exit, server.started, deadline_s=10.0)
    server.pid, server.url, server.last_lines()

The process sees nothing of velodrome but the guest tree. Its port is fresh: nobody listens on it, and the kernel will
not hand it out to a client. It is ready when it has given a right answer, whole; not when its port opens.
"""

import http.client
import os
import random
import resource
import socket
import threading
import time
from collections.abc import Callable, Container, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

import psutil

from velodrome.guest import catalog
from velodrome.guest.codegen.steps import TURN_VARIABLE
from velodrome.guest.grpc.greeter import method_of
from velodrome.guest.recipe import RECIPE_VARIABLE, UPSTREAM_VARIABLE, Recipe
from velodrome.guest.stack import KnobValue, Launch, Process, Stack
from velodrome.model.errors import NoPortError
from velodrome.model.measurement import FailureKind
from velodrome.run import answer_check
from velodrome.run.account import acting
from velodrome.run.answer_check import UNFINISHED, Partly, Wrong
from velodrome.run.drivers.driver import Target
from velodrome.run.link import Namespace, enter
from velodrome.run.machine import netlink
from velodrome.run.machine.limits import Bounds
from velodrome.run.supervision import scratch
from velodrome.run.supervision.ward import Ending, Exit, Order, Ward

FIRST, LAST = 10_000, 60_999
"""Above the ports of well-known services, below the private range of some systems."""
TRIES = 200
EPHEMERAL = Path("/proc/sys/net/ipv4/ip_local_port_range")


def ephemeral(file: Path = EPHEMERAL) -> range:
    """Return the ports that outgoing connections take: a port of ours could be taken by a client of the load."""
    try:
        low, high = map(int, file.read_text().split())
    except (OSError, ValueError):
        return range(49_152, 65_536)  # RFC 6335, section 6; macOS
    return range(low, high + 1)


def fresh_port(host: str = "127.0.0.1", avoid: Container[int] | None = None) -> int:
    """Return a free port of `host` outside the ephemeral range where there is one. Raises NoPortError.

    Drawn at random, so that a port is not used again while connections of the last server linger on it.
    """
    avoid = ephemeral() if avoid is None else avoid
    candidates = [port for port in range(FIRST, LAST + 1) if port not in avoid] or list(
        range(FIRST, LAST + 1)
    )
    draw = random.SystemRandom()
    for port in draw.sample(candidates, min(TRIES, len(candidates))):
        if _free(host, port):
            return port
    raise NoPortError(host, TRIES)


def _free(host: str, port: int) -> bool:
    """Whether nobody listens on the port and it can be bound (without SO_REUSEPORT, which would share it)."""
    if netlink.listening(port):
        return False
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as probe:
        try:
            probe.bind((host, port))
        except OSError:
            return False
    return True


SHELL = "/bin/sh"
STOP_SECONDS = 10.0
"""From its stop signal to SIGKILL, by default."""
CLOSING_S = 1.0
"""How long after the end of its processes a server's port may take to be free."""
DESCRIPTORS = 65_536
"""Most a server gets, if the machine allows: enough for any load here; some servers close each of them."""
INHERITED = ("PATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "SYSTEMROOT", "TZ")
"""Of velodrome's own environment: what an interpreter needs to start. Anything else could differ unseen."""


@dataclass(frozen=True)
class Serving:
    """What is to be served, by whom, where: plain data."""

    stack: Stack
    recipe: Recipe
    python: Path
    """Interpreter of the stack's environment."""
    guest_tree: Path
    port: int
    host: str = "127.0.0.1"
    knobs: Mapping[str, KnobValue] = field(default_factory=dict)
    """Those that differ from the stack's defaults."""
    upstream: str = ""
    """Base URL of the third party, without a final slash."""
    beside: Mapping[str, str] = field(default_factory=dict)
    """Variables with the addresses of services: databases."""
    turn_ns: str = ""
    """Nanoseconds of one turn of the CPU loop; empty: the server finds out."""
    app: str = ""
    """`module:attribute`; empty is the recipe in the idiom of the stack's interface."""
    packages: Mapping[str, str] = field(default_factory=dict)
    """Versions installed in that environment, where these are a user's; else empty."""
    cwd: str = ""
    """Folder it runs in; empty: a folder of its own, which is removed with it."""
    variables: Mapping[str, str] = field(default_factory=dict)
    """Of the environment of a user's app."""
    call: str = ""
    """`/package.Service/Method` that is called on a user's servicer; empty: the recipe's."""
    shell: str = ""
    """What a POSIX shell is given to start it, as a user pastes it; empty: the stack's own command is started."""

    @property
    def workers(self) -> int | None:
        """Requested worker processes; None: the stack has no such knob."""
        value = {**self.stack.knobs, **self.knobs}.get("workers")
        return value if isinstance(value, int) else None

    def process(self) -> Process:
        """Return what the stack wants executed."""
        app = self.app or f"velodrome.guest.interfaces.{self.stack.interface}:app"
        knobs = {**self.stack.knobs, **self.knobs}
        return self.stack.command(Launch(self.host, self.port, app, knobs, self.packages))

    @property
    def url(self) -> str:
        """Where it will listen, with the path to ask for: over gRPC, the call."""
        place = f"{self.host}:{self.port}"
        if catalog.interface(self.stack.interface).protocol == "grpc":
            return f"grpc://{place}{self.call or method_of(self.recipe).path}"
        return f"ws://{place}/" if self.recipe.chats else f"http://{place}/"


@dataclass(frozen=True)
class Stopped:
    """How a server ended, and what was still there afterwards although it must not be."""

    ending: Ending
    left: tuple[str, ...]
    """Phrases: processes, listeners, files. Empty as it should be."""


class Server:
    """Starts when created: ask `readiness` whether it answers. Raises StartRefusedError.

    Also raises whatever the stack's own `command` raises; a stack is somebody else's code.
    """

    def __init__(
        self, serving: Serving, bounds: Bounds, cpus: Sequence[int] = (), inside: Namespace | None = None
    ) -> None:
        """`inside`: a network of its own."""
        process = serving.process()
        self._inside = inside
        self.serving = serving
        self.command = (str(serving.python), *process.argv)
        if serving.shell:
            self.command = (SHELL, "-e", "-c", serving.shell)
        self._scratch = scratch.new_path("server")
        self._stopped: Stopped | None = None
        self.started = time.monotonic()
        order = Order(
            argv=self.command,
            env=environment_of(serving, process, self._scratch),
            cwd=serving.cwd or str(self._scratch),
            cpus=tuple(cpus),
            rlimits={"RLIMIT_NOFILE": descriptors(), **bounds.rlimits},
            groups=bounds.groups,
            scratch=(str(self._scratch),),
            stop_signal=int(process.stop_signal),
            user=acting(),
        )
        with enter(inside):  # the warden is in it, and so is all that it starts
            self._ward = Ward(order)

    @property
    def pid(self) -> int:
        """Its first process: the root of the tree, and of its session."""
        return self._ward.pid

    @property
    def url(self) -> str:
        """Where it listens, with the path to ask for."""
        return self.serving.url

    def exit(self) -> Exit | None:
        """Return how its first process ended, or None while it runs."""
        return self._ward.exit()

    def last_lines(self, count: int = 20) -> tuple[str, ...]:
        """Return the end of what it printed; once it has died, to the last byte."""
        if self._ward.exit() is not None:
            self._ward.tail.settle(1.0)
        return self._ward.tail.lines(count)

    def stop(self, deadline_s: float = STOP_SECONDS) -> Stopped:
        """Stop signal, deadline, SIGKILL; then look what is left. May be called again."""
        if self._stopped is None:
            ending = self._ward.stop(deadline_s)
            self._stopped = Stopped(ending, self._left(ending))
        return self._stopped

    def elsewhere(self) -> tuple[str, ...]:
        """Return where its processes listen beside the port it was given, as `host:port`."""
        found = []
        for pid in self._ward.family():
            with suppress(psutil.Error, OSError):
                found += [
                    f"{net_connection.laddr.ip}:{net_connection.laddr.port}"
                    for net_connection in psutil.Process(pid).net_connections("tcp")
                    if net_connection.status == psutil.CONN_LISTEN
                    and net_connection.laddr.port != self.serving.port
                ]
        return tuple(dict.fromkeys(found))

    def _left(self, ending: Ending) -> tuple[str, ...]:
        found = [f"process {pid}" for pid in {*ending.stuck, *self._ward.family()}]
        found += [f"a listener on port {port}" for port in self._listening_still()]
        if self._scratch.exists():
            found.append(f"files in {self._scratch}")
        return tuple(found)

    def listening(self) -> list[int]:
        """Return the port if it is listened on, once for each socket that does."""
        with enter(self._inside):
            return [tcp_socket.port for tcp_socket in netlink.listening(self.serving.port) or ()]

    def _listening_still(self) -> list[int]:
        """Return the port if it is still listened on, also after `CLOSING_S`.

        A process whose first thread has ended counts as ended; its other threads may hold its sockets a moment longer.
        """
        until = time.monotonic() + CLOSING_S
        while (found := self.listening()) and time.monotonic() < until:
            time.sleep(0.01)
        return found

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # After Ctrl-C nobody wants to wait for a polite end.
        self.stop(0.5 if kind is not None and not issubclass(kind, Exception) else STOP_SECONDS)


def environment_of(serving: Serving, process: Process, home: Path) -> dict[str, str]:
    """Return the whole environment of a server: the guest tree and its own packages are all it sees.

    What a user pastes sees neither: what it needs is in its lines, and in the variables of their app.
    """
    kept = {name: os.environ[name] for name in INHERITED if name in os.environ}
    if serving.shell:
        return {**kept, "LANG": "C.UTF-8", "HOME": str(home), "TMPDIR": str(home), **serving.variables}
    return {
        **kept,
        "LANG": "C.UTF-8",
        "HOME": str(home),
        "TMPDIR": str(home),
        "PYTHONNOUSERSITE": "1",
        "PYTHONUNBUFFERED": "1",  # the last words of a dying server would else be lost in its buffer
        **serving.variables,
        **process.env,
        **process.laboratory,
        **({TURN_VARIABLE: serving.turn_ns} if serving.turn_ns else {}),
        **serving.beside,
        "PYTHONPATH": os.pathsep.join(
            filter(None, (str(serving.guest_tree), serving.variables.get("PYTHONPATH")))
        ),
        RECIPE_VARIABLE: serving.recipe.to_json(),
        UPSTREAM_VARIABLE: serving.upstream,
    }


def descriptors() -> int:
    """Return how many descriptors a server gets: as many as the machine allows, up to DESCRIPTORS."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard == resource.RLIM_INFINITY:
        return DESCRIPTORS
    return max(soft, min(hard, DESCRIPTORS)) if soft != resource.RLIM_INFINITY else min(hard, DESCRIPTORS)


PAUSE_S = 0.01
"""Between two tries: boot times are measured to about this."""
PATIENCE_S = 2.0
"""For one try, on top of what the recipe takes; doubled each time, for servers whose first answer is slow."""
GRACE_S = 1.0
"""An answer must stay wrong this long to count: a master may answer before its workers are up."""
SHOWN_BYTES = 200
EXTRA_BYTES = 65_536
"""Read of an answer beyond its right length; an endless answer is wrong long before."""


@dataclass(frozen=True)
class Ready:
    """The server answers rightly, or listens; `boot_s` from its start to the end of its first right answer, or to
    that."""

    boot_s: float
    wrong: str = ""
    """What of a mix it answers wrongly, although enough is right; empty: nothing."""


@dataclass(frozen=True)
class NotReady:
    """It does not, and why."""

    failure: FailureKind
    reason: str


def await_right_answer(
    target: Target,
    exited: Callable[[], Exit | None],
    started: float,
    deadline_s: float,
    answer_s: float = 0.0,
) -> Ready | NotReady:
    """Ask until a right answer comes, the server has died, keeps answering wrongly, or time is up.

    `started` is on the clock of `time.monotonic`; `deadline_s` counts from then; `answer_s` is how long the
    recipe takes at least.
    """
    until = started + deadline_s
    patience = PATIENCE_S + answer_s
    first_wrong = 0.0
    last = ""
    while True:
        now = time.monotonic()
        answer = _ask(target, max(0.05, min(patience, until - now)))
        if answer is None or isinstance(answer, Partly):
            return Ready(time.monotonic() - started, answer.what if answer else "")
        if (died := exited()) is not None:
            return NotReady(FailureKind.START, f"its process ended before it answered: {died.sentence}")
        if isinstance(answer, Wrong):
            first_wrong = first_wrong or time.monotonic()
            if time.monotonic() - first_wrong > GRACE_S:
                return NotReady(FailureKind.WRONG_ANSWER, answer.what)
        else:
            last, first_wrong = answer, 0.0
            if time.monotonic() - now >= patience:
                patience *= 2
        if time.monotonic() >= until:
            if isinstance(answer, Wrong):
                return NotReady(FailureKind.WRONG_ANSWER, answer.what)
            return NotReady(FailureKind.NEVER_ANSWERED, f"no answer within {deadline_s:g} s: {last}")
        time.sleep(PAUSE_S)


def await_listener(server: Server, deadline_s: float) -> Ready | NotReady:
    """Wait until it listens, has died, or so many seconds have passed since its start; it gets no request."""
    while True:
        if server.listening():
            return Ready(time.monotonic() - server.started)
        if (died := server.exit()) is not None:
            return NotReady(FailureKind.START, f"its process ended before it listened: {died.sentence}")
        if time.monotonic() - server.started >= deadline_s:
            return NotReady(FailureKind.NEVER_ANSWERED, f"it does not listen within {deadline_s:g} s")
        time.sleep(PAUSE_S)


def _ask(target: Target, timeout_s: float) -> str | Wrong | Partly | None:
    """Send a request on a fresh connection: None for a right answer, the wrong answer, or why there is none."""
    if target.call is not None:
        return answer_check.ask_grpc(target, target.call, timeout_s)
    if target.chat is not None:
        return answer_check.ask_chat(target, target.chat, timeout_s)
    if target.mix:
        return answer_check.ask_mix(target, timeout_s)
    return _ask_http(target, timeout_s)


def _ask_http(target: Target, timeout_s: float) -> str | Wrong | None:
    parts = urlsplit(target.url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port or 80, timeout=timeout_s)
    # A socket's own timeout begins anew with each byte: a server that trickles would hold us for ever.
    late = threading.Event()
    alarm = threading.Timer(timeout_s, _cut_off, (connection, late))
    alarm.daemon = True
    try:
        connection.connect()
        alarm.start()
        headers = {"Connection": "close", **dict(target.headers)}
        # A server may answer and close before it has read the body: its answer is there all the same.
        with suppress(BrokenPipeError, ConnectionResetError):
            connection.request(target.method, target.path, target.body or None, headers)
        judged = _judge(target, connection.getresponse())
        return UNFINISHED if late.is_set() else judged  # what was cut looks like a short answer
    except (http.client.HTTPException, OSError) as error:
        return _why(error, late.is_set())
    finally:
        alarm.cancel()
        connection.close()


def _cut_off(connection: http.client.HTTPConnection, late: threading.Event) -> None:
    late.set()
    with suppress(OSError, AttributeError):  # it may be closed or closing
        connection.sock.shutdown(socket.SHUT_RDWR)


def _why(error: Exception, late: bool) -> str | Wrong:
    if late or isinstance(error, TimeoutError):
        return UNFINISHED
    if isinstance(error, ConnectionRefusedError):
        return "nothing listens on its port"
    if isinstance(error, http.client.RemoteDisconnected):
        return "it closes the connection without an answer"
    if isinstance(error, http.client.IncompleteRead):
        return Wrong(f"its answer breaks off after {len(error.partial)} bytes")
    if isinstance(error, http.client.HTTPException):
        return Wrong(f"what it answers is not HTTP: {_show_bytes(str(error).encode())}")
    return f"the connection breaks ({error})"


def _judge(target: Target, response: http.client.HTTPResponse) -> Wrong | None:
    wanted = target.expect_body
    most = EXTRA_BYTES + (len(wanted) if wanted is not None else 0)
    body = response.read(most)
    if response.length and len(body) < most:
        return Wrong(f"its answer breaks off after {len(body)} of {len(body) + response.length} bytes")
    status = response.status
    right = 200 <= status < 300 if target.expect_status is None else status == target.expect_status
    if not right:
        expected = "2xx" if target.expect_status is None else str(target.expect_status)
        place = response.getheader("Location", "").encode() if 300 <= status < 400 else b""
        leads = f", and leads to {_show_bytes(place)}" if place else ""
        return Wrong(
            f"it answers {_request_of(target)}status {status}, not {expected}{leads}: {_show_bytes(body)}"
        )
    if wanted is None or body == wanted:
        return None
    if len(body) != len(wanted):
        return Wrong(f"it answers {len(body)} bytes, not {len(wanted)}: {_show_bytes(body)}")
    at = next(index for index, pair in enumerate(zip(body, wanted, strict=True)) if pair[0] != pair[1])
    return Wrong(f"its answer differs from byte {at} on: {_show_bytes(body[at:])}")


def _request_of(target: Target) -> str:
    """Return what was requested, where that is not the request of every server."""
    return "" if (target.method, target.path) == ("GET", "/") else f"{target.method} {target.path} with "


def _show_bytes(data: bytes) -> str:
    """Return the first bytes as printable ASCII; reports still escape it for their own format."""
    text = data[:SHOWN_BYTES].decode("ascii", "backslashreplace")
    shown = "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)
    return f"«{shown}»" if len(data) <= SHOWN_BYTES else f"«{shown}…»"
