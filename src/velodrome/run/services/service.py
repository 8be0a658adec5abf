"""Services: real servers that recipes ask (databases, a gRPC peer), what a service is, how it is found, started and
called.

A file of this folder has a module-level `service = Service(...)`.

beside = start_services(recipe.services, surroundings, running)
Serving(..., beside=beside.variables)
"""

import os
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

from velodrome.guest import client, plugins
from velodrome.guest.recipe import EMBEDDED
from velodrome.model import secrets
from velodrome.model.errors import BadOptionError
from velodrome.run.account import acting
from velodrome.run.servers import INHERITED
from velodrome.run.supervision.python import guest
from velodrome.run.supervision.ward import Exit, Order, Ward


@dataclass(frozen=True)
class Surroundings:
    """Where a service is to run, and with what: plain data."""

    guest_tree: Path
    cpus: tuple[int, ...] = ()
    host: str = "127.0.0.1"
    given: Mapping[str, str] = field(default_factory=dict)
    """URLs of those that the user brings, by name; velodrome's own environment variables count as well."""
    walled: bool = False
    """Whether nothing outside can be reached, because the server is behind a link."""


class Running(Protocol):
    """A service that is there or about to be; leaving the `with` block ends it, if it is ours."""

    @property
    def url(self) -> str:
        """What the server under test is given."""

    def ready(self) -> str:
        """Wait until it has given a right answer, and return its version as it tells itself.

        Raises CompanionFailedError when it has ended or the time is up.
        """

    @property
    def pid(self) -> int | None:
        """The root of its processes; None where it runs elsewhere, on behalf of somebody else."""

    def __enter__(self) -> Self:
        """Return itself."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End it."""


@dataclass(frozen=True)
class Service:
    """A kind: one file in this folder has a module-level `service`."""

    name: str
    """As `Recipe.services` names it, e.g. `mariadb`."""
    variable: str
    """Environment variable that carries its address into the server under test."""
    install: Callable[[Surroundings], object]
    """Makes the environments that `start` needs: before a race, so that nothing is installed in its midst."""
    start: Callable[[Surroundings], Running]
    """Does not wait for it. Raises CompanionMissingError, StartRefusedError or EnvironmentFailedError."""


PAUSE_S = 0.1
"""Between two looks whether the service still lives."""


@dataclass(frozen=True)
class Answered:
    """What a program of the guest's ended with."""

    output: str
    """Its standard output."""
    trouble: str
    """Why it failed: the last line of its standard error, or how it ended; empty if it did not fail."""


def run_guest(
    python: Path,
    arguments: Sequence[str],
    variables: Mapping[str, str],
    surroundings: Surroundings,
    exited: Callable[[], Exit | None],
) -> Answered | Exit:
    """Run `python -m arguments` to its end; returns how the service ended if that is what happened first."""
    env = {
        **{name: os.environ[name] for name in INHERITED if name in os.environ},
        "PYTHONNOUSERSITE": "1",
        **variables,
    }
    begun = guest(python, surroundings.guest_tree, *arguments, env=env)
    order = Order(begun.argv, begun.env, begun.cwd or "/", cpus=surroundings.cpus, user=acting())
    with tempfile.TemporaryFile() as output, Ward(order, output.fileno()) as ward:
        while (ended := ward.wait(PAUSE_S)) is None:
            if (died := exited()) is not None:
                return died
        ward.stop()
        output.seek(0)
        printed = output.read().decode(errors="replace").strip()
        trouble = (" ".join(ward.tail.lines(1)) or ended.sentence) if ended.code else ""
    return Answered(printed, trouble)


def databases_of(options: Iterable[str]) -> dict[str, str]:
    """Return URLs by the name of the database. Raises BadOptionError."""
    known = [name for name in client.databases() if name != EMBEDDED]
    found = {}
    for option in options:
        name, _, url = option.partition("=")
        if name not in known:
            reason = f"no database is called '{name}'; write one of these as name=URL: {', '.join(known)}"
            raise BadOptionError("--database", name, reason)
        if "://" not in url:
            raise BadOptionError("--database", name, f"needs a URL, such as {name}=scheme://host/database")
        secrets.of_text(url)
        found[name] = url
    return found


SERVICES = plugins.Kind("service", Service, "velodrome.run.services", "velodrome.databases", mixed=True)


def known_services() -> dict[str, Service]:
    """Return all kinds of services, by name: those from this folder and entry points of `velodrome.services`."""
    return plugins.healthy(SERVICES)


@dataclass(frozen=True)
class Beside:
    """The services that run, by name."""

    running: Mapping[str, Running]
    versions: Mapping[str, str]

    @property
    def variables(self) -> dict[str, str]:
        """Environment variables with their addresses, for the server under test."""
        every = known_services()
        return {every[name].variable: running.url for name, running in self.running.items()}

    @property
    def pids(self) -> dict[str, int]:
        """The roots of the processes of those that run here for us."""
        return {name: running.pid for name, running in self.running.items() if running.pid is not None}


def start_services(names: Iterable[str], surroundings: Surroundings, running: ExitStack) -> Beside:
    """Start services, all before any is waited for; `running` ends them.

    Raises what `Companion.start` and `Running.ready` raise.
    """
    every = known_services()
    started = {name: running.enter_context(every[name].start(surroundings)) for name in names}
    return Beside(started, {name: service.ready() for name, service in started.items()})
