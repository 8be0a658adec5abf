"""Bounds that a treatment raises, or lowers: threads, pools of connections, connections of clients.

    raised = Raised(giving, "database-pools")
    raised.remember(pool, 15)              # its bound is 200 from now on
    raised.look(pool, Pool.checkedout)     # notes "database-pools-beyond" once 16 are in use

A bound that is raised was no bound where no more are ever in use than it allowed.
"""

from __future__ import annotations

from functools import wraps
from types import ModuleType
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Set

from velodrome.guest.injected.giving import Giving, Treatments
from velodrome.guest.injected.loops import is_awaited

BEYOND = "-beyond"
"""Of the name of a treatment that raises a bound, once more is in use than that allowed: it did bound."""


class Raised:
    """Bounds that were raised: notes when more is in use than one of them allowed before."""

    def __init__(self, giving: Giving, name: str) -> None:
        self._giving, self._name = giving, name + BEYOND
        self._bounds: Dict[int, int] = {}

    def remember(self, thing: Any, bound: int) -> None:
        """Remember what the bound of a thing was."""
        self._bounds[id(thing)] = bound

    def bound_of(self, thing: Any) -> Optional[int]:
        """Return what its bound was; None: that was not raised."""
        return self._bounds.get(id(thing))

    def look(self, thing: Any, used: Callable[[Any], int]) -> None:
        """Note it where more are in use now."""
        bound = self._bounds.get(id(thing))
        if bound is not None and used(thing) > bound:
            self._giving.took(self._name)

    def look_after(self, module: str, cls: str, method: str, used: Callable[[Any], int]) -> None:
        """Look after each call of a method by which more come into use; a class without it is taken for bound."""

        def patch(found: Any) -> None:
            owner = getattr(found, cls)
            before = getattr(owner, method, None)
            if before is None:
                self._giving.took(self._name)
                return

            @wraps(before)
            def call(thing: Any, *args: Any, **named: Any) -> Any:
                result = before(thing, *args, **named)
                self.look(thing, used)
                return result

            @wraps(before)
            async def call_later(thing: Any, *args: Any, **named: Any) -> Any:
                result = await before(thing, *args, **named)
                self.look(thing, used)
                return result

            setattr(owner, method, call_later if is_awaited(before) else call)

        self._giving.finder.after(module, patch)


def _anyio_tokens(giving: Giving, count: int) -> None:
    """Have AnyIO run so many calls in threads at once, whatever the app set; a limiter of its own it keeps."""
    bound = Raised(giving, "anyio-tokens")

    def raised(limiter: Any) -> Any:
        if limiter.total_tokens < count:
            bound.remember(limiter, limiter.total_tokens)
            limiter.total_tokens = count
        giving.took("anyio-tokens")
        bound.look(limiter, lambda limiter: int(limiter.borrowed_tokens))
        return limiter

    def patch(module: ModuleType) -> None:
        backend = getattr(module, "AsyncIOBackend", None)
        if backend is not None:  # AnyIO 4
            before = backend.current_default_thread_limiter
            backend.current_default_thread_limiter = classmethod(lambda cls: raised(before()))
            return
        earlier = module.current_default_thread_limiter  # AnyIO 3
        module.current_default_thread_limiter = lambda: raised(earlier())  # type: ignore[attr-defined]

    giving.finder.after("anyio._backends._asyncio", patch)


def _default_executor(giving: Giving, count: int) -> None:
    """Have the default executor of an event loop run so many calls at once; one that the app has set it keeps."""
    own: Set[int] = set()
    made: Dict[int, Any] = {}
    bound = Raised(giving, "default-executor")

    def patch(cls: Any) -> None:
        before, setting = cls.run_in_executor, cls.set_default_executor

        def set_default_executor(self: Any, executor: Any) -> Any:
            own.add(id(self))
            return setting(self, executor)

        def run_in_executor(self: Any, executor: Any, func: Any, *args: Any) -> Any:
            if executor is None and id(self) not in own:
                if id(self) not in made:
                    from concurrent.futures import ThreadPoolExecutor

                    made[id(self)] = ThreadPoolExecutor(count, thread_name_prefix="asyncio")
                    setting(self, made[id(self)])
                    bound.remember(made[id(self)], ThreadPoolExecutor()._max_workers)
                giving.took("default-executor")
                bound.look(made[id(self)], lambda pool: len(pool._threads))
            return before(self, executor, func, *args)

        cls.run_in_executor, cls.set_default_executor = run_in_executor, set_default_executor

    giving.finder.after("asyncio.base_events", lambda module: patch(module.BaseEventLoop))
    giving.finder.after("uvloop", lambda module: patch(module.Loop))


