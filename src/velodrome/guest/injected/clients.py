"""Clients of third parties that an app makes again and again: those that are alike share what each would open anew.

    share(giving, True)    # aiohttp.ClientSession(), httpx.AsyncClient(), requests.get(…) in a handler keep connections

What a client has of its own (headers, cookies, time-outs) stays its own; its connections, and its TLS context, are
those of the first that was made with the same arguments. What closes a client leaves them open, and a client of aiohttp
or httpx that would close a connection behind a call, or keep few of those that it opens, keeps them all.
"""

from __future__ import annotations

import os
from typing import Any, Dict, Tuple

from velodrome.guest.injected.giving import Giving
from velodrome.guest.injected.loops import running_loop

TOOK = "clients-shared"
KEPT = 64
"""Connections that urllib3 keeps to one host, at least: one for each thread that calls it."""


def share(giving: Giving, _: bool) -> None:
    """Have clients of aiohttp, httpx and requests share their connections; noted once the app is warm."""
    warm = giving.warmth()

    def met() -> None:
        if warm:  # what is made at the start is made once
            giving.took(TOOK)

    giving.finder.after("aiohttp.connector", lambda module: _keep_aiohttp(module, giving))
    giving.finder.after("aiohttp.client", lambda module: _share_aiohttp(module, met))
    for kind in ("_sync.connection_pool", "_async.connection_pool"):
        giving.finder.after(f"httpcore.{kind}", lambda module: _keep_httpcore(module, giving))
    giving.finder.after("httpx._transports.default", lambda module: _share_httpx(module, met))
    giving.finder.after("requests.adapters", lambda module: _share_requests(module, met))


def _share_aiohttp(module: Any, met: Any) -> None:
    cls = module.ClientSession
    before = cls.__init__
    connectors: Dict[int, Tuple[Any, Any]] = {}

    def init(self: Any, *args: Any, **named: Any) -> None:
        loop = running_loop()
        if loop is not None and named.get("connector") is None:
            held, connector = connectors.get(id(loop), (None, None))
            if held is loop and not connector.closed:
                met()
            else:
                connector = module.TCPConnector(limit=0)
                connectors[id(loop)] = loop, connector
            named.update(connector=connector, connector_owner=False)
        before(self, *args, **named)

    cls.__init__ = init


def _keep_aiohttp(module: Any, giving: Giving) -> None:
    before = module.TCPConnector.__init__

    def init(self: Any, *args: Any, **named: Any) -> None:
        if named.get("force_close"):
            named["force_close"] = False
            giving.took(TOOK)
        before(self, *args, **named)

    module.TCPConnector.__init__ = init


def _keep_httpcore(module: Any, giving: Giving) -> None:
    cls = getattr(module, "AsyncConnectionPool", None) or module.ConnectionPool
    before = cls.__init__

    def init(self: Any, *args: Any, **named: Any) -> None:
        before(self, *args, **named)
        if self._max_keepalive_connections < self._max_connections:
            self._max_keepalive_connections = self._max_connections
            giving.took(TOOK)

    cls.__init__ = init


def _share_httpx(module: Any, met: Any) -> None:
    def patch(cls: Any, awaits: bool) -> None:
        before = cls.__init__
        pools: Dict[Any, Tuple[Any, Any]] = {}

        def init(self: Any, *args: Any, **named: Any) -> None:
            loop = running_loop() if awaits else None
            if awaits and loop is None:
                before(self, *args, **named)
                return
            key = (os.getpid(), id(loop), repr(args), repr(sorted(named.items())))
            held, pool = pools.get(key, (None, None))
            if pool is not None and held is loop:
                met()
                self._pool = pool
            else:
                before(self, *args, **named)
                pools[key] = loop, self._pool
            self.velodrome_shared = True

        def stays_open(name: str) -> None:
            closes = getattr(cls, name)

            def close(self: Any, *args: Any) -> Any:
                return None if getattr(self, "velodrome_shared", False) else closes(self, *args)

            async def close_later(self: Any, *args: Any) -> Any:
                return None if getattr(self, "velodrome_shared", False) else await closes(self, *args)

            setattr(cls, name, close_later if awaits else close)

        cls.__init__ = init
        for name in ("__aexit__", "aclose") if awaits else ("__exit__", "close"):
            stays_open(name)

    patch(module.HTTPTransport, False)
    patch(module.AsyncHTTPTransport, True)


def _share_requests(module: Any, met: Any) -> None:
    cls = module.HTTPAdapter
    before = cls.init_poolmanager
    managers: Dict[Any, Any] = {}

    def init_poolmanager(self: Any, connections: Any, maxsize: Any, block: Any = False, **more: Any) -> None:
        key = (os.getpid(), type(self), connections, maxsize, block, repr(sorted(more.items())))
        found = managers.get(key)
        if found is None:
            before(self, connections, max(maxsize, KEPT), block, **more)
            managers[key] = self.poolmanager
        else:
            met()
            self.poolmanager = found
        self._pool_connections, self._pool_maxsize, self._pool_block = connections, maxsize, block

    cls.init_poolmanager = init_poolmanager
    cls.close = lambda self: None
