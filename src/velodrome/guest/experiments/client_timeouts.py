"""How long a call takes that was given half a second: with a name that resolves slowly, a full backlog, silence.

python -m velodrome.guest.experiments.client_timeouts --timeout 0.5 --limit 5

Prints `{"aiohttp": {"dns": 0.5, "connect": 0.5, "silence": 0.5}, …}`: seconds until the call failed, null where it
had not after `--limit` seconds. Every client is given its one obvious time-out and no other.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import socket
import threading
import time
from importlib.util import find_spec
from typing import Any, Callable, Dict, List, Optional, Tuple

SLOW_NAME = "slow.test"
"""Resolves to this machine, after a while; `.test` never resolves otherwise (RFC 6761)."""


REFUSED = "http://127.0.0.1:9/"
"""The discard port, where nothing listens."""


def slow_names(seconds: float) -> None:
    """From now on looking `SLOW_NAME` up takes so long, in the thread that does it."""
    real = socket.getaddrinfo

    def getaddrinfo(host: Any, *arguments: Any, **more: Any) -> Any:
        if host in (SLOW_NAME, SLOW_NAME.encode()):
            time.sleep(seconds)
            host = "127.0.0.1"
        return real(host, *arguments, **more)

    socket.getaddrinfo = getaddrinfo


class Listeners:
    """A port whose queue is full, so that a connection is never made, and a port that accepts and sends nothing."""

    def __init__(self) -> None:
        """Listen, and fill the first queue."""
        self.full = socket.socket()
        self.full.bind(("127.0.0.1", 0))
        self.full.listen(0)
        self._crowd = [self._knock() for _ in range(8)]
        self.silent = socket.socket()
        self.silent.bind(("127.0.0.1", 0))
        self.silent.listen(100)

    def _knock(self) -> socket.socket:
        client = socket.socket()
        client.setblocking(False)
        client.connect_ex(self.full.getsockname())
        return client

    def urls(self) -> Dict[str, str]:
        """Return what is to be requested, by what is slow about it."""
        silent, full = self.silent.getsockname()[1], self.full.getsockname()[1]
        return {
            "dns": "http://%s:%d/" % (SLOW_NAME, silent),
            "connect": "http://127.0.0.1:%d/" % full,
            "silence": "http://127.0.0.1:%d/" % silent,
        }


def aiohttp(url: str, timeout: float) -> None:
    """`ClientTimeout(total=…)`."""
    import aiohttp as library

    async def ask() -> None:
        chosen = library.ClientTimeout(total=timeout)
        async with library.ClientSession(timeout=chosen) as session, session.get(url) as answer:
            await answer.read()

    _run(ask())


def aiohttp_read(url: str, timeout: float) -> None:
    """`ClientTimeout(sock_read=…)`: what people set who think of the answer alone."""
    import aiohttp as library

    async def ask() -> None:
        chosen = library.ClientTimeout(total=None, sock_read=timeout)
        async with library.ClientSession(timeout=chosen) as session, session.get(url) as answer:
            await answer.read()

    _run(ask())


def tornado(url: str, timeout: float) -> None:
    """`fetch(request_timeout=…)`."""
    from tornado.httpclient import AsyncHTTPClient

    async def ask() -> None:
        await AsyncHTTPClient(force_instance=True).fetch(url, request_timeout=timeout)

    _run(ask())


def urllib3(url: str, timeout: float) -> None:
    """`request(timeout=…)`: connecting and reading each."""
    import urllib3 as library

    library.PoolManager(retries=False).request("GET", url, timeout=timeout)


def urllib(url: str, timeout: float) -> None:
    """The standard library's `urlopen(timeout=…)`."""
    from urllib.request import ProxyHandler, build_opener

    build_opener(ProxyHandler({})).open(url, timeout=timeout).read()


CLIENTS: Dict[str, Callable[[str, float], None]] = {
    "aiohttp": aiohttp,
    "aiohttp-read": aiohttp_read,
    "tornado": tornado,
    "urllib": urllib,
    "urllib3": urllib3,
}


def _installed(client: str) -> bool:
    return find_spec(client.partition("-")[0]) is not None


def _run(coroutine: Any) -> None:
    """Run a coroutine on a loop whose threads nobody waits for: a thread may be resolving a name for long."""
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    loop.run_until_complete(coroutine)


def took(
    client: Callable[[str, float], None], url: str, timeout: float, limit: float
) -> Tuple[Optional[float], str]:
    """Return the seconds until a call failed (None: it had not after `limit`) and with what."""
    ended: List[Tuple[float, str]] = []
    began = time.monotonic()

    def call() -> None:
        try:
            client(url, timeout)
            ending = "an answer, which cannot be"
        except BaseException as error:
            ending = "%s: %s" % (type(error).__name__, error)
        ended.append((time.monotonic() - began, ending))

    thread = threading.Thread(target=call, daemon=True)
    thread.start()
    thread.join(limit)
    return ended[0] if ended else (None, "still waiting")


def main() -> None:
    """Try every client on every slowness."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--timeout", type=float, default=0.5)
    parser.add_argument("--limit", type=float, default=5.0)
    parser.add_argument("--slow-name", type=float, default=2.0, help="seconds the name takes")
    options = parser.parse_args()
    slow_names(options.slow_name)
    listeners = Listeners()
    urls = listeners.urls()
    found: Dict[str, Dict[str, Any]] = {}
    for name, client in CLIENTS.items():
        if not _installed(name):
            continue
        found[name] = {}
        took(client, REFUSED, options.timeout, options.limit)  # imports the library, which takes long
        for kind, url in urls.items():
            seconds, ending = took(client, url, options.timeout, options.limit)
            found[name][kind] = seconds
            found[name][kind + "_error"] = ending[:200]
    print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
    # Threads may still be resolving or connecting; nobody waits for them.
    import os

    os._exit(0)
