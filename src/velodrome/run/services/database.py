"""Databases beside a server: the user's own, by URL, or a database started here for this server alone.

A database that is started has its data in a scratch folder, a port and a password of its own, and no care for what
a power cut would do: what is compared is Python's servers, not disks. It runs under a warden, as servers do, on
the CPUs of the load, and not as root. The tables are made, and the first real query sent, through the client
of its own field in an environment of its own (`velodrome.guest.client`).
"""

import json
import os
import secrets
import shutil
import signal
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

from velodrome.guest import client as clients
from velodrome.guest.client import Client
from velodrome.model.errors import CompanionFailedError, CompanionMissingError
from velodrome.run.environments.environment import for_client
from velodrome.run.servers import INHERITED, descriptors, fresh_port
from velodrome.run.services import launch
from velodrome.run.services.service import Service, Surroundings, run_guest
from velodrome.run.supervision import scratch
from velodrome.run.supervision.python import alone
from velodrome.run.supervision.ward import Exit, Order, Ward

START_S = 30.0
"""To the first right answer; an idle machine takes half a second, a machine that swaps takes long."""
GIVEN_S = 5.0
"""The same for a server that is configured as running already."""
STOP_S = 5.0
LAST_LINES = 12
LAUNCH = Path(launch.__file__)
ADMINISTRATION = "/usr/local/sbin:/usr/sbin:/sbin"
"""Where systems keep servers; not on every user's PATH."""


@dataclass(frozen=True)
class Site:
    """Where a database is to be started, and how it is to be logged in to."""

    folder: Path
    host: str
    port: int
    password: str


@dataclass(frozen=True)
class Plan:
    """How a database is started: files to write, command lines to run before, the command line that serves."""

    then: tuple[str, ...]
    url: str
    first: tuple[tuple[str, ...], ...] = ()
    files: Mapping[str, str] = field(default_factory=dict)
    """In the scratch folder, readable for the database alone."""
    stop_signal: int = int(signal.SIGTERM)


BEHIND_A_LINK = (
    "a server behind a link reaches only what velodrome starts itself; leave out the link, or the URL"
)


@dataclass(frozen=True)
class Kind:
    """What one kind of database is, apart from all that they share."""

    name: str
    title: str
    example: str
    """A URL as the user would give it."""
    plan: Callable[[Site], Plan] | None
    """None: it is never started here. Raises FileNotFoundError with the name of a program that is missing."""
    package: str = ""
    """What to install on Debian."""
    users: tuple[str, ...] = ()
    """Whom it runs as when velodrome is root: the first there is, else nobody."""

    @property
    def preparer(self) -> Client:
        """The client through which the tables are made."""
        return next(
            client for client in clients.clients().values() if client.database == self.name and client.prepare
        )

    def service(self) -> Service:
        """Return it as what recipes ask for."""
        return Service(self.name, clients.variable(self.name), self._install, self._start)

    def _install(self, surroundings: Surroundings) -> None:
        for_client(self.preparer)

    def _start(self, surroundings: Surroundings) -> "Database":
        url = surroundings.given.get(self.name) or os.environ.get(clients.variable(self.name), "")
        if url and surroundings.walled:
            raise CompanionFailedError(self.title, BEHIND_A_LINK)
        if url:
            return Database(self, url, surroundings, None)
        if self.plan is None:
            raise CompanionMissingError(self.name, self.title, "velodrome starts none", "", self.example)
        return _start_database(self, self.plan, surroundings)


class Database:
    """A database at a URL: the user's, which is left as it is, or ours, which is gone with all it wrote."""

    def __init__(self, kind: Kind, url: str, surroundings: Surroundings, ward: Ward | None) -> None:
        self.url = url
        self._kind, self._surroundings, self._ward = kind, surroundings, ward

    @property
    def pid(self) -> int | None:
        """Its first process, if it is ours."""
        return self._ward.pid if self._ward else None

    def ready(self) -> str:
        """Make the tables, as soon as it answers, and ask for a row; return its version."""
        exited = self._ward.exit if self._ward else lambda: None
        try:
            return _prepare(
                self._kind, self.url, self._surroundings, exited, START_S if self._ward else GIVEN_S
            )
        except CompanionFailedError as error:
            if self._ward is None:
                raise
            self._ward.stop(0.0)  # to the last line of its output
            lines = self._ward.tail.lines(LAST_LINES)
            raise CompanionFailedError(self._kind.title, error.reason, lines) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._ward is not None:
            self._ward.stop(STOP_S)


def _start_database(kind: Kind, plan: Callable[[Site], Plan], surroundings: Surroundings) -> Database:
    folder = scratch.new_path("database")
    site = Site(folder, surroundings.host, fresh_port(surroundings.host), secrets.token_hex(12))
    try:
        planned = plan(site)
    except FileNotFoundError as missing:
        reason = f"there is no {missing}"
        raise CompanionMissingError(kind.name, kind.title, reason, kind.package, kind.example) from missing
    return Database(
        kind, planned.url, surroundings, Ward(_order(planned, kind.users, folder, surroundings.cpus))
    )


def program(*names: str, folders: Sequence[Path] = ()) -> str:
    """Return the path of a program by the first of its names that is found. Raises FileNotFoundError: the first."""
    path = os.pathsep.join([*map(str, folders), os.environ.get("PATH", os.defpath), ADMINISTRATION])
    for name in names:
        if found := shutil.which(name, path=path):
            return found
    raise FileNotFoundError(names[0])


def _order(plan: Plan, users: Sequence[str], folder: Path, cpus: tuple[int, ...]) -> Order:
    orders = {"user": _user(users), "files": dict(plan.files), "first": plan.first, "then": plan.then}
    kept = {name: os.environ[name] for name in INHERITED if name in os.environ}
    return Order(
        argv=alone(str(LAUNCH)),
        env={**kept, "LANG": "C.UTF-8", "TMPDIR": str(folder), launch.VARIABLE: json.dumps(orders)},
        cwd=str(folder),
        cpus=cpus,
        rlimits={"RLIMIT_NOFILE": descriptors()},
        scratch=(str(folder),),
        stop_signal=plan.stop_signal,
    )


def _user(users: Sequence[str]) -> str | None:
    """Return whom to become: nobody else unless velodrome is root."""
    if os.geteuid() != 0:
        return None
    import pwd  # noqa: PLC0415 - there is none on every system

    known = {entry.pw_name for entry in pwd.getpwall()}
    return next((user for user in (*users, "nobody") if user in known), None)


def _prepare(
    kind: Kind, url: str, surroundings: Surroundings, exited: Callable[[], Exit | None], patience_s: float
) -> str:
    """Make the tables and ask for a row, as soon as the database answers; return its version.

    Raises CompanionFailedError when it does not answer in time, or has ended.
    """
    preparer = kind.preparer
    arguments = ("velodrome.guest.client", preparer.name, str(patience_s))
    python = for_client(preparer).python
    answered = run_guest(python, arguments, {clients.variable(kind.name): url}, surroundings, exited)
    if isinstance(answered, Exit):
        raise CompanionFailedError(kind.title, f"it ended before it answered: {answered.sentence}")
    if answered.trouble:
        raise CompanionFailedError(kind.title, f"{place(url)} gives no correct response: {answered.trouble}")
    return answered.output


def place(url: str) -> str:
    """Return where a URL points, without what it gives away: `127.0.0.1:5432`."""
    parts = urlsplit(url)
    return f"{parts.hostname or 'the host of the URL'}{f':{parts.port}' if parts.port else ''}"