class Bound(NamedTuple):
    """Where a package keeps how many connections there may be, as an attribute of what it makes."""

    module: str
    cls: str
    attribute: str
    maker: str = "__init__"
    """Method that sets it."""


def _set_bounds(
    giving: Giving,
    name: str,
    count: int,
    bounds: Sequence[Bound],
    *,
    lower: bool = False,
    raised: Optional[Raised] = None,
) -> None:
    """Have what is made with a lower bound get this one; `lower`: what is made with a higher one.

    `raised` hears of what is.
    """

    def patched(bound: Bound) -> Callable[[ModuleType], None]:
        def patch(module: ModuleType) -> None:
            cls: Any = getattr(module, bound.cls)
            before = getattr(cls, bound.maker)

            @wraps(before)
            def make(self: Any, *args: Any, **more: Any) -> None:
                before(self, *args, **more)
                there = getattr(self, bound.attribute, None)
                if isinstance(there, int) and (there > count if lower else 0 < there < count):
                    setattr(self, bound.attribute, count)
                    giving.took(name)
                    if raised is not None:
                        raised.remember(self, there)

            setattr(cls, bound.maker, make)

        return patch

    for bound in bounds:
        giving.finder.after(bound.module, patched(bound))


def _database_pools(giving: Giving, count: int) -> None:
    """Have pools of connections to databases that hold fewer hold so many.

    SQLAlchemy's, asyncpg's, psycopg_pool's, aiomysql's, and those of redis-py that wait.
    """
    name = "database-pools"
    raised = Raised(giving, name)

    def sqlalchemy(module: Any) -> None:
        pool = module.QueuePool
        before, recreating = pool.__init__, pool.recreate

        def init(  # noqa: PLR0917 - `create_engine` reads off their names which options there are
            self: Any,
            creator: Any,
            pool_size: int = 5,
            max_overflow: int = 10,
            timeout: float = 30.0,
            use_lifo: bool = False,
            **more: Any,
        ) -> None:
            if max_overflow >= 0 and pool_size > 0 and pool_size + max_overflow < count:
                raised.remember(self, pool_size + max_overflow)
                # What is beyond the size is closed when it is given back, and opened again for the next request.
                pool_size = count - max_overflow
                giving.took(name)
            sizes = {"pool_size": pool_size, "max_overflow": max_overflow}
            before(self, creator, timeout=timeout, use_lifo=use_lifo, **sizes, **more)

        def recreate(self: Any) -> Any:
            found, bound = recreating(self), raised.bound_of(self)
            if bound is not None:  # it was raised before, so that the new one was not
                raised.remember(found, bound)
            return found

        pool.__init__, pool.recreate = init, recreate

    def aiomysql(module: Any) -> None:
        before = module.Pool.__init__

        def init(self: Any, minsize: int, maxsize: int, *args: Any, **more: Any) -> None:
            if 0 < maxsize < count:
                raised.remember(self, maxsize)
                maxsize = count
                giving.took(name)
            before(self, minsize, maxsize, *args, **more)

        module.Pool.__init__ = init

    def asyncpg(module: Any) -> None:
        before = module.Pool._get_new_connection

        async def get_new_connection(self: Any) -> Any:
            # What it opens is not counted yet.
            raised.look(self, lambda pool: int(pool.get_size()) + 1)
            return await before(self)

        module.Pool._get_new_connection = get_new_connection

    giving.finder.after("sqlalchemy.pool.impl", sqlalchemy)
    giving.finder.after("aiomysql.pool", aiomysql)
    giving.finder.after("asyncpg.pool", asyncpg)
    raised.look_after("sqlalchemy.pool.impl", "QueuePool", "_do_get", lambda pool: int(pool.checkedout()))
    raised.look_after("aiomysql.pool", "Pool", "_fill_free_pool", lambda pool: int(pool.size))
    for where, cls in (("pool", "ConnectionPool"), ("pool_async", "AsyncConnectionPool")):
        raised.look_after(f"psycopg_pool.{where}", cls, "_maybe_grow_pool", lambda pool: int(pool._nconns))
    bounds = [Bound("asyncpg.pool", "Pool", "_maxsize"), Bound("psycopg_pool.base", "BasePool", "_max_size")]
    _set_bounds(giving, name, count, bounds, raised=raised)
    _waiting_redis(giving, name, count, raised)


