"""asyncpg: PostgreSQL's binary protocol on asyncio, compiled by Cython."""

from __future__ import annotations

from typing import Any, Callable, List

from velodrome.guest.client import CONNECTIONS, TIMEOUT_S, Client
from velodrome.guest.clients import _tables
from velodrome.guest.clients._on_loop import OnLoop
from velodrome.guest.clients.psycopg import PAUSE


class Statements:
    """Reads and writes over a pool; one statement, one commit."""

    def __init__(self, url: str) -> None:
        """Open nothing yet. Needs asyncpg installed."""
        import asyncpg

        async def make() -> Any:
            pool = asyncpg.create_pool(
                url, min_size=1, max_size=CONNECTIONS, timeout=TIMEOUT_S, command_timeout=TIMEOUT_S
            )
            return await pool

        async def close(pool: Any) -> None:
            # Not `pool.close()`: that waits for connections in use, and whoever used them is gone.
            pool.terminate()

        self._failures = (asyncpg.PostgresError, asyncpg.InterfaceError, OSError)
        self._pool = OnLoop(make, close)

    def reader(self, rows: int, ms: float) -> Callable[[], Any]:
        """Return what reads so many rows."""
        spans = _tables.spans(rows)
        source = "velodrome_item, " + PAUSE % (ms / 1000) if ms else "velodrome_item"
        statement = _tables.select("$1", "$2", source)

        async def fetch() -> List[Any]:
            try:
                found: List[Any] = await (await self._pool.pool()).fetch(statement, *next(spans))
            except self._failures as error:
                _tables.tell("asyncpg", error)
                return []
            return found

        return fetch

    def writer(self, rows: int) -> Callable[[], Any]:
        """Return what changes so many rows."""
        spans = _tables.spans(rows)
        statement = _tables.update_in_order("$1", "$2")

        async def store() -> int:
            try:
                status = await (await self._pool.pool()).execute(statement, *next(spans))
            except self._failures as error:
                _tables.tell("asyncpg", error)
                return 0
            return int(status.split()[-1])  # "UPDATE 3"

        return store


client = Client(
    "asyncpg",
    "postgresql",
    "asyncpg: the binary protocol, compiled by Cython, on asyncio; other tasks run while it waits.",
    Statements,
    awaits=True,
    requires=("asyncpg==0.32.0",),
    default=True,
    pauses=True,
)
