"""A client of a database: what `query` and `write` steps ask it through, in code that blocks or awaits.

    client = Client("pymysql", "mariadb", "…", connect, requires=("PyMySQL==1.2.4",), default=True)

One file in `guest/clients/` is one client; its `driver` name in a study file is the file's. Those that await
are for handlers that await. A handler that awaits may be given a client that blocks, by name only: it then
blocks the loop, which is a fault worth measuring and never what is meant by default.

As a program, `python -m velodrome.guest.client CLIENT SECONDS` makes a database ready and reads three rows. It runs in
an environment where the client is installed, with the database's URL in its variable, and tries until it is answered
or the time is up. It prints the version that the database says it is; on failure the exit status is 1 and the last
line of standard error says why.
"""

from __future__ import annotations

import os
import sys
import time
from dataclasses import dataclass
from typing import Any, Callable, Dict, List, Optional, Tuple

from velodrome.guest.plugins import Kind, healthy
from velodrome.guest.recipe import EMBEDDED, Query, Recipe, Write

if sys.version_info >= (3, 8):
    from typing import Protocol
else:  # 3.7 runs the servers of 2018; only type checkers read what a Protocol says
    Protocol = object

ROWS = 4096
"""Rows of each table; a query reads, a write changes, at most so many."""

CONNECTIONS = 100
"""Connections a process keeps to a database at most; a request that finds all in use waits for a connection.

It is what a PostgreSQL of defaults takes from all its clients together, and far more than a database is fast with.
"""

TIMEOUT_S = 30
"""A database silent for so long has failed."""


class Connected(Protocol):
    """A client with the address it was given. It opens connections at the first query, and keeps them."""

    def reader(self, rows: int, ms: float) -> Callable[[], Any]:
        """Return what reads so many rows, from another first key each time, and gives them; fewer: it failed.

        `ms` is how long the statement takes in the database on top of that. Of a client that awaits, both
        functions are coroutine functions.
        """

    def writer(self, rows: int) -> Callable[[], Any]:
        """Return what changes so many rows and gives how many it changed; 0 when it failed."""


@dataclass(frozen=True)
class Client:
    """One client library of one database."""

    name: str
    """As `driver` in a study file, e.g. `pymysql`."""
    database: str
    about: str
    """One sentence: what it is made of, and who else can run while it waits."""
    connect: Callable[[str], Connected]
    """Given a URL, returns what reads and writes; raises ImportError where it is not installed."""
    awaits: bool = False
    requires: Tuple[str, ...] = ()
    default: bool = False
    """Whether handlers that wait as it does are given this client when the study names none."""
    pauses: bool = False
    """Whether the database has a statement that waits (`Query.ms`)."""
    prepare: Optional[Callable[[str], str]] = None
    """Makes the tables at a URL if they are not there, whole, and gives the database's version.

    One client of each database can: all read and write the same.
    """


CLIENT = Kind("client", Client, "velodrome.guest.clients")


def variable(database: str) -> str:
    """Return the environment variable that carries the URL of a database into a server process."""
    return "VELODROME_" + database.upper()


def clients() -> Dict[str, Client]:
    """Return all clients by name, found by looking into `guest/clients/`."""
    return healthy(CLIENT)


def databases() -> Tuple[str, ...]:
    """Return the names of all databases that a client is there for."""
    return tuple(sorted({client.database for client in clients().values()}))


def choose_client(database: str, driver: str, awaits: bool) -> Client:
    """Return the client of a step for handlers that await, or that block. Raises ValueError, with a phrase."""
    every = clients()
    fitting = {name: client for name, client in every.items() if client.database == database}
    if not fitting:
        raise ValueError("no database is called %r; there are: %s" % (database, ", ".join(databases())))
    if not driver:
        defaults = [client for client in fitting.values() if client.default and client.awaits == awaits]
        if not defaults:
            kind = "awaits" if awaits else "blocks"
            raise ValueError("%s has no client that %s" % (database, kind))
        return defaults[0]
    if driver not in fitting:
        known = ", ".join(sorted(fitting))
        raise ValueError("no client of %s is called %r; there are: %s" % (database, driver, known))
    if every[driver].awaits and not awaits:
        raise ValueError("%s awaits, but its handlers block" % driver)
    return every[driver]


def clients_of(recipe: Recipe, awaits: bool) -> Tuple[Client, ...]:
    """Return the clients of a recipe's steps. Raises ValueError where there is none, with a phrase."""
    steps = [step for step in recipe.every_step if isinstance(step, (Query, Write))]
    found = {}
    for step in steps:
        client = choose_client(step.database, step.driver, awaits)
        if not 1 <= step.rows <= ROWS:
            raise ValueError("%d rows; the tables have 1 to %d to give" % (step.rows, ROWS))
        if isinstance(step, Query) and step.ms and not client.pauses:
            raise ValueError("%s has no statement that waits; leave ms out" % step.database)
        found[client.name] = client
    return tuple(found.values())


def connect(client: Client) -> Connected:
    """Return a client with the address that this process was given. Raises ValueError if it was given none."""
    url = os.environ.get(variable(client.database), "")
    if not url and client.database != EMBEDDED:
        raise ValueError("it asks %s, but %s names no address" % (client.database, variable(client.database)))
    return client.connect(url)


PAUSE_S = 0.03


def main(argv: List[str]) -> int:
    """Run the program."""
    client = clients()[argv[0]]
    url = os.environ[variable(client.database)]
    until = time.monotonic() + float(argv[1])
    if client.prepare is None:
        raise ValueError("%s prepares nothing" % client.name)
    while True:
        try:
            version = client.prepare(url)
            found = client.connect(url).reader(3, 0.0)()
        except Exception as error:  # each library has classes of its own, and all mean: not yet, or never
            why = "%s: %s" % (type(error).__name__, " ".join(str(error).split()))
        else:
            if len(found) == 3:
                print(version)
                return 0
            why = "it gave %d rows of 3" % len(found)
        if time.monotonic() > until:
            sys.stderr.write(why + "\n")
            return 1
        time.sleep(PAUSE_S)


if __name__ == "__main__":
    # Clients are of the class in the module's own name, not of that in `__main__`.
    from velodrome.guest.client import main as run

    sys.exit(run(sys.argv[1:]))