def _waiting_redis(giving: Giving, name: str, count: int, raised: Raised) -> None:
    """Have pools of redis-py that wait for a connection hold so many."""

    def patch(module: Any) -> None:
        before = module.BlockingConnectionPool.__init__

        @wraps(before)
        def init(self: Any, *args: Any, **more: Any) -> None:
            before(self, *args, **more)
            if self.max_connections < count:
                raised.remember(self, self.max_connections)
                self.max_connections = count
                self.reset()  # that of threads has a place for each connection
                giving.took(name)

        module.BlockingConnectionPool.__init__ = init

    for where, used in (("redis", "_connections"), ("redis.asyncio", "_in_use_connections")):
        giving.finder.after(where + ".connection", patch)
        raised.look_after(
            where + ".connection",
            "BlockingConnectionPool",
            "get_connection",
            lambda pool, used=used: len(getattr(pool, used)),  # type: ignore[misc]
        )


def _client_connections(giving: Giving, count: int) -> None:
    """Have clients of aiohttp, httpx and Tornado that open fewer connections open up to so many."""
    name = "client-connections"
    raised = Raised(giving, name)

    def aiohttp(module: Any) -> None:
        before = module.TCPConnector.__init__

        def init(self: Any, *, limit: int = 100, limit_per_host: int = 0, **more: Any) -> None:
            low = [bound for bound in (limit, limit_per_host) if 0 < bound < count]
            if low:
                raised.remember(self, min(low))
                giving.took(name)
            limit, limit_per_host = (
                count if 0 < bound < count else bound for bound in (limit, limit_per_host)
            )
            before(self, limit=limit, limit_per_host=limit_per_host, **more)

        module.TCPConnector.__init__ = init

    giving.finder.after("aiohttp.connector", aiohttp)
    raised.look_after("aiohttp.connector", "BaseConnector", "connect", lambda found: len(found._acquired))
    tornado = Bound("tornado.simple_httpclient", "SimpleAsyncHTTPClient", "max_clients", "initialize")
    raised.look_after(tornado.module, tornado.cls, "_process_queue", lambda client: len(client.active))
    httpx = _of_httpx("_max_connections")
    for pool in httpx:
        raised.look_after(
            pool.module, pool.cls, "_assign_requests_to_connections", lambda pool: len(pool._connections)
        )
    _set_bounds(giving, name, count, [*httpx, tornado], raised=raised)


def _httpx_kept(giving: Giving, count: int) -> None:
    """Have clients of httpx that keep more idle connections keep so many."""
    _set_bounds(giving, "httpx-kept", count, _of_httpx("_max_keepalive_connections"), lower=True)


def _of_httpx(attribute: str) -> List[Bound]:
    return [
        Bound("httpcore._async.connection_pool", "AsyncConnectionPool", attribute),
        Bound("httpcore._sync.connection_pool", "ConnectionPool", attribute),
    ]


def _raising_pools(giving: Giving, count: int) -> None:
    """Have pools that raise where no connection is left hold so many: of redis-py, peewee and psycopg2."""
    name = "raising-pools"

    def redis(module: Any) -> None:
        pool = module.ConnectionPool
        before = pool.__init__

        def init(self: Any, *args: Any, **more: Any) -> None:
            before(self, *args, **more)
            bound = getattr(self, "max_connections", None)
            # One that waits is derived from it.
            if bound is not None and bound < count and type(self) is pool:
                self.max_connections = count
                giving.took(name)

        pool.__init__ = init

    giving.finder.after("redis.connection", redis)
    giving.finder.after("redis.asyncio.connection", redis)
    bounds = [
        Bound("playhouse.pool", "PooledDatabase", "_max_connections"),
        # Of one that was made without a name.
        Bound("playhouse.pool", "PooledDatabase", "_max_connections", "init"),
        Bound("psycopg2.pool", "AbstractConnectionPool", "maxconn"),
    ]
    _set_bounds(giving, name, count, bounds)


TREATMENTS: Treatments = {
    "anyio-tokens": _anyio_tokens,
    "default-executor": _default_executor,
    "database-pools": _database_pools,
    "client-connections": _client_connections,
    "httpx-kept": _httpx_kept,
    "raising-pools": _raising_pools,
}
