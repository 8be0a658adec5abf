"""The database of `query` steps: SQLite, in the memory of this process, some thousand rows.

It is opened through SQLite's own in-memory file system («memdb»), so it behaves as a file does, pages,
statements and all, and yet a killed process leaves nothing behind. https://www.sqlite.org/memdb.html
Connections are pooled, not kept per thread: under gevent every greenlet would be a thread of its own.
"""

from __future__ import annotations

import itertools
import os
import random
import sqlite3
from collections import deque
from typing import Any, Callable, Deque, List

ROWS = 4096
PAYLOAD = 100
"""Characters of text in a row."""

MEMDB_SINCE = (3, 36, 0)


class Database:
    """One database and the connections that are idle. Any number of threads may read at once."""

    def __init__(self) -> None:
        """Make the table. Takes a few milliseconds."""
        form = (
            "file:/%s?vfs=memdb"
            if sqlite3.sqlite_version_info >= MEMDB_SINCE
            else "file:%s?mode=memory&cache=shared"
        )
        self.uri = form % ("velodrome-%d-%d" % (os.getpid(), id(self)))
        self.anchor = self.connect()  # the database exists as long as one connection does
        self.idle: Deque[sqlite3.Connection] = deque()
        with self.anchor as connection:
            connection.execute(
                "CREATE TABLE item (id INTEGER PRIMARY KEY, name TEXT NOT NULL, body TEXT NOT NULL)"
            )
            rows = ((key, "item %d" % key, "x" * PAYLOAD) for key in range(1, ROWS + 1))
            connection.executemany("INSERT INTO item VALUES (?, ?, ?)", rows)

    def connect(self) -> sqlite3.Connection:
        """Return a new connection, which any one thread at a time may use."""
        return sqlite3.connect(self.uri, uri=True, check_same_thread=False, isolation_level=None)

    def reader(self, rows: int) -> Callable[[], List[Any]]:
        """Return a function that reads `rows` rows with consecutive keys, from another first key each time.

        Raises ValueError if the table is not that long.
        """
        if not 1 <= rows <= ROWS:
            raise ValueError("query: %d rows; the table has 1 to %d to give" % (rows, ROWS))
        keys = list(range(1, ROWS + 2 - rows))
        random.Random(rows).shuffle(keys)
        firsts = itertools.cycle(keys)
        idle, connect, more = self.idle, self.connect, rows - 1

        def fetch() -> List[Any]:
            try:
                connection = idle.pop()
            except IndexError:
                connection = connect()
            first = next(firsts)
            statement = "SELECT id, name, body FROM item WHERE id BETWEEN ? AND ?"
            found = connection.execute(statement, (first, first + more)).fetchall()
            idle.append(connection)
            return found

        return fetch
