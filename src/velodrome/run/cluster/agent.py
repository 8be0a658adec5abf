"""One agent: a worker of Dask that carries its part of a load by an engine process of its own.

    prepare -> the engine has looked the target up and has opened its connections: it is ready
    begin   -> the moment of this machine's clock at which all agents begin
    poll    -> how far it is, and what time it is here; without a poll for two seconds the load ends
    take    -> what it measured
    end     -> the load ends early

A coordinator cannot widen by what is sent here what the agent may load. Who can connect to a worker of Dask can run any
code on it; what holds even then is in `holding.py`.
"""

import asyncio
import json
import os
import socket
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psutil

from velodrome.model.errors import AgentEndedError, AgentLostError, VelodromeError
from velodrome.run import engine
from velodrome.run.cluster import apart, blocks, talking
from velodrome.run.cluster.clocks import Clock
from velodrome.run.cluster.holding import ROLES, Own, Policy, Started, Starter
from velodrome.run.machine.facts import usable_cpus
from velodrome.run.supervision import scratch

__all__ = ["ROLES", "VERSION", "Agent", "Policy", "serve"]

VERSION = metadata.version("velodrome")
SILENT_S = 2.4
"""Without a poll for so long, the load has lost whoever conducts it. With a look and a tick of the engine, the last
request is sent within three seconds."""
LOOK_S = 0.2
KEPT_S = 30.0
"""For what was measured to be taken: of a thousand agents it is taken in turn, and a network may be cut meanwhile."""
READY_S = 60.0
"""For the engine to be ready: it may have to look a name up, and to open 100,000 connections."""


@dataclass
class Part:
    """A part of a load that the agent carries."""

    number: str
    """Of the load, made by whoever conducts it."""
    child: Started
    threads: int
    cpus: tuple[int, ...]
    polled: float
    ready: asyncio.Event = field(default_factory=asyncio.Event)
    done: asyncio.Event = field(default_factory=asyncio.Event)
    tick: dict[str, Any] | None = None
    phase: str = "preparing"
    document: str = ""
    error: str = ""
    kind: str = ""
    stolen: tuple[float, float] = (0.0, 0.0)
    steal: float | None = None

    def end(self) -> None:
        """Have the engine end early."""
        with suppress(OSError, ValueError):
            self.child.input.close()


