"""Statements that an app sends to its databases, whichever library sends them: each is followed from begin to end.

    follow(giving.finder, timer)     # timer("SELECT name FROM orders WHERE id = ?") -> a Timer, or None

A timer runs while the statement is sent and answered. Of `sqlite3` it also runs while rows are read: they are looked
for then, and not before.

That a connection is opened is followed as a statement, `OPENING`.

A library that sends its statements through another one (SQLAlchemy through asyncpg) is followed where the app meets it,
and not a second time below. `executemany` is one statement however many rows it has, and is not followed.
"""

from __future__ import annotations

import re
import time
from contextvars import ContextVar
from functools import lru_cache, wraps
from types import ModuleType
from typing import Any, Callable, Mapping, Optional, Tuple

from velodrome.guest.injected.connections import DRIVERS, Driver
from velodrome.guest.injected.giving import Giving, Treatments, sleep
from velodrome.guest.injected.importing import Finder
from velodrome.guest.injected.loops import is_awaited


class Timer:
    """Runs while one statement does; it may run several times. This one does nothing."""

    longer_s = 0.0
    """For how long what sent the statement is to wait before it goes on; seconds."""

    def begin(self) -> None:
        """Run."""

    def end(self) -> None:
        """Stop."""


TimerOf = Callable[[str], Optional[Timer]]
"""Called with a normalized statement that begins; None: it is not followed."""
TextOf = Callable[[Tuple[Any, ...]], str]
"""Returns the normalized statement, given the arguments of what sends it; empty: it sends none."""
OPENING = "CONNECT"
TEXT = 300
"""Characters kept of a statement."""
_VALUES = re.compile(r"'(?:[^']|'')*'|\b\d+(?:\.\d+)?\b|%\(\w+\)s|%s|\$\d+|(?<!:):\w+|\?")
_LISTS = re.compile(r"\(\s*\?(?:\s*,\s*\?)+\s*\)")
_PARTS_OF_KEY = re.compile(r"(?<![^:./-])[^:./-]*[\d@][^:./-]*")
_inside: ContextVar[Optional[Timer]] = ContextVar("velodrome_inside_statement", default=None)


def follow(finder: Finder, timer_of: TimerOf) -> None:
    """Have a timer run with each statement."""

    def method(module: str, cls: str, *names: str, text_of: TextOf = _first) -> None:
        def patch(found: ModuleType) -> None:
            owner = getattr(found, cls, None)
            for name in names:
                before = owner.__dict__.get(name) if owner is not None else None
                if before is not None:
                    setattr(owner, name, _followed(before, text_of, timer_of))

        finder.after(module, patch)

    def second(args: Tuple[Any, ...]) -> str:
        return _sql(args[1]) if len(args) > 1 else ""  # behind the cursor

    method(
        "sqlalchemy.engine.default", "DefaultDialect", "do_execute", "do_execute_no_params", text_of=second
    )
    method("django.db.backends.utils", "CursorWrapper", "execute")
    method("psycopg.cursor", "Cursor", "execute")
    method("psycopg.cursor_async", "AsyncCursor", "execute")
    method("asyncpg.connection", "Connection", "execute", "fetch", "fetchrow", "fetchval")
    method("pymysql.cursors", "Cursor", "execute")
    method("MySQLdb.cursors", "BaseCursor", "execute")
    method("aiomysql.cursors", "Cursor", "execute")
    # All that is done in its thread; what it returns to be awaited is no coroutine.
    method("aiosqlite.core", "Connection", "_execute", text_of=_executed_there)
    method("aiosqlite.core", "Connection", "_connect", text_of=lambda args: OPENING)
    method("pymysql.connections", "Connection", "connect", text_of=lambda args: OPENING)
    for driver in DRIVERS:
        if driver.module not in FOLLOWED_OTHERWISE:
            finder.after(driver.module, _opens(driver, timer_of))
    method("redis.client", "Redis", "execute_command", text_of=_command)
    method("redis.asyncio.client", "Redis", "execute_command", text_of=_command)

    @lru_cache(maxsize=None)
    def followed(before: Callable[..., Any]) -> Callable[..., Any]:
        return _followed(before, _first, timer_of)

    def opened(connect: Callable[[], Any]) -> Any:
        return _followed(lambda _: connect(), lambda args: OPENING, timer_of)(None)

    in_sqlite(finder, lambda before, *args: followed(before)(*args), opened, reads=True)


