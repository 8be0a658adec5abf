"""redis-py's asyncio half: the same protocol over asyncio streams."""

from __future__ import annotations

from typing import Any, Callable, List

from velodrome.guest.client import CONNECTIONS, TIMEOUT_S, Client
from velodrome.guest.clients import _tables
from velodrome.guest.clients._on_loop import OnLoop
from velodrome.guest.clients.redis_py import REDIS


class Commands:
    """Reads by MGET, writes by MSET, over the library's own pool."""

    def __init__(self, url: str) -> None:
        """Open nothing yet. Needs redis installed."""
        import redis
        from redis import asyncio

        async def make() -> Any:
            pool = asyncio.BlockingConnectionPool.from_url(
                url, max_connections=CONNECTIONS, timeout=TIMEOUT_S, socket_timeout=TIMEOUT_S
            )
            return asyncio.Redis.from_pool(pool)

        async def close(redis: Any) -> None:
            await redis.aclose()

        self._failures = (redis.RedisError, OSError)
        self._pool = OnLoop(make, close)

    def reader(self, rows: int, ms: float) -> Callable[[], Any]:
        """Return what reads so many rows; `ms` is refused before (`Client.pauses`)."""
        keys = _tables.keys_to_read(rows)

        async def fetch() -> List[Any]:
            try:
                found: List[Any] = await (await self._pool.pool()).mget(next(keys))
            except self._failures as error:
                _tables.tell("redis-asyncio", error)
                return []
            return [] if None in found else found

        return fetch

    def writer(self, rows: int) -> Callable[[], Any]:
        """Return what writes so many rows."""
        values = _tables.keys_to_write(rows)

        async def store() -> int:
            try:
                return rows if await (await self._pool.pool()).mset(next(values)) else 0
            except self._failures as error:
                _tables.tell("redis-asyncio", error)
                return 0

        return store


client = Client(
    "redis-asyncio",
    "redis",
    "redis-py's asyncio half: pure Python over asyncio streams; other tasks run while it waits.",
    Commands,
    awaits=True,
    requires=(REDIS,),
    default=True,
)
