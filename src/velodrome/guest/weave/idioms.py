"""The two ways to wait: code that blocks its thread, and coroutines that await.

Everything here is imported and opened when a handler is built or first called, never on import: under
gevent `time.sleep`, sockets, queues and threads are only then the cooperative ones.
"""

from __future__ import annotations

import time
from typing import Any, Callable, List, Optional, Sequence

from velodrome.guest.weave.database import Database

CONNECTIONS = 10_000
"""Connections to the third party that a process keeps: more than it has in flight, so none is dropped."""

TIMEOUT_S = 30
"""A third party silent for so long counts as no answer."""

PARALLEL = 1024
"""Threads for parallel calls at most. They start as they are needed, so a small load has few."""


class Blocking:
    """`time.sleep`, urllib3's pool, SQLite on the request's own thread; parallel calls on a pool of threads.

    Right under threads and processes, and under gevent once it has patched the standard library: threads
    are greenlets then. SQLite is C and blocks there all the same, as it does in production.
    """

    wait = ""

    def __init__(self) -> None:
        """Open nothing yet."""
        self._database: Optional[Database] = None

    def sleep(self) -> Callable[[float], Any]:
        """Return `time.sleep`, as it is now: patched or not."""
        return time.sleep

    def ask(self, upstream: str) -> Callable[[str], int]:
        """Return a function over one pool of kept connections, shared by all threads."""
        import urllib3

        pool = urllib3.PoolManager(
            num_pools=1, maxsize=CONNECTIONS, block=False, retries=False, timeout=float(TIMEOUT_S)
        )

        def ask(url: str) -> int:
            try:
                return int(pool.request("GET", url).status)
            except urllib3.exceptions.HTTPError:
                return 0

        return ask

    def ask_all(self, ask: Callable[[str], int]) -> Callable[[Sequence[str]], List[int]]:
        """Return a function that hands each URL to a thread of a pool and waits for all."""
        from concurrent.futures import ThreadPoolExecutor

        pool = ThreadPoolExecutor(PARALLEL, "velodrome-call")

        def ask_all(urls: Sequence[str]) -> List[int]:
            return list(pool.map(ask, urls))

        return ask_all

    def fetch(self, rows: int) -> Callable[[], List[Any]]:
        """Return a function that reads on the calling thread."""
        self._database = self._database or Database()
        return self._database.reader(rows)


class Awaiting:
    """`asyncio.sleep`, an aiohttp session made on the running loop, `gather` for parallel calls.

    SQLite is read on the loop's default executor, what `asyncio.to_thread` does: a statement can take
    long, and one that runs on the loop stops every other request. It costs two thread switches a request.
    """

    wait = "await "

    def __init__(self) -> None:
        """Open nothing yet."""
        self._blocking = Blocking()

    def sleep(self) -> Callable[[float], Any]:
        """Return `asyncio.sleep`."""
        import asyncio

        return asyncio.sleep

    def ask(self, upstream: str) -> Callable[[str], Any]:
        """Return a coroutine function over one session, made at the first call."""
        from velodrome.guest.weave.session import Session

        return Session(CONNECTIONS, TIMEOUT_S).ask

    def ask_all(self, ask: Callable[[str], Any]) -> Callable[[Sequence[str]], Any]:
        """Return a coroutine function that gathers all answers."""
        from asyncio import gather

        async def ask_all(urls: Sequence[str]) -> List[int]:
            return list(await gather(*map(ask, urls)))

        return ask_all

    def fetch(self, rows: int) -> Callable[[], Any]:
        """Return a coroutine function that reads on a thread of the loop's executor."""
        from asyncio import get_running_loop

        read = self._blocking.fetch(rows)

        async def fetch() -> Any:
            return await get_running_loop().run_in_executor(None, read)

        return fetch