FOLLOWED_OTHERWISE = frozenset({"sqlite3.dbapi2", "aiosqlite.core", "pymysql"})
"""Drivers whose connections are followed by something else than their `connect`."""


def _opens(driver: Driver, timer_of: TimerOf) -> Callable[[ModuleType], None]:
    def around(before: Callable[..., Any]) -> Callable[..., Any]:
        def waits(_: Any, *args: Any, **named: Any) -> Any:
            return before(*args, **named)

        async def later(_: Any, *args: Any, **named: Any) -> Any:
            return await before(*args, **named)

        followed = _followed(later if driver.awaits else waits, lambda args: OPENING, timer_of)

        @wraps(before)
        def connect(*args: Any, **named: Any) -> Any:
            return followed(None, *args, **named)

        return connect

    return lambda module: driver.replace_connect(module, around)


def _followed(before: Callable[..., Any], text_of: TextOf, timer_of: TimerOf) -> Callable[..., Any]:
    def begin(args: Tuple[Any, ...]) -> Optional[Timer]:
        normalized = text_of(args) if _inside.get() is None else ""
        timer = timer_of(normalized) if normalized else None
        if timer is not None:
            _inside.set(timer)
            timer.begin()
        return timer

    def end(timer: Optional[Timer]) -> None:
        if timer is not None:
            timer.end()
            _inside.set(None)

    @wraps(before)
    async def awaited(self: Any, *args: Any, **named: Any) -> Any:
        timer = begin(args)
        try:
            found = await before(self, *args, **named)
        finally:
            end(timer)
        if timer is not None and timer.longer_s:
            await _wait_on_loop(timer.longer_s)
        return found

    @wraps(before)
    def called(self: Any, *args: Any, **named: Any) -> Any:
        timer = begin(args)
        try:
            found = before(self, *args, **named)
        finally:
            end(timer)
        if timer is not None and timer.longer_s:
            _wait(timer.longer_s)
        return found

    return awaited if is_awaited(before) else called


SPUN_S = 0.001
"""What is shorter is computed away: a sleep of so little takes much longer."""


def _wait(seconds: float) -> None:
    until = time.perf_counter() + seconds
    if seconds > SPUN_S:
        sleep(seconds)
    while time.perf_counter() < until:
        pass


async def _wait_on_loop(seconds: float) -> None:
    if seconds > SPUN_S:
        import asyncio

        await asyncio.sleep(seconds)
    else:
        _wait(seconds)


@lru_cache(maxsize=1000)
def normalize(statement: str) -> str:
    """Return a statement of SQL without its values, so that those that differ in these alone are the same."""
    text = " ".join(statement[: 8 * TEXT].split())
    return _LISTS.sub("(?)", _VALUES.sub("?", text))[:TEXT]


def _sql(statement: Any) -> str:
    if isinstance(statement, bytes):
        statement = statement.decode("utf-8", "replace")
    return normalize(str(statement))


def _first(args: Tuple[Any, ...]) -> str:
    return _sql(args[0]) if args else ""


def _executed_there(args: Tuple[Any, ...]) -> str:
    name = getattr(args[0], "__name__", "") if len(args) > 1 else ""
    return _sql(args[1]) if name in ("execute", "_execute_insert", "_execute_fetchall") else ""


def _command(args: Tuple[Any, ...]) -> str:
    """Return a command of Redis and its key, without the parts of this that name one thing among many."""
    words = [word.decode("utf-8", "replace") if isinstance(word, bytes) else str(word) for word in args[:2]]
    return _command_of(*words) if words else ""


@lru_cache(maxsize=1000)
def _command_of(name: str, key: str = "") -> str:
    return ("%s %s" % (name.upper(), _PARTS_OF_KEY.sub("?", key[:TEXT]))).strip()


FACTORY = 5
"""Place of `factory` among the arguments of `sqlite3.connect`."""


