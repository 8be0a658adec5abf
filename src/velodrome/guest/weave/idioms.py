"""The two ways to wait: code that blocks its thread, and coroutines that await.

Everything here is imported and opened when a handler is built or first called, never on import: under
gevent `time.sleep`, sockets, queues and threads are only then the cooperative ones.
"""

from __future__ import annotations

import time
from typing import Any, Callable, Dict, List, Optional, Sequence

from velodrome.guest.client import Client, Connected, chosen, connected
from velodrome.guest.recipe import Query, Write
from velodrome.guest.weave.side_by_side import Start, starter

CONNECTIONS = 10_000
"""Connections to the third party that a process keeps: more than it has in flight, so none is dropped."""

TIMEOUT_S = 30
"""A third party silent for so long counts as no answer."""


class Connections:
    """The databases of a handler: each client is connected once, however many steps ask it."""

    def __init__(self, awaits: bool) -> None:
        """Open nothing yet."""
        self._awaits = awaits
        self._connected: Dict[str, Connected] = {}

    def client(self, step: Query | Write) -> Client:
        """Return the client of a step. Raises ValueError, with a phrase, where there is none."""
        return chosen(step.database, step.driver, self._awaits)

    def of(self, step: Query | Write) -> Connected:
        """Return what reads and writes for a step. Raises ValueError, with a phrase."""
        client = self.client(step)
        if client.name not in self._connected:
            self._connected[client.name] = connected(client)
        return self._connected[client.name]


class Blocking:
    """`time.sleep`, urllib3's pool, clients of databases that block; on a pool of threads what is done at once.

    Right under threads and processes, and under gevent once it has patched the standard library: threads
    are greenlets then. A client in C (SQLite) blocks there all the same, as it does in production.
    """

    wait = ""

    def __init__(self) -> None:
        """Open nothing yet."""
        self._databases = Connections(awaits=False)
        self._start: Optional[Start] = None

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

    def ask_all(self, ask: Callable[[Any], int]) -> Callable[[Sequence[Any]], List[int]]:
        """Return a function that hands each call to a thread of a pool, or a greenlet, and waits for all."""
        start = self._start = self._start or starter()

        def ask_all(calls: Sequence[Any]) -> List[int]:
            return [wait() for wait in [start(ask, call) for call in calls]]

        return ask_all

    def ask_grpc(self, peer: str) -> Callable[[int], int]:
        """Return a function over one channel of grpcio's, shared by all threads."""
        from velodrome.guest.grpc.peers import blocking_peer

        return blocking_peer(peer, TIMEOUT_S)

    def fetch(self, step: Query) -> Callable[[], List[Any]]:
        """Return a function that reads on the calling thread."""
        return self._databases.of(step).reader(step.rows, step.ms)

    def store(self, step: Write) -> Callable[[], int]:
        """Return a function that writes on the calling thread."""
        return self._databases.of(step).writer(step.rows)

    def at_once(self, branches: Sequence[Callable[[], int]]) -> Callable[[], List[int]]:
        """Return a function that calls each branch on a thread of a pool, or a greenlet, and waits for all."""
        start = self._start = self._start or starter()

        def at_once() -> List[int]:
            return [wait() for wait in [start(branch) for branch in branches]]

        return at_once


class Awaiting:
    """`asyncio.sleep`, an aiohttp session made on the running loop, clients of databases that await, `gather`.

    A client that blocks is used if the recipe names it, and blocks the loop: no other request is served meanwhile.
    """

    wait = "await "

    def __init__(self) -> None:
        """Open nothing yet."""
        self._databases = Connections(awaits=True)
        self._to_open: List[Callable[[], Any]] = []

    def open(self) -> None:
        """Open what belongs to the running loop, for frames that hear of its start; else first calls open it."""
        for opens in self._to_open:
            opens()

    def sleep(self) -> Callable[[float], Any]:
        """Return `asyncio.sleep`."""
        import asyncio

        return asyncio.sleep

    def ask(self, upstream: str) -> Callable[[str], Any]:
        """Return a coroutine function over one session, made at the first call."""
        from velodrome.guest.weave.session import Session

        return Session(CONNECTIONS, TIMEOUT_S).ask

    def ask_all(self, ask: Callable[[Any], Any]) -> Callable[[Sequence[Any]], Any]:
        """Return a coroutine function that gathers all answers."""
        from asyncio import gather

        async def ask_all(calls: Sequence[Any]) -> List[int]:
            return list(await gather(*map(ask, calls)))

        return ask_all

    def ask_grpc(self, peer: str) -> Callable[[int], Any]:
        """Return a coroutine function over one `grpc.aio` channel."""
        from velodrome.guest.grpc.peers import AioPeer

        client = AioPeer(peer, TIMEOUT_S)
        self._to_open.append(client.open)
        return client.ask

    def fetch(self, step: Query) -> Callable[[], Any]:
        """Return a coroutine function that reads."""
        read = self._databases.of(step).reader(step.rows, step.ms)
        return read if self._databases.client(step).awaits else _blocking_the_loop(read)

    def store(self, step: Write) -> Callable[[], Any]:
        """Return a coroutine function that writes."""
        write = self._databases.of(step).writer(step.rows)
        return write if self._databases.client(step).awaits else _blocking_the_loop(write)

    def at_once(self, branches: Sequence[Callable[[], Any]]) -> Callable[[], Any]:
        """Return a coroutine function that gathers all branches."""
        from asyncio import gather

        async def at_once() -> List[int]:
            return list(await gather(*[branch() for branch in branches]))

        return at_once


def _blocking_the_loop(work: Callable[[], Any]) -> Callable[[], Any]:
    async def done() -> Any:
        return work()

    return done
