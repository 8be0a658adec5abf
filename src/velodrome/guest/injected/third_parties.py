"""Calls of third parties: what each takes, and longer by as much as is given, whichever client makes it.

    {"calls-longer": 0}     # each is only noted: `called-<pid>.jsonl`, its time until the head of the answer is there
    {"calls-longer": 0.02}  # each takes 20 ms longer, too

    follow(giving.finder, calls)    # calls.note(began) after each

Clients of aiohttp, httpx and Tornado, and whatever calls through `http.client`: requests, urllib3, urllib.
"""

from __future__ import annotations

import time
from typing import Any, Callable

from velodrome.guest.injected.giving import Giving, Treatments
from velodrome.guest.injected.importing import Finder
from velodrome.guest.injected.loops import running_loop

TOOK = "calls-longer"
NOTED = 500
"""Calls of a process that are noted."""


class Calls:
    """What is done with those of a process."""

    longer_s = 0.0
    """For how long each waits once it is answered."""

    def note(self, began: float) -> None:
        """Hear of one that has been answered; it began then, by the clock of `time.monotonic`."""


class _Longer(Calls):
    """Each is noted, or takes longer."""

    def __init__(self, giving: Giving, longer_s: float) -> None:
        self._giving, self.longer_s, self._left = giving, longer_s, NOTED

    def note(self, began: float) -> None:
        """Note it, or that it takes longer."""
        if self.longer_s:
            self._giving.took(TOOK)
        elif self._left > 0:
            self._left -= 1
            now = time.monotonic()
            self._giving.write("called", {"at": now, "seconds": now - began})


def _waits(calls: Calls, before: Callable[..., Any]) -> Callable[..., Any]:
    def call(self: Any, *args: Any, **named: Any) -> Any:
        began = time.monotonic()
        found = before(self, *args, **named)
        calls.note(began)
        if calls.longer_s:
            time.sleep(calls.longer_s)  # which gevent makes one that lets others run
        return found

    return call


def _awaits(calls: Calls, before: Callable[..., Any]) -> Callable[..., Any]:
    async def call(self: Any, *args: Any, **named: Any) -> Any:
        began = time.monotonic()
        found = await before(self, *args, **named)
        calls.note(began)
        if calls.longer_s and running_loop() is not None:
            import asyncio

            await asyncio.sleep(calls.longer_s)
        elif calls.longer_s:
            import trio

            await trio.sleep(calls.longer_s)
        return found

    return call


def _begins(calls: Calls, before: Callable[..., Any]) -> Callable[..., Any]:
    """Return what is called for a future, in place of a coroutine."""
    awaited = _awaits(calls, before)

    def call(self: Any, *args: Any, **named: Any) -> Any:
        import asyncio

        return asyncio.ensure_future(awaited(self, *args, **named))

    return call


def follow(finder: Finder, calls: Calls) -> None:
    """Hear of each call."""

    def replaced(module: str, cls: str, name: str, how: Callable[..., Any]) -> None:
        def patch(found: Any) -> None:
            owner = getattr(found, cls, None)
            if owner is not None and hasattr(owner, name):
                setattr(owner, name, how(calls, getattr(owner, name)))

        finder.after(module, patch)

    replaced("aiohttp.client", "ClientSession", "_request", _awaits)
    replaced("httpx._transports.default", "AsyncHTTPTransport", "handle_async_request", _awaits)
    replaced("httpx._transports.default", "HTTPTransport", "handle_request", _waits)
    replaced("tornado.simple_httpclient", "SimpleAsyncHTTPClient", "fetch", _begins)
    replaced("http.client", "HTTPConnection", "getresponse", _waits)


def _calls_longer(giving: Giving, longer_s: float) -> None:
    follow(giving.finder, _Longer(giving, longer_s))


TREATMENTS: Treatments = {TOOK: _calls_longer}
