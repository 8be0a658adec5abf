"""The ways to wait: code that blocks its thread, coroutines that await, and two that are switched by hand.

Those are generators that delegate (`yield from`) and greenlets, both of `raw/coroutines.py`.

Everything here is imported and opened when a handler is built or first called, never on import: under
gevent `time.sleep`, sockets, queues and threads are only then the cooperative ones.
"""

from __future__ import annotations

import sys
import time
from functools import partial
from types import GeneratorType
from typing import Any, Callable, Dict, List, Optional, Sequence

from velodrome.guest.client import Client, Connected, choose_client, connect
from velodrome.guest.recipe import Query, Write

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
        return choose_client(step.database, step.driver, self._awaits)

    def of(self, step: Query | Write) -> Connected:
        """Return what reads and writes for a step. Raises ValueError, with a phrase."""
        client = self.client(step)
        if client.name not in self._connected:
            self._connected[client.name] = connect(client)
        return self._connected[client.name]


MOST = 1024
"""Threads, or greenlets, at most. They start as they are needed, so a small load has few."""

Start = Callable[..., Callable[[], Any]]


def starter() -> Start:
    """Return a function that starts `work(*arguments)` beside its caller and returns what waits for the result.

    Greenlets are taken from gevent's own pool, not from a pool of threads that happen to be greenlets: that
    is what is written by whoever writes for gevent, and it wakes nobody through a queue.
    """
    monkey = sys.modules.get("gevent.monkey")
    if monkey is not None and monkey.is_module_patched("threading"):
        from gevent.pool import Pool

        spawn = Pool(MOST).spawn

        def start_greenlet(work: Callable[..., Any], *arguments: Any) -> Callable[[], Any]:
            wait: Callable[[], Any] = spawn(work, *arguments).get
            return wait

        return start_greenlet
    from concurrent.futures import ThreadPoolExecutor

    submit = ThreadPoolExecutor(MOST, "velodrome-call").submit

    def start_thread(work: Callable[..., Any], *arguments: Any) -> Callable[[], Any]:
        return submit(work, *arguments).result

    return start_thread


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


