"""What the blocking clients of SQL databases share (DB-API 2.0, PEP 249): a pool, and statements on it."""

from __future__ import annotations

import threading
from collections import deque
from typing import Any, Callable, Deque, List, Tuple, Type

from velodrome.guest.client import CONNECTIONS, TIMEOUT_S
from velodrome.guest.clients import _tables

Connect = Callable[[], Any]
Failures = Tuple[Type[BaseException], ...]


class Pool:
    """Connections of a process: opened as they are needed, kept, never more than `CONNECTIONS`.

    Under gevent its lock and its queue are cooperative, because it is made after the patching.
    """

    def __init__(self, connect: Connect) -> None:
        """Open nothing yet."""
        self._connect = connect
        self._idle: Deque[Any] = deque()
        self._free = threading.Semaphore(CONNECTIONS)

    def take(self) -> Any:
        """Return a connection that nobody else uses, the last that came back if there is any."""
        if not self._free.acquire(timeout=TIMEOUT_S):
            raise TimeoutError("all %d connections are in use" % CONNECTIONS)
        try:
            return self._idle.pop() if self._idle else self._connect()
        except BaseException:
            self._free.release()
            raise

    def give(self, connection: Any) -> None:
        """Return a connection that is in order."""
        self._idle.append(connection)
        self._free.release()

    def drop(self, connection: Any) -> None:
        """Give back a connection that failed: it is closed, and another takes its place."""
        self._free.release()
        connection.close()


class Statements:
    """Reads and writes over a pool; one statement, one commit."""

    def __init__(
        self,
        client: str,
        connect: Connect,
        failures: Failures,
        pause: str,
        update: Callable[[str, str], str] = _tables.update,
    ) -> None:
        """`pause` is the table expression that waits, with `%s` for the seconds; `failures` count as no answer."""
        self._client, self._pause, self._update = client, pause, update
        self._failures: Failures = (*failures, OSError, TimeoutError)
        self._pool = Pool(connect)

    def reader(self, rows: int, ms: float) -> Callable[[], List[Any]]:
        """Return what reads so many rows."""
        spans = _tables.spans(rows)
        source = "velodrome_item, " + self._pause % (ms / 1000) if ms else "velodrome_item"
        statement = _tables.select("%s", "%s", source)
        run = self._run

        def fetch() -> List[Any]:
            found: List[Any] = run(statement, next(spans), "fetchall") or []
            return found

        return fetch

    def writer(self, rows: int) -> Callable[[], int]:
        """Return what changes so many rows."""
        spans = _tables.spans(rows)
        statement = self._update("%s", "%s")
        run = self._run

        def store() -> int:
            return int(run(statement, next(spans), "") or 0)

        return store

    def _run(self, statement: str, span: Tuple[int, int], method: str) -> Any:
        """Run a statement and return what the cursor's method gives, or how many rows it changed; None: failed."""
        pool = self._pool
        try:
            connection = pool.take()
        except self._failures as error:
            return _tables.tell(self._client, error)
        try:
            cursor = connection.cursor()
            cursor.execute(statement, span)
            result = getattr(cursor, method)() if method else cursor.rowcount
            cursor.close()
        except self._failures as error:
            pool.drop(connection)
            return _tables.tell(self._client, error)
        except (
            BaseException
        ):  # a killed greenlet, an interrupted thread: nobody knows what is still to come on it
            pool.drop(connection)
            raise
        pool.give(connection)
        return result


def prepare(connection: Any, version: str) -> str:
    """Make the tables on a connection that commits by itself, unless they are there and whole; close it.

    `version` is the statement that asks for the database's version, which is returned.
    """
    cursor = connection.cursor()
    cursor.execute(version)
    release = str(cursor.fetchone()[0])
    for statement in _tables.CREATE:
        cursor.execute(statement)
    for counting, clearing, (filling, rows) in zip(_tables.COUNT, _tables.CLEAR, _tables.fill("%s")):
        cursor.execute(counting)
        if cursor.fetchone()[0] != len(rows):
            cursor.execute(clearing)
            cursor.executemany(filling, rows)
    cursor.close()
    connection.close()
    return release
