"""SQLite, in the memory of this process: the embedded database, for which nothing else has to run.

It is opened through SQLite's own in-memory file system («memdb»), so it behaves as a file does, pages,
statements and all, and yet a killed process leaves nothing behind. https://www.sqlite.org/memdb.html
Connections are pooled, not kept per thread: under gevent every greenlet would be a thread of its own.
"""

from __future__ import annotations

import itertools
import os
import sqlite3
from collections import deque
from typing import Any, Callable, Deque, List

from velodrome.guest.client import TIMEOUT_S, Client
from velodrome.guest.clients import _tables

MEMDB_SINCE = (3, 36, 0)
_numbers = itertools.count()
"""Of databases: the address of one that is gone may be that of the next while a connection to it still lives."""


class Database:
    """One database and the connections that are idle. Any number of threads may use it at once."""

    def __init__(self) -> None:
        """Make the tables. Takes a few milliseconds."""
        self.uri = uri("%d-%d" % (os.getpid(), next(_numbers)))
        self.anchor = connection(self.uri, TIMEOUT_S)  # the database exists as long as one connection does
        self.idle: Deque[sqlite3.Connection] = deque()
        for statement in _tables.CREATE:
            self.anchor.execute(statement)
        for filling, rows in _tables.fill("?"):
            self.anchor.executemany(filling, rows)

    def connect(self) -> sqlite3.Connection:
        """Return a new connection, which any one thread at a time may use."""
        return connection(self.uri, TIMEOUT_S)

    def reader(self, rows: int, ms: float = 0.0) -> Callable[[], List[Any]]:
        """Return a function that reads `rows` rows with consecutive keys, from another first key each time.

        Raises ValueError if the table is not that long.
        """
        spans = _tables.spans(rows)
        idle, connect, statement = self.idle, self.connect, _tables.select("?", "?")

        def fetch() -> List[Any]:
            try:
                connection = idle.pop()
            except IndexError:
                connection = connect()
            found = connection.execute(statement, next(spans)).fetchall()
            idle.append(connection)
            return found

        return after(Locked(ms).wait, fetch) if ms else fetch

    def writer(self, rows: int) -> Callable[[], int]:
        """Return a function that changes `rows` rows; writers of one process take turns, as SQLite's do."""
        spans = _tables.spans(rows)
        idle, connect, statement = self.idle, self.connect, _tables.update("?", "?")

        def store() -> int:
            try:
                connection = idle.pop()
            except IndexError:
                connection = connect()
            changed = connection.execute(statement, next(spans)).rowcount
            idle.append(connection)
            return changed

        return store


class Locked:
    """A database that is always being written to, so that a second writer waits for it, and in vain.

    SQLite has no statement that sleeps; this is how a statement comes to wait in it: inside the C library, the thread
    asleep and the GIL let go. https://www.sqlite.org/c3ref/busy_timeout.html
    """

    def __init__(self, ms: float) -> None:
        """Make it. Raises ValueError where SQLite is too old to wait for a lock on memory."""
        if sqlite3.sqlite_version_info < MEMDB_SINCE:
            raise ValueError("SQLite %s cannot wait for a lock; leave ms out" % sqlite3.sqlite_version)
        self._uri = uri("%d-%d-locked" % (os.getpid(), id(self)))
        self._seconds = ms / 1000
        self._idle: Deque[sqlite3.Connection] = deque()
        self._holder = connection(self._uri, TIMEOUT_S)
        self._holder.execute("BEGIN IMMEDIATE")

    def wait(self) -> None:
        """Wait as long as was set when it was made."""
        try:
            waiting = self._idle.pop()
        except IndexError:
            waiting = connection(self._uri, self._seconds)
        try:
            waiting.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError:  # «database is locked», when the time is up
            self._idle.append(waiting)


def uri(name: str) -> str:
    """Return the address of a database in memory that several connections share."""
    memdb = sqlite3.sqlite_version_info >= MEMDB_SINCE
    return ("file:/velodrome-%s?vfs=memdb" if memdb else "file:velodrome-%s?mode=memory&cache=shared") % name


def connection(at: str, timeout_s: float) -> sqlite3.Connection:
    """Return a connection; a statement on it waits at most so long for a lock."""
    return sqlite3.connect(at, timeout_s, uri=True, check_same_thread=False, isolation_level=None)


def after(first: Callable[[], None], then: Callable[[], List[Any]]) -> Callable[[], List[Any]]:
    """Return what does both, one after the other, and gives what the second gives."""

    def both() -> List[Any]:
        first()
        return then()

    return both


def connect(url: str) -> Database:
    """Return a database of this process's own; there is no address."""
    return Database()


client = Client(
    "sqlite3",
    "sqlite",
    "The standard library's sqlite3: C in the server's own process, on the thread that asks.",
    connect,
    default=True,
    pauses=True,
)