class Session:
    """A session belongs to a loop, and a handler is built before there is a loop; so the first call opens it."""

    def __init__(self, connections: int, timeout_s: float) -> None:
        """Remember the bounds; open nothing. Needs aiohttp installed."""
        import asyncio

        import aiohttp

        self._aiohttp = aiohttp
        self._failures = (aiohttp.ClientError, asyncio.TimeoutError)
        self._connections = connections
        self._timeout = aiohttp.ClientTimeout(total=timeout_s)
        self._session: Optional[Any] = None

    async def ask(self, url: str) -> int:
        """Fetch a URL whole and return its status; 0 if there was no answer."""
        session = self._session or self._open()
        try:
            async with session.get(url) as answer:
                await answer.read()
                return int(answer.status)
        except self._failures:
            return 0

    def _open(self) -> Any:
        from velodrome.guest.workers import at_loop_end

        aiohttp = self._aiohttp
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=self._connections),
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=self._timeout,
        )
        at_loop_end(self._close)
        return self._session

    async def _close(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            await session.close()


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


class Trio:
    """`trio.sleep`, an httpx client, nurseries. Clients of databases that await are for asyncio: it has none."""

    wait = "await "

    def sleep(self) -> Callable[[float], Any]:
        """Return `trio.sleep`."""
        import trio

        slept: Callable[[float], Any] = trio.sleep
        return slept

    def ask(self, upstream: str) -> Callable[[str], Any]:
        """Return a coroutine function over one client, whose connections are opened by the first calls."""
        import httpx

        limits = httpx.Limits(max_connections=CONNECTIONS, max_keepalive_connections=CONNECTIONS)
        client = httpx.AsyncClient(limits=limits, timeout=float(TIMEOUT_S))

        async def ask(url: str) -> int:
            try:
                return int((await client.get(url)).status_code)
            except httpx.HTTPError:
                return 0

        return ask

    def ask_all(self, ask: Callable[[Any], Any]) -> Callable[[Sequence[Any]], Any]:
        """Return a coroutine function that has each call in a task of one nursery."""

        async def ask_all(calls: Sequence[Any]) -> List[int]:
            return await _in_a_nursery([partial(ask, call) for call in calls])

        return ask_all

    def ask_grpc(self, peer: str) -> Callable[[int], Any]:
        """Raise ValueError: no client of gRPC runs on trio."""
        raise ValueError("no client of gRPC runs on trio")

    def fetch(self, step: Query) -> Callable[[], Any]:
        """Raise ValueError: no client of a database runs on trio."""
        raise ValueError("no client of %s runs on trio" % step.database)

    def store(self, step: Write) -> Callable[[], Any]:
        """Raise ValueError: no client of a database runs on trio."""
        raise ValueError("no client of %s runs on trio" % step.database)

    def at_once(self, branches: Sequence[Callable[[], Any]]) -> Callable[[], Any]:
        """Return a coroutine function that has each branch in a task of one nursery."""
        return lambda: _in_a_nursery(branches)


async def _in_a_nursery(calls: Sequence[Callable[[], Any]]) -> List[int]:
    import trio

    results = [0] * len(calls)

    async def finish(number: int, call: Callable[[], Any]) -> None:
        results[number] = await call()

    async with trio.open_nursery() as nursery:
        for number, call in enumerate(calls):
            nursery.start_soon(finish, number, call)
    return results


class Delegating:
    """`yield from`, down to a bare `yield` that hands control to the loop (`raw/coroutines.py`)."""

    wait = "yield from "

    def __init__(self) -> None:
        """Open nothing yet."""
        self._blocking = Blocking()

    def sleep(self) -> Callable[[float], Any]:
        """Return a generator function that waits."""
        from velodrome.guest.raw.coroutines import sleep

        return sleep

    def ask(self, upstream: str) -> Callable[[str], Any]:
        """Return a generator function over connections that are kept."""
        from velodrome.guest.raw.coroutines import Asker

        return Asker(upstream, TIMEOUT_S).ask

    def ask_all(self, ask: Callable[[str], Any]) -> Callable[[Sequence[str]], Any]:
        """Return a generator function that makes all calls at once."""
        from velodrome.guest.raw.coroutines import gather

        def ask_all(urls: Sequence[str]) -> Any:
            return gather([ask(url) for url in urls])

        return ask_all

    def ask_grpc(self, peer: str) -> Callable[[int], Any]:
        """Return a generator function over a channel that blocks, and stops all meanwhile."""
        ask = self._blocking.ask_grpc(peer)
        return lambda latency_ms: _stopping_all(partial(ask, latency_ms))()

    def fetch(self, step: Query) -> Callable[[], Any]:
        """Return a generator function that reads, and stops all meanwhile."""
        return _stopping_all(self._blocking.fetch(step))

    def store(self, step: Write) -> Callable[[], Any]:
        """Return a generator function that writes, and stops all meanwhile."""
        return _stopping_all(self._blocking.store(step))

    def at_once(self, branches: Sequence[Callable[[], Any]]) -> Callable[[], Any]:
        """Return a generator function that runs all branches in turns."""
        from velodrome.guest.raw.coroutines import gather

        return lambda: gather([_run(branch) for branch in branches])


def _stopping_all(work: Callable[[], Any]) -> Callable[[], Any]:
    def done() -> Any:
        yield from ()  # so that this is a generator like the others
        return work()

    return done


def _run(branch: Callable[[], Any]) -> Any:
    result = branch()  # a generator, or done already if it waits for nothing
    return (yield from result) if isinstance(result, GeneratorType) else result


class Switching:
    """Straight code: what would wait switches to the hub (`raw/coroutines.py`). Needs greenlet installed."""

    wait = ""

    def __init__(self) -> None:
        """Open nothing yet."""
        self._blocking = Blocking()

    def sleep(self) -> Callable[[float], Any]:
        """Return what waits, and lets others run."""
        from velodrome.guest.raw.coroutines import hub

        return lambda seconds: hub().sleep(seconds)

    def ask(self, upstream: str) -> Callable[[str], int]:
        """Return a function over connections that are kept."""
        from velodrome.guest.raw.coroutines import Asker, hub

        asker = Asker(upstream, TIMEOUT_S)
        return lambda url: int(hub().drive(asker.ask(url)))

    def ask_all(self, ask: Callable[[str], int]) -> Callable[[Sequence[str]], List[int]]:
        """Return a function that requests each URL in a greenlet of its own, and waits for all."""
        from velodrome.guest.raw.coroutines import hub

        return lambda urls: hub().gather([partial(ask, url) for url in urls])

    def ask_grpc(self, peer: str) -> Callable[[int], int]:
        """Return a function over a channel that blocks, and stops all meanwhile."""
        return self._blocking.ask_grpc(peer)

    def fetch(self, step: Query) -> Callable[[], List[Any]]:
        """Return a function that reads, and stops all meanwhile."""
        return self._blocking.fetch(step)

    def store(self, step: Write) -> Callable[[], int]:
        """Return a function that writes, and stops all meanwhile."""
        return self._blocking.store(step)

    def at_once(self, branches: Sequence[Callable[[], int]]) -> Callable[[], List[int]]:
        """Return a function that runs each branch in a greenlet of its own."""
        from velodrome.guest.raw.coroutines import hub

        return lambda: hub().gather(branches)
