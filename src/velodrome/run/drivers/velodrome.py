"""Velodrome's own engine as a driver: a process of its own, pinned, one load each.

The span a trial is judged by begins and ends with the engine's `measuring` and `span_ended` events.
"""

import json
import selectors
import time
from collections.abc import Iterator, Sequence
from importlib import metadata
from typing import IO

from velodrome.model import secrets
from velodrome.model.errors import DriverError, DriverTimedOutError, EngineError, LoadRefusedError, UsageError
from velodrome.model.load import Closed, Load, Open, Schedule
from velodrome.model.measurement import LoadFacts
from velodrome.run.drivers import load_document
from velodrome.run.drivers.driver import OWN, Found, Generator, LoadEvent, OnEvent, Target
from velodrome.run.engine import LoadSpec
from velodrome.run.supervision import python

MODULE = "velodrome.run.drivers.engine_process"
SLACK_S = 15.0
"""Beyond warm-up, span and drain: interpreter start and opening 10,000 connections take under 2 s on a busy
machine.
"""
_REFUSALS = {"ValueError": UsageError, "PermissionError": LoadRefusedError, "OSError": EngineError}


class VelodromeDriver:
    """The engine of `crates/engine`, on the CPUs given (all when none are), with as many threads as given."""

    name = "velodrome"

    def __init__(
        self,
        cpus: Sequence[int] = (),
        threads: int = 1,
        transport: str = "auto",
        seed: int = 1,
        slack_s: float = SLACK_S,
    ) -> None:
        self.cpus, self.threads, self.transport, self.seed = tuple(cpus), threads, transport, seed
        self.slack_s = slack_s

    @classmethod
    def on(cls, cpus: Sequence[int], seed: int) -> "VelodromeDriver":
        """Return a driver for these CPUs, as `Generator.make` does."""
        return cls(cpus, seed=seed)

    def run(self, load: Load, target: Target, on_event: OnEvent) -> LoadFacts:
        """Load `target`; see `Driver.run`. A load ended early by `on_event` returns what was measured so far.

        Raises DriverError, DriverTimedOutError, UsageError, LoadRefusedError or EngineError.
        """
        deadline = time.monotonic() + load.warmup_s + load.duration_s + load.drain_s + self.slack_s
        with python.start_own(MODULE, cpus=self.cpus) as engine:
            go_on = on_event(LoadEvent("started", {"pid": engine.pid}))
            self._ask(engine, load, target)
            if not go_on:
                engine.input.close()
            lines = _lines(engine.output, deadline)
            try:
                for line in lines:
                    if line == b"document":
                        break
                    if line.startswith(b"error "):
                        sentence = b"\n".join(lines).decode(errors="replace").strip()
                        raise _REFUSALS[line[6:].decode()](sentence)
                    if not on_event(_event(line)):
                        engine.input.close()  # ends the load early; the report still comes
                document = b"\n".join(lines)
            except TimeoutError:
                engine.process.kill()
                raise DriverTimedOutError(self.name, self.slack_s, engine.last_lines()) from None
            status = engine.end()
            if status != 0 or not document:
                raise DriverError(self.name, status, engine.last_lines())
        try:
            return secrets.mask_noun(load_document.facts_of(json.loads(document)))
        except (ValueError, KeyError, TypeError) as error:
            raise DriverError(self.name, status, (f"its report cannot be read: {error!r}",)) from error

    def _ask(self, engine: python.Child, load: Load, target: Target) -> None:
        """Send the work. A process that died before reading it is known by its exit status later."""
        spec = self.spec(load, target)
        head, expected = spec.json().encode(), spec.expect_body
        sizes = f"{len(head)} {len(spec.body)} {-1 if expected is None else len(expected)}\n"
        engine.send(sizes.encode() + head + spec.body + (expected or b""))

    def spec(self, load: Load, target: Target) -> LoadSpec:
        """Return what the engine is to do."""
        pace, call, chat = load.pace, target.call, target.chat
        right = target.expect_body if call is None else call.expected
        return LoadSpec(
            url=target.url,
            grpc=None if call is None else call.spec,
            websocket=None if chat is None else chat.spec(load),
            connections=pace.connections,
            streams=load.streams,
            threads=self._threads(load, target),
            duration_s=load.duration_s if load.requests is None else None,
            requests=load.requests,
            warmup_s=load.warmup_s,
            rate=pace.rate if isinstance(pace, Open) else None,
            schedule=load_document.schedule_document(pace.steps) if isinstance(pace, Schedule) else (),
            arrivals=LoadSpec.arrivals if isinstance(pace, Closed) else pace.arrivals,
            seed=self.seed,
            keepalive=load.keepalive,
            method=target.method,
            headers=target.headers,
            body=target.body if call is None else call.sent,
            expect_body=None if chat is not None else right,  # a message is its own correct response
            timeout_s=load.timeout_s,
            drain_s=load.drain_s,
            expect_status=target.expect_status,
            mix=load_document.mix_document(target.mix),
            template=any(request.has_templates for request in target.mix),
            transport=self.transport,
            allow_target=target.allow,
        )

    def _threads(self, load: Load, target: Target) -> int:
        # A room is heard by one thread: what one member sends, all have to get.
        in_room = target.chat is not None and target.chat.mode(load) == "broadcast"
        return 1 if in_room else max(self.threads, load.threads)


def _event(line: bytes) -> LoadEvent:
    facts = json.loads(line)
    return LoadEvent(facts.pop("event"), facts)


def _lines(pipe: IO[bytes], deadline: float) -> Iterator[bytes]:
    """Yield the lines of a pipe as they come. Raises TimeoutError when it is still open at the deadline."""
    rest = b""
    with selectors.DefaultSelector() as selector:
        selector.register(pipe, selectors.EVENT_READ)
        while selector.select(max(0.0, deadline - time.monotonic())):
            chunk = pipe.read(1 << 16)
            if not chunk:
                if rest:
                    yield rest
                return
            *whole, rest = (rest + chunk).split(b"\n")
            yield from whole
    raise TimeoutError


driver = Generator(
    OWN,
    "closed and open loop, latency from when requests were due, in a process of its own",
    VelodromeDriver.on,
    lambda: Found("", metadata.version("velodrome")),
)
