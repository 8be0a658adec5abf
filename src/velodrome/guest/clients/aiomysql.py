"""aiomysql: MariaDB's protocol in Python over asyncio streams."""

from __future__ import annotations

from typing import Any, Callable, List, Tuple

from velodrome.guest.client import CONNECTIONS, TIMEOUT_S, Client, Connected
from velodrome.guest.clients import _tables
from velodrome.guest.clients._on_loop import OnLoop
from velodrome.guest.clients.pymysql import PAUSE, PORT, PYMYSQL, address


class Statements:
    """Reads and writes over a pool; one statement, one commit."""

    def __init__(self, client: str, library: Any, failures: Tuple[Any, ...], url: str) -> None:
        """`library` has `create_pool`; open nothing yet."""
        at = address(url, PORT)

        async def make() -> Any:
            return await library.create_pool(
                host=at.host,
                port=at.port,
                user=at.user,
                password=at.password,
                db=at.database,
                autocommit=True,
                minsize=1,
                maxsize=CONNECTIONS,
                connect_timeout=TIMEOUT_S,
            )

        async def close(pool: Any) -> None:
            # Not `pool.close()`: that waits for connections in use, and whoever used them is gone.
            pool.terminate()
            await pool.wait_closed()

        self._client = client
        self._failures = (*failures, OSError)
        self._pool = OnLoop(make, close)

    def reader(self, rows: int, ms: float) -> Callable[[], Any]:
        """Return what reads so many rows."""
        spans = _tables.spans(rows)
        source = "velodrome_item, " + PAUSE % (ms / 1000) if ms else "velodrome_item"
        statement = _tables.select("%s", "%s", source)

        async def read(cursor: Any) -> List[Any]:
            found: List[Any] = await cursor.fetchall()
            return found

        async def fetch() -> List[Any]:
            found: List[Any] = await self._run(statement, next(spans), read) or []
            return found

        return fetch

    def writer(self, rows: int) -> Callable[[], Any]:
        """Return what changes so many rows."""
        spans = _tables.spans(rows)
        statement = _tables.update("%s", "%s")

        async def changed(cursor: Any) -> int:
            return int(cursor.rowcount)

        async def store() -> int:
            return int(await self._run(statement, next(spans), changed) or 0)

        return store

    async def _run(self, statement: str, span: Tuple[int, int], result: Callable[[Any], Any]) -> Any:
        try:
            pool = await self._pool.pool()
            async with pool.acquire() as connection, connection.cursor() as cursor:
                await cursor.execute(statement, span)
                return await result(cursor)
        except self._failures as error:
            return _tables.tell(self._client, error)


def connect(url: str) -> Connected:
    """Return what reads and writes."""
    import aiomysql
    import pymysql

    return Statements("aiomysql", aiomysql, (pymysql.MySQLError,), url)


client = Client(
    "aiomysql",
    "mariadb",
    "aiomysql: PyMySQL over asyncio streams; other tasks run while it waits.",
    connect,
    awaits=True,
    requires=("aiomysql==0.3.2", PYMYSQL),
    default=True,
    pauses=True,
)
