"""redis-py: Redis' protocol in Python, over sockets that block."""

from __future__ import annotations

from typing import Any, Callable, List

from velodrome.guest.client import CONNECTIONS, TIMEOUT_S, Client
from velodrome.guest.clients import _tables

REDIS = "redis==8.1.0"


class Commands:
    """Reads by MGET, writes by MSET, over the library's own pool."""

    def __init__(self, url: str) -> None:
        """Open nothing yet. Needs redis installed."""
        import redis

        pool = redis.BlockingConnectionPool.from_url(
            url, max_connections=CONNECTIONS, timeout=TIMEOUT_S, socket_timeout=TIMEOUT_S
        )
        self.redis = redis.Redis(connection_pool=pool)
        self._failures = (redis.RedisError, OSError)

    def reader(self, rows: int, ms: float) -> Callable[[], List[Any]]:
        """Return what reads so many rows; `ms` is refused before (`Client.pauses`)."""
        keys = _tables.keys_to_read(rows)
        mget, failures = self.redis.mget, self._failures

        def fetch() -> List[Any]:
            try:
                found: List[Any] = mget(next(keys))
            except failures as error:
                _tables.tell("redis-py", error)
                return []
            return [] if None in found else found

        return fetch

    def writer(self, rows: int) -> Callable[[], int]:
        """Return what writes so many rows."""
        values = _tables.keys_to_write(rows)
        mset, failures = self.redis.mset, self._failures

        def store() -> int:
            try:
                return rows if mset(next(values)) else 0
            except failures as error:
                _tables.tell("redis-py", error)
                return 0

        return store


def prepare(url: str) -> str:
    """Put all rows in place, those that are there too; return the database's version."""
    with Commands(url).redis as redis:
        redis.mset(_tables.key_contents())
        return str(redis.info("server")["redis_version"])


client = Client(
    "redis-py",
    "redis",
    "redis-py: pure Python over a socket, so that under gevent other requests run while it waits.",
    Commands,
    requires=(REDIS,),
    default=True,
    prepare=prepare,
)
