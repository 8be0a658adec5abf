"""Servers whose behaviour is known, and the real engine, sampler and flags to observe them with."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from velodrome.model.load import Load
from velodrome.model.measurement import Flag, FlagKind, LoadFacts
from velodrome.run.drivers.driver import LoadEvent, Target
from velodrome.run.drivers.velodrome import VelodromeDriver
from velodrome.run.machine import measuring_lock
from velodrome.run.measuring.sampler import Sampled, Sampler
from velodrome.run.validity import Evidence, flags

TARGETS = Path(__file__).parent / "targets"
HELLO = b"<h1>Hello, World!</h1>"


@dataclass(frozen=True)
class Server:
    """A running target."""

    process: subprocess.Popen[bytes]
    port: int

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/"


class Raised(dict[FlagKind, Flag]):
    """Flags by their kind; one that was not raised is an assertion that does not hold."""

    def __missing__(self, kind: FlagKind) -> Flag:
        raise AssertionError(f"{kind.value} was not raised, but {', '.join(sorted(self)) or 'nothing'}")


@dataclass(frozen=True)
class Seen:
    """What came of loading it."""

    facts: LoadFacts
    sampled: Sampled
    flags: Raised


Serve = Callable[..., Server]
Observe = Callable[..., Seen]


@pytest.fixture(scope="module", autouse=True)
def _machine_to_ourselves() -> Iterator[None]:
    with measuring_lock.alone("the truth tests of velodrome", wait_s=None):
        yield


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Start targets by name; whatever they started ends with the test."""
    running: list[subprocess.Popen[bytes]] = []

    def start(name: str, *arguments: object) -> Server:
        process = subprocess.Popen(
            [sys.executable, TARGETS / f"{name}.py", *map(str, arguments)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        running.append(process)
        assert process.stdout is not None
        return Server(process, int(process.stdout.readline()))

    yield start
    for process in running:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)  # it leads a group of its own
        process.communicate()


@pytest.fixture
def observe() -> Observe:
    """Load a target as a trial does and return all that is known then."""

    def run(
        server: Server,
        load: Load,
        target: Target | None = None,
        on_event: Callable[[LoadEvent], object] = lambda _: None,
        **known: Any,
    ) -> Seen:
        sampler = Sampler(server.process.pid, server.port, load.duration_s)
        sampler.rest()

        def on(event: LoadEvent) -> bool:
            sampler.on(event)
            on_event(event)
            return server.process.poll() is None

        with sampler:
            wanted = target or Target(server.url, expect_body=HELLO, expect_status=200)
            facts = VelodromeDriver().run(load, wanted, on)
        sampled = sampler.result(boot_s=0.1)
        evidence = Evidence(
            load, facts, sampled, os.cpu_count() or 1, exit_status=server.process.poll(), **known
        )
        return Seen(facts, sampled, Raised((flag.kind, flag) for flag in flags(evidence)))

    return run