class Agent(talking.Worker):
    """See the module. `clock` is what it takes for the time."""

    def __init__(
        self,
        address: str,
        policy: Policy,
        starter: Starter | None = None,
        *,
        clock: Clock | None = None,
        **how: Any,
    ) -> None:
        self.policy = policy
        self.starter: Starter = starter or Own(policy)
        self.starting = False
        self.time = clock or Clock()
        self.part: Part | None = None
        self.races = blocks.Races(self._carries, self.starter.race, policy.serves)
        self.thirds = apart.Thirds(policy.cpus)
        name = policy.name or f"{socket.gethostname()}-{os.getpid()}"
        super().__init__(
            address,
            nthreads=1,
            name=name,
            resources={talking.KIND: 1.0},
            memory_limit=0,
            dashboard=False,
            local_directory=str(scratch.make_folder("agent")),
            **how,
        )
        self.handlers |= {
            "velodrome_facts": self.facts,
            "velodrome_clock": self.clock,
            "velodrome_measure": self.measure,
            "velodrome_sink": self.sink,
            "velodrome_prepare": self.prepare,
            "velodrome_begin": self.begin,
            "velodrome_poll": self.poll,
            "velodrome_take": self.take,
            "velodrome_end": self.end,
            "velodrome_third": self.third,
            **self.races.handlers(),
        }

    async def facts(self) -> str:
        """Return what it is, as JSON."""
        return json.dumps(
            {
                "name": self.name,
                "version": VERSION,
                "engine": engine.VERSION,
                "python": ".".join(map(str, sys.version_info[:3])),
                "transport": _transport(),
                "host": socket.gethostname(),
                "machine": _identity(),
                "pid": os.getpid(),
                "user": psutil.Process().username(),
                **asdict(self.policy),
                "cpus": list(self.policy.cpus or usable_cpus()),
                "policy_by": self.starter.by,
                "busy": self._carries() or self.races.busy,
            }
        )

    async def clock(self) -> int:
        """Return the time of its monotonic clock, nanoseconds."""
        return self.time.now()

    async def measure(self, address: str, transfers: bool) -> str:
        """Measure the way to another agent, see `mesh.py`, and return that as JSON."""
        from velodrome.run.cluster import mesh  # noqa: PLC0415 - for lists of agents alone

        try:
            return json.dumps(await mesh.measure(address, self.security, transfers))
        except AgentLostError as error:
            return json.dumps({"error": error.why})

    async def sink(self, data: bytes) -> int:
        """Take bytes; return how many."""
        return len(data)

    async def prepare(self, load: str, spec: str, body: bytes, expected: bytes | None) -> str:
        """Have an engine get ready for a part; return once it is, as JSON."""
        if self._carries() or self.races.busy:
            return _refusal("UsageError", "it carries another load, or runs a part of a race")
        fields, loop = json.loads(spec), asyncio.get_running_loop()
        cpus = self.policy.cpus or usable_cpus()
        stolen = _stolen(cpus)
        self.starting = True
        try:
            child = await loop.run_in_executor(None, self.starter.start, fields, bytes(body), expected)
        except VelodromeError as error:
            return _refusal(type(error).__name__, str(error))
        finally:
            self.starting = False
        part = self.part = Part(load, child, fields.get("threads", 1), cpus, time.monotonic())
        part.stolen = stolen
        threading.Thread(target=_listen, args=(part, loop), daemon=True).start()
        self._watching = asyncio.ensure_future(self._watch(part))
        waits = [asyncio.ensure_future(event.wait()) for event in (part.ready, part.done)]
        await asyncio.wait(waits, timeout=READY_S, return_when=asyncio.FIRST_COMPLETED)
        for wait in waits:
            wait.cancel()
        if part.ready.is_set() and not part.done.is_set():
            part.polled = time.monotonic()
            return json.dumps({"ready": True})
        part.end()
        return _refusal(part.kind or "OSError", part.error or f"its engine was not ready after {READY_S:g} s")

    async def begin(self, load: str, at_ns: int) -> bool:
        """Have the part begin at a moment of the clock here. Returns whether there is such a part."""
        part = self._of(load)
        if part is None:
            return False
        part.polled = time.monotonic()
        part.child.send(b"begin %d\n" % self.time.for_engine(at_ns))
        return True

    async def poll(self, load: str) -> str:
        """Return how far the part is, as JSON."""
        part = self._of(load)
        if part is None:
            return json.dumps({"phase": "unknown", "now": self.time.now()})
        part.polled = time.monotonic()
        return json.dumps(
            {
                "phase": part.phase,
                "tick": part.tick,
                "error": part.error,
                "kind": part.kind,
                "now": self.time.now(),
            }
        )

    async def take(self, load: str) -> str:
        """Return the document of a part that is done, and what its CPUs lost to other machines, as JSON."""
        part = self._of(load)
        if part is None or not part.document:
            return json.dumps({"error": part.error if part else "there is no such load"})
        self.part = None
        return json.dumps({"document": part.document, "steal": part.steal})

    async def end(self, load: str) -> bool:
        """End a part early. Returns whether there is one."""
        part = self._of(load)
        if part is None:
            return False
        part.end()
        return True

    async def third(self, what: str, race: str, number: int, message: str) -> str:
        """Do something about third parties of a race whose server is elsewhere, see `apart.Thirds`."""
        if not {"third-party", "load"} & {*self.policy.roles}:
            return json.dumps({"error": "its roles do not let it; start it with --roles third-party"})
        loop, idle = asyncio.get_running_loop(), not self.thirds.any
        host = urlsplit(self.address).hostname or ""
        found = await loop.run_in_executor(None, self.thirds.do, what, race, number, message, host)
        if idle and self.thirds.any:
            self._forgetting = asyncio.ensure_future(self._forget())
        return found

    async def _forget(self) -> None:
        """End third parties whose race is lost."""
        while self.thirds.any:
            await asyncio.sleep(1.0)
            await asyncio.get_running_loop().run_in_executor(None, self.thirds.forget)

    def _carries(self) -> bool:
        """Whether a part of a load is in progress here, or is about to be."""
        return self.starting or (self.part is not None and not self.part.done.is_set())

    def _of(self, load: str) -> Part | None:
        return self.part if self.part is not None and self.part.number == load else None

    async def _watch(self, part: Part) -> None:
        """End a part that nobody asks for any more, and forget it in the end."""
        try:
            while self.part is part:
                await asyncio.sleep(LOOK_S)
                silent_s = time.monotonic() - part.polled
                if silent_s > (KEPT_S if part.done.is_set() else SILENT_S) and part.phase != "preparing":
                    part.end()
                    if part.done.is_set():
                        break
        finally:
            part.end()
            if self.part is part:
                self.part = None

    async def close(self, *arguments: Any, **named: Any) -> Any:
        """End the load or race, and leave the cluster."""
        self.races.close()
        self.thirds.close()
        if self.part is not None:
            self.part.end()
        return await super().close(*arguments, **named)


