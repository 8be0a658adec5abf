"""Connections to databases that an app opens and closes again: kept, and handed out once more.

    keep(giving, 32)     # sqlite3.connect(…) returns what was opened with the same arguments, and closed since

SQLAlchemy's, Django's, peewee's and redis-py's are kept by what these have for that, and of drivers those that the
app's own code opens. What was closed by the app is rolled back and waits for the next; of `sqlite3` in its own thread.
What the app does with each new connection (`PRAGMA …`, functions of its own) is done each time. A database of SQLite
that is only in memory is not kept: the next one is to be empty.
"""

from __future__ import annotations

import os
import re
import sys
import threading
from contextlib import suppress
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Set, Tuple

from velodrome.guest.injected.giving import Giving
from velodrome.guest.injected.loops import is_awaited, running_loop
from velodrome.guest.injected.marks import is_guest, is_installed, is_standard

TOOK = "kept-connections"
OPEN = "_open"
"""Attribute of what is handed out: the connection, None once it is closed."""
LABELS = frozenset({"application_name"})
"""Arguments that only say who is connected: connections that differ in these are alike."""
DEFAULTS = {"row_factory": None, "text_factory": str}
"""Attributes of connections to SQLite that the next one is to have again."""

IN_MEMORY = ("", ":memory:", b":memory:")
"""Names of databases of SQLite that go with their connection."""


class Driver(NamedTuple):
    """A package that opens connections."""

    module: str
    """In which `connect` is defined, before others take it from there."""
    cls: str = ""
    """Of which `connect` is a class method; empty: it is a function of the module."""
    awaits: bool = False
    commits: bool = False
    """Whether a `with` block commits at its end."""
    closes: bool = True
    """Whether a `with` block closes at its end."""

    def replace_connect(
        self, module: Any, around: Callable[[Callable[..., Any]], Callable[..., Any]]
    ) -> None:
        """Have `connect` of its module be `around(connect)`; a class method has its class as first argument."""
        owner = getattr(module, self.cls) if self.cls else module
        usual = (
            bool(self.cls) and getattr(module, "connect", None) == owner.connect
        )  # psycopg's own name for it
        before = owner.__dict__["connect"]
        after = around(before.__func__ if self.cls else before)
        owner.connect = classmethod(after) if self.cls else after
        if usual:
            module.connect = owner.connect


DRIVERS = (
    Driver("sqlite3.dbapi2", commits=True, closes=False),
    Driver("psycopg2", commits=True, closes=False),
    Driver("psycopg", "Connection", commits=True),
    Driver("psycopg", "AsyncConnection", awaits=True, commits=True),
    Driver("pymysql"),
    Driver("MySQLdb"),
    Driver("asyncpg.connection", awaits=True),
    Driver("aiosqlite.core", awaits=True),
)


class Idle:
    """Connections that are not used now, each with what it was opened with."""

    def __init__(self, giving: Giving, most: int, driver: Optional[Driver] = None) -> None:
        self._giving, self._most = giving, most
        self._defaults = DEFAULTS if driver is not None and driver.module == "sqlite3.dbapi2" else {}
        self._kept: List[Tuple[Any, Any]] = []
        self._lock = threading.Lock()

    def take(self, key: Any) -> Any:
        """Return the last that was opened in the same way; None: there is none."""
        with self._lock:
            at = next((at for at in reversed(range(len(self._kept))) if self._kept[at][0] == key), None)
            found = self._kept.pop(at)[1] if at is not None else None
        if found is not None:
            self._giving.took(TOOK)
        return found

    def put(self, key: Any, connection: Any) -> Any:
        """Keep one; return what is to be closed in its place, where there are enough; else None."""
        if getattr(connection, "closed", False) is True:
            return None
        for name, value in self._defaults.items():
            setattr(connection, name, value)
        # A database serves so many connections, whatever they were opened with: the oldest makes room.
        with self._lock:
            self._kept.append((key, connection))
            return self._kept.pop(0)[1] if len(self._kept) > self._most else None

    def take_back(self, key: Any, connection: Any) -> Any:
        """Roll one back and keep it; return what is to be closed in its place: itself, where it is broken."""
        with suppress(Exception):
            connection.rollback()
            return self.put(key, connection)
        return connection