def in_sqlite(
    finder: Finder,
    execute: Callable[..., Any],
    connected: Callable[[Callable[[], Any]], Any] = lambda connect: connect(),
    *,
    script: Callable[[str], str] = lambda statements: statements,
    reads: bool = False,
) -> None:
    """Have `execute` called in the place of `execute` of cursors of `sqlite3`, and `connected` in that of `connect`.

    `execute` is called with the method that it stands for, the cursor, and the arguments; `connected` with what opens
    the connection, and returns it. `script` returns what is sent in the place of a script. With `reads` the timer of a
    statement also runs while its rows are read. The classes are in C: connections and cursors get some that are derived
    from those that the app names.
    """

    def patch(module: Any) -> None:
        before = module.connect

        # A class for each that the app uses, not for each connection: it may open one for each request.
        @lru_cache(maxsize=None)
        def cursor_of(usual: Any) -> Any:
            def executed(self: Any, *args: Any) -> Any:
                self.timer = _inside.get()
                return usual.execute(self, *args)

            class Cursor(usual):  # type: ignore[misc]
                timer: Optional[Timer] = None

                def execute(self, *args: Any) -> Any:
                    return execute(executed, self, *args)

                def executescript(self, statements: str) -> Any:
                    return super().executescript(script(statements))

            for name in READS if reads else ():
                setattr(Cursor, name, _reading(getattr(usual, name)))
            return Cursor

        @lru_cache(maxsize=None)
        def connection_of(usual: Any) -> Any:
            class Connection(usual):  # type: ignore[misc]
                def cursor(self, factory: Any = module.Cursor) -> Any:
                    return super().cursor(cursor_of(factory) if isinstance(factory, type) else factory)

                def execute(self, *args: Any) -> Any:
                    return self.cursor().execute(*args)

                def executescript(self, statements: str) -> Any:
                    return self.cursor().executescript(statements)

            return Connection

        def connect(*args: Any, **more: Any) -> Any:
            factory = more.get("factory", module.Connection)
            if len(args) <= FACTORY and isinstance(factory, type):
                more["factory"] = connection_of(factory)
            return connected(lambda: before(*args, **more))

        module.connect = connect

    finder.after("sqlite3.dbapi2", patch)  # `sqlite3` takes it from there


READS = ("fetchone", "fetchmany", "fetchall", "__next__")


def _reading(before: Callable[..., Any]) -> Callable[..., Any]:
    """Return a method that reads rows, beside which the timer of their statement runs."""

    def read(self: Any, *args: Any, **named: Any) -> Any:
        timer = self.timer
        if timer is None or _inside.get() is not None:
            return before(self, *args, **named)
        timer.begin()
        try:
            return before(self, *args, **named)
        finally:
            timer.end()

    return read


_BEGIN = re.compile(r"((?:^|;)\s*BEGIN)(?:\s+DEFERRED)?(?:\s+TRANSACTION)?\s*(?=;|$)", re.IGNORECASE)
_TIMEOUT = re.compile(r"(\bPRAGMA\s+(?:\w+\s*\.\s*)?busy_timeout\s*[=(]\s*)\d+", re.IGNORECASE)


def _sqlite_waits(giving: Giving, seconds: float) -> None:
    """Have connections of `sqlite3` wait so long for a lock, and transactions take theirs when they begin.

    A transaction that has read something and then writes is refused at once where another one has written since: to
    wait would not help it.
    """
    waits_ms = round(1000 * seconds)

    @lru_cache(maxsize=1000)
    def treated(statements: str) -> str:
        return _BEGIN.sub(r"\1 IMMEDIATE", _TIMEOUT.sub(r"\g<1>%d" % waits_ms, statements))

    def execute(before: Callable[..., Any], cursor: Any, statement: str, *values: Any) -> Any:
        return before(cursor, treated(statement), *values)

    def connected(connect: Callable[[], Any]) -> Any:
        giving.took("sqlite-waits")
        connection = connect()
        connection.execute("PRAGMA busy_timeout = %d" % waits_ms)
        return connection

    in_sqlite(giving.finder, execute, connected, script=treated)


def _statements_longer(giving: Giving, longer_s: Mapping[str, float]) -> None:
    """Have statements, given without their values, take so many seconds longer."""

    def timer_of(normalized: str) -> Optional[Timer]:
        if normalized not in longer_s:
            return None
        giving.took("statements-longer")
        timer = Timer()
        timer.longer_s = longer_s[normalized]
        return timer

    follow(giving.finder, timer_of)


TREATMENTS: Treatments = {"sqlite-waits": _sqlite_waits, "statements-longer": _statements_longer}