def _listen(part: Part, loop: asyncio.AbstractEventLoop) -> None:
    """Take in what the engine says, to its end; a thread of its own, because pipes block."""

    def set_(event: asyncio.Event) -> None:
        with suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(event.set)

    with part.child as child:
        lines = _lines(child)
        for line in lines:
            if line == b"document":
                part.document = b"\n".join(lines).decode()
            elif line.startswith(b"error "):
                part.kind = line[6:].decode()
                part.error = b"\n".join(lines).decode(errors="replace").strip()
            else:
                _event(part, json.loads(line), set_)
        before, part.stolen = part.stolen, _stolen(part.cpus)
        span = part.stolen[1] - before[1]
        part.steal = (part.stolen[0] - before[0]) / span if span > 0 else None
        if not part.document and not part.error:
            last = child.last_lines()
            part.kind, part.error = (
                "OSError",
                f"its engine ended ({child.ending()}). {' '.join(last)}".strip(),
            )
        part.phase = "failed" if part.error else "done"
        set_(part.done)


def _event(part: Part, event: dict[str, Any], set_: Any) -> None:
    kind = event["event"]
    if kind == "ready":
        part.polled = time.monotonic()  # before the phase: from now on somebody has to ask
        part.phase = "ready"
        set_(part.ready)
    elif kind == "tick":
        part.tick = event
        if part.ready.is_set() and event["phase"] != "warmup":
            part.phase = event["phase"]


def _lines(child: Started) -> Any:
    rest = b""
    while chunk := child.output.read(1 << 16):
        *whole, rest = (rest + chunk).split(b"\n")
        yield from whole
    if rest:
        yield rest


def _refusal(kind: str, sentence: str) -> str:
    return json.dumps({"ready": False, "kind": kind, "error": sentence})


def _transport() -> str:
    """Return by what this machine carries a closed loop, as far as the kernel's settings say."""
    if sys.platform != "linux":
        return "poll"
    disabled = Path("/proc/sys/kernel/io_uring_disabled")
    try:
        off = disabled.read_text().strip() not in ("", "0")
    except OSError:
        off = False
    major, minor = (
        int("".join(filter(str.isdigit, part)) or 0) for part in os.uname().release.split(".")[:2]
    )
    return "epoll" if off or (major, minor) < (6, 1) else "io_uring"


def _identity() -> str:
    """Return what two agents have in common whose loopback is the same."""
    boot, space = "", ""
    with suppress(OSError):
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        space = os.readlink("/proc/self/ns/net")
    return f"{boot or socket.gethostname()} {space}".strip()


def _stolen(cpus: Sequence[int]) -> tuple[float, float]:
    """Return the seconds that a hypervisor took of these CPUs, and all seconds of theirs, since the start."""
    times = [cpu for number, cpu in enumerate(psutil.cpu_times(percpu=True)) if number in set(cpus)]
    return sum(getattr(cpu, "steal", 0.0) for cpu in times), sum(sum(cpu[:8]) for cpu in times)


async def serve(
    address: str,
    policy: Policy,
    security: Any,
    *,
    starter: Starter | None = None,
    host: str | None = None,
    port: int = 0,
    on_ready: Any = None,
    clock: Clock | None = None,
) -> None:
    """Be an agent until the coordinator goes. Raises CoordinatorError, AgentEndedError."""
    policy.check()
    reached = talking.Address.read(address)
    host = host or talking.own_address(reached)
    await talking.workers(reached, security)  # raises, with the cause, where there is none
    agent = Agent(
        str(reached),
        policy,
        starter,
        clock=clock,
        host=host,
        port=port,
        protocol=f"{reached.scheme}://",
        security=security,
    )
    try:
        await agent
        if on_ready is not None:
            on_ready(agent)
        finished: Any = agent.finished  # Dask says no types of it
        await finished()
    finally:
        await agent.close()
    raise AgentEndedError(str(reached))
