"""One server under test: a stack's process in its own environment, seeing only the guest tree.

with Server(serving, bounds, cpus=(0,)) as server:
    server.pid, server.url, server.exit(), server.last_lines()
"""

import os
import resource
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

import psutil

from velodrome.guest import catalog
from velodrome.guest.codegen.steps import TURN_VARIABLE
from velodrome.guest.grpc.greeter import method_of
from velodrome.guest.recipe import RECIPE_VARIABLE, UPSTREAM_VARIABLE, Recipe
from velodrome.guest.stack import KnobValue, Launch, Process, Stack
from velodrome.run.account import acting
from velodrome.run.link.namespace import Namespace, entered
from velodrome.run.machine import netlink
from velodrome.run.machine.limits import Bounds
from velodrome.run.supervision import scratch
from velodrome.run.supervision.ward import Ending, Exit, Order, Ward

STOP_SECONDS = 10.0
"""From its stop signal to SIGKILL, when nothing else is said."""
CLOSING_S = 1.0
"""How long after the end of its processes a server's port may take to be free."""
DESCRIPTORS = 65_536
"""Most a server gets, if the machine allows: enough for any load here; some servers close them one by one."""
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
    """Variables with the addresses of companions: databases."""
    turn_ns: str = ""
    """Nanoseconds of one turn of the CPU loop; empty: the server finds out."""
    app: str = ""
    """`module:attribute`; empty is the recipe in the idiom of the stack's interface."""
    packages: Mapping[str, str] = field(default_factory=dict)
    """Versions installed in that environment, where these are a user's; else empty."""
    cwd: str = ""
    """Folder it runs in; empty: one of its own, which is removed with it."""
    variables: Mapping[str, str] = field(default_factory=dict)
    """Of the environment of a user's app."""
    call: str = ""
    """`/package.Service/Method` that a user's servicer is asked; empty: the recipe's."""

    @property
    def workers(self) -> int | None:
        """Worker processes asked for; None: the stack has no such knob."""
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
        self._scratch = scratch.named("server")
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
        with entered(inside):  # the warden is in it, and so is all that it starts
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
                    f"{one.laddr.ip}:{one.laddr.port}"
                    for one in psutil.Process(pid).net_connections("tcp")
                    if one.status == psutil.CONN_LISTEN and one.laddr.port != self.serving.port
                ]
        return tuple(dict.fromkeys(found))

    def _left(self, ending: Ending) -> tuple[str, ...]:
        found = [f"process {pid}" for pid in {*ending.stuck, *self._ward.family()}]
        found += [f"a listener on port {port}" for port in self._listening()]
        if self._scratch.exists():
            found.append(f"files in {self._scratch}")
        return tuple(found)

    def _listening(self) -> list[int]:
        """Return the port if it is still listened on, also after `CLOSING_S`.

        A process whose first thread has ended counts as ended; its other threads may hold its sockets a moment longer.
        """
        until = time.monotonic() + CLOSING_S
        while True:
            with entered(self._inside):
                found = [one.port for one in netlink.listening(self.serving.port) or ()]
            if not found or time.monotonic() >= until:
                return found
            time.sleep(0.01)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # After Ctrl-C nobody wants to wait for a polite end.
        self.stop(0.5 if kind is not None and not issubclass(kind, Exception) else STOP_SECONDS)


def environment_of(serving: Serving, process: Process, home: Path) -> dict[str, str]:
    """Return the whole environment of a server: the guest tree and its own packages are all it sees."""
    kept = {name: os.environ[name] for name in INHERITED if name in os.environ}
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