class _Handed:
    """A connection as the app has it: all is the connection's own, but the end."""

    def __init__(self, idle: Idle, key: Any, driver: Driver, connection: Any) -> None:
        vars(self).update({"_idle": idle, "_key": key, "_driver": driver, OPEN: connection})

    def __getattr__(self, name: str) -> Any:
        return getattr(vars(self)[OPEN], name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(vars(self)[OPEN], name, value)

    def _taken(self) -> Any:
        own = vars(self)
        connection, own[OPEN] = own[OPEN], None
        return connection


class Handed(_Handed):
    """As `_Handed`, of a driver that waits."""

    def __enter__(self) -> Any:
        return self

    def __exit__(self, kind: Optional[type], *_: object) -> None:
        driver = vars(self)["_driver"]
        if driver.commits:
            self.commit() if kind is None else self.rollback()
        if driver.closes:
            self.close()

    def close(self) -> None:
        """Give it back."""
        own, connection = vars(self), self._taken()
        if connection is None:
            return
        dropped = own["_idle"].take_back(own["_key"], connection)
        with suppress(Exception):  # the oldest may be of another thread, which SQLite minds
            if dropped is not None:
                dropped.close()

    def __del__(self) -> None:
        if not sys.is_finalizing():
            self.close()


class HandedLater(_Handed):
    """As `_Handed`, of a driver that is awaited: it may be opened only then."""

    def __init__(self, idle: Idle, key: Any, driver: Driver, opens: Callable[[], Any]) -> None:
        super().__init__(idle, key, driver, None)
        vars(self)["_opens"] = opens

    def __await__(self) -> Any:
        return self.__aenter__().__await__()

    async def __aenter__(self) -> Any:
        own = vars(self)
        if own[OPEN] is None:
            own[OPEN] = own["_idle"].take(own["_key"]) or await own["_opens"]()
        return self

    async def __aexit__(self, kind: Optional[type], *_: object) -> None:
        if vars(self)["_driver"].commits:
            await (self.commit() if kind is None else self.rollback())
        await self.close()

    async def close(self, **more: Any) -> None:
        """Give it back."""
        own, connection = vars(self), self._taken()
        if connection is None:
            return
        with suppress(Exception):  # a broken one is closed
            if hasattr(connection, "rollback"):
                await connection.rollback()
            else:  # asyncpg's, whose pool does this as well
                await connection.reset()
            connection = own["_idle"].put(own["_key"], connection)
        with suppress(Exception):
            if connection is not None:
                await connection.close(**more)


def keep(giving: Giving, count: int) -> None:
    """Have so many connections of each kind kept: SQLAlchemy's, Django's, redis-py's, and those that the app opens."""
    giving.finder.after("sqlalchemy.pool.base", lambda module: _keep_recycled(giving, module))
    giving.finder.after("sqlalchemy.pool.impl", lambda module: _keep_sqlalchemy(giving, count, module))
    giving.finder.after("sqlalchemy.engine.create", lambda module: _keep_engines(giving, module))
    contexts = RequestContexts(Idle(giving, 2 * count))
    giving.finder.after("asgiref.sync", contexts.watch)
    giving.finder.after("django.db.backends.base.base", lambda module: _keep_django(giving, contexts, module))
    giving.finder.after("peewee", lambda module: _keep_peewee(Idle(giving, count), module))
    giving.finder.after("redis.connection", lambda module: _keep_redis(giving, module))
    giving.finder.after("redis.asyncio.connection", lambda module: _keep_redis(giving, module))
    for driver in DRIVERS:
        giving.finder.after(driver.module, _patch_of(giving, driver, count))


def _keep_sqlalchemy(giving: Giving, count: int, module: Any) -> None:
    """Have `NullPool` be a pool of so many."""
    waits = getattr(module, "AsyncAdaptedQueuePool", module.QueuePool)
    knows = ("recycle", "echo", "logging_name", "reset_on_return", "events", "dialect", "pre_ping")

    def new(cls: Any, creator: Any, **named: Any) -> Any:
        giving.took(TOOK)
        kept = {name: named[name] for name in (*knows, "_dispatch") if name in named}
        is_async = getattr(named.get("dialect"), "is_async", False)
        return (waits if is_async else module.QueuePool)(creator, pool_size=count, max_overflow=count, **kept)

    # What is returned is no NullPool, so that its own `__init__` is not called.
    module.NullPool.__new__ = new


RECYCLED_S = 60.0
"""A connection that SQLAlchemy's pool opens anew after less than this is hardly kept."""


def _keep_recycled(giving: Giving, module: Any) -> None:
    """Have pools keep connections for good that were to be opened anew at once, or after some seconds."""
    before = module.Pool.__init__

    def init(self: Any, creator: Any, recycle: float = -1, *args: Any, **named: Any) -> None:
        if 0 <= recycle < RECYCLED_S:
            recycle = -1
            giving.took(TOOK)
        before(self, creator, recycle, *args, **named)

    module.Pool.__init__ = init


def _keep_engines(giving: Giving, create: Any) -> None:
    """Have engines that are made alike be one, once the app is warm; it is not disposed of by the app then."""
    making = create.create_engine
    made: Dict[Any, Any] = {}
    is_warm = giving.warmth()

    def create_engine(url: Any, **named: Any) -> Any:
        # An engine of asyncio is bound to its loop, a forked process has none of its parent's connections.
        try:
            key = (os.getpid(), id(running_loop()), str(url), repr(sorted(named.items())))
        except Exception:
            return making(url, **named)
        if key not in made or not is_warm:  # at the start an app may make several that are alike
            made[key] = making(url, **named)
            closing = made[key].dispose

            def dispose(*args: Any, **more: Any) -> None:
                if is_warm:
                    giving.took(TOOK)
                else:
                    closing(*args, **more)

            made[key].dispose = dispose
        else:
            giving.took(TOOK)
        return made[key]

    create.create_engine = create_engine


def _keep_redis(giving: Giving, module: Any) -> None:
    """Have connections of pools of redis-py that are given up be those of the next pool that is made alike."""
    cls = module.ConnectionPool
    makes, ends = cls.make_connection, cls.disconnect
    idle: Dict[Any, List[Any]] = {}
    is_warm = giving.warmth()

    def key_of(pool: Any) -> Any:
        given = pool.connection_kwargs
        if not is_warm or given.get("credential_provider") is not None:
            return None
        # Objects that are made for each pool, such as how to try again, differ in nothing but where they are.
        text = _ADDRESS.sub("", repr(sorted(given.items())))
        return os.getpid(), id(running_loop()), pool.connection_class, text

    def keep_available(pool: Any) -> bool:
        key = key_of(pool)
        if key is None:
            return False
        kept = idle.setdefault(key, [])
        while pool._available_connections:
            kept.append(pool._available_connections.pop())
        return True

    def make_connection(self: Any) -> Any:
        kept = idle.get(key_of(self))
        if not kept:
            return makes(self)
        giving.took(TOOK)
        return kept.pop()

    def disconnect(self: Any, *args: Any, **named: Any) -> None:
        if not keep_available(self):
            ends(self, *args, **named)

    async def disconnect_later(self: Any, *args: Any, **named: Any) -> None:
        if not keep_available(self):
            await ends(self, *args, **named)

    def is_gone(self: Any) -> None:
        if not sys.is_finalizing() and hasattr(self, "_available_connections"):
            keep_available(self)

    cls.make_connection = make_connection
    cls.disconnect = disconnect_later if is_awaited(ends) else disconnect
    cls.__del__ = is_gone


_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")


class RequestContexts:
    """Connections of Django in a context of their own for each request, as under ASGI: handed on to the next.

    They are open still when the request is over, and no later one finds them, whatever `CONN_MAX_AGE` says.
    """

    def __init__(self, idle: Idle) -> None:
        self._idle = idle
        self._context: Callable[[], Any] = lambda: None
        self._wrappers: Dict[int, List[Any]] = {}
        """Those that connected in a context, by its id."""

    def watch(self, module: Any) -> None:
        """Have what is open at the end of a context handed on."""
        current = module.SyncToAsync.thread_sensitive_context
        self._context = lambda: current.get(None)
        leave = module.ThreadSensitiveContext.__aexit__

        async def leave_and_hand_on(context: Any, *exc: Any) -> Any:
            try:
                return await leave(context, *exc)
            finally:
                for wrapper in self._wrappers.pop(id(context), ()):
                    self._hand_on(wrapper)

        module.ThreadSensitiveContext.__aexit__ = leave_and_hand_on

    def connect(self, wrapper: Any, connecting: Callable[[Any], Any]) -> Any:
        """Connect, by a connection that another request left if there is one."""
        context = self._context()
        if context is None or getattr(wrapper, "is_in_memory_db", bool)():
            return connecting(wrapper)
        self._wrappers.setdefault(id(context), []).append(wrapper)
        left = self._idle.take(self._key(wrapper))
        if left is None:
            return connecting(wrapper)
        wrapper.get_new_connection = lambda params: left
        try:
            return connecting(wrapper)
        finally:
            del wrapper.get_new_connection

    def _hand_on(self, wrapper: Any) -> None:
        unclean = wrapper.in_atomic_block or wrapper.errors_occurred or wrapper.needs_rollback
        if wrapper.connection is None or unclean or not wrapper.autocommit:
            return
        left, wrapper.connection = wrapper.connection, None
        beyond = self._idle.put(self._key(wrapper), left)
        if beyond is not None:
            beyond.close()

    def _key(self, wrapper: Any) -> Any:
        return os.getpid(), wrapper.vendor, wrapper.alias


def _keep_django(giving: Giving, contexts: RequestContexts, module: Any) -> None:
    """Have connections stay open, also where the app closes them once it is warm; those of a pool are kept by that."""
    wrapper = module.BaseDatabaseWrapper
    before, closing, looking = wrapper.connect, wrapper.close, wrapper.close_if_unusable_or_obsolete
    opened: Dict[int, int] = {}  # by the connection's id, in which process
    decides: Set[int] = set()
    is_warm = giving.warmth()

    def connect(self: Any) -> Any:
        if (self.settings_dict.get("OPTIONS") or {}).get("pool"):
            return before(self)
        if self.settings_dict.get("CONN_MAX_AGE") == 0:
            self.settings_dict["CONN_MAX_AGE"] = None
            giving.took(TOOK)
        found = contexts.connect(self, before)
        opened[id(self)] = os.getpid()
        return found

    def close_if_unusable_or_obsolete(self: Any) -> None:
        decides.add(id(self))
        try:
            looking(self)
        finally:
            decides.discard(id(self))

    def close(self: Any) -> None:
        """Close what Django itself finds to be closed, and no more: the app's own calls come between."""
        clean = not (self.in_atomic_block or self.errors_occurred or self.needs_rollback)
        mine = opened.get(id(self)) == os.getpid() and self.connection is not None and self.get_autocommit()
        if clean and mine and id(self) not in decides and is_warm:
            giving.took(TOOK)
            self.run_on_commit = []
            return
        closing(self)

    wrapper.connect, wrapper.close = connect, close
    wrapper.close_if_unusable_or_obsolete = close_if_unusable_or_obsolete


def _keep_peewee(idle: Idle, module: Any) -> None:
    """Have databases of peewee, which open a connection for each `connect`, take one that was closed before."""

    def key_of(database: Any) -> Any:
        thread = threading.get_ident() if isinstance(database, module.SqliteDatabase) else 0
        return os.getpid(), thread, id(database)

    def taking(opens: Callable[..., Any]) -> Callable[..., Any]:
        def connect(self: Any) -> Any:
            return idle.take(key_of(self)) or opens(self)

        return connect

    closes = module.Database._close

    def close(self: Any, connection: Any) -> None:
        in_memory = self.database in IN_MEMORY
        dropped = connection if in_memory else idle.take_back(key_of(self), connection)
        if dropped is not None:
            closes(self, dropped)

    for cls in (module.SqliteDatabase, module.PostgresqlDatabase, module.MySQLDatabase):
        cls._connect = taking(cls._connect)
    module.Database._close = close


def _patch_of(giving: Giving, driver: Driver, count: int) -> Callable[[Any], None]:
    idle = Idle(giving, count, driver)

    def around(before: Callable[..., Any]) -> Callable[..., Any]:
        def connect(*args: Any, **named: Any) -> Any:
            alike = tuple(sorted(item for item in named.items() if item[0] not in LABELS))
            key = (os.getpid(), _place(driver), args, alike)
            if not _called_by_app(sys._getframe(1)) or _is_in_memory(driver, args, named):
                return before(*args, **named)
            if driver.awaits:
                return HandedLater(idle, key, driver, lambda: before(*args, **named))
            return Handed(idle, key, driver, idle.take(key) or before(*args, **named))

        return connect

    return lambda module: driver.replace_connect(module, around)


def _place(driver: Driver) -> int:
    """Return what a connection must not leave: of SQLite its thread, of what is awaited its event loop."""
    if not driver.awaits:
        return threading.get_ident() if "sqlite" in driver.module else 0
    import asyncio

    return id(asyncio.get_event_loop())


def _is_in_memory(driver: Driver, args: Tuple[Any, ...], named: Dict[str, Any]) -> bool:
    """Whether what is opened is a database of SQLite of its own, which is empty each time."""
    if "sqlite" not in driver.module:
        return False
    name = args[0] if args else named.get("database")
    return name in IN_MEMORY or "mode=memory" in str(name)


def _called_by_app(frame: Any) -> bool:
    while frame is not None and is_guest(frame.f_code.co_filename):
        frame = frame.f_back
    file = frame.f_code.co_filename if frame is not None else ""
    return not (is_installed(file) or is_standard(file))
