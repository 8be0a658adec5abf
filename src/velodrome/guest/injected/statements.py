"""Statements that an app sends to its databases, whichever library sends them: each is followed from begin to end.

    follow(giving.finder, begun)     # begun("SELECT name FROM orders WHERE id = ?") -> what to call when it has ended

A library that sends its statements through another one (SQLAlchemy through asyncpg) is followed where the app meets it,
and not a second time below. `executemany` is one statement however many rows it has, and is not followed.
"""

from __future__ import annotations

import re
from contextvars import ContextVar
from functools import lru_cache, wraps
from types import ModuleType
from typing import Any, Callable, Optional, Tuple

from velodrome.guest.injected.importing import Finder

Ended = Callable[[], Any]
Begun = Callable[[str], Optional[Ended]]
TextOf = Callable[[Tuple[Any, ...]], str]
TEXT = 160
"""Characters kept of a statement."""
COROUTINE = 0x80
"""Flag of the code of an `async def`: CO_COROUTINE."""
_VALUES = re.compile(r"'(?:[^']|'')*'|\b\d+(?:\.\d+)?\b|%\(\w+\)s|%s|\$\d+|(?<!:):\w+|\?")
_LISTS = re.compile(r"\(\s*\?(?:\s*,\s*\?)+\s*\)")
_PARTS_OF_KEY = re.compile(r"(?<![^:./-])[^:./-]*[\d@][^:./-]*")
_inside: ContextVar[bool] = ContextVar("velodrome_inside_statement", default=False)


def follow(finder: Finder, begun: Begun) -> None:
    """Have `begun` called before each statement, without its values, and after it what that returned."""

    def method(module: str, cls: str, *names: str, text_of: TextOf = lambda args: _sql(args[0])) -> None:
        def patch(found: ModuleType) -> None:
            owner = getattr(found, cls, None)
            for name in names:
                before = owner.__dict__.get(name) if owner is not None else None
                if before is not None:
                    setattr(owner, name, _followed(before, text_of, begun))

        finder.after(module, patch)

    def second(args: Tuple[Any, ...]) -> str:
        return _sql(args[1])  # behind the cursor

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
    method("aiosqlite.core", "Connection", "execute", "execute_fetchall")
    method("aiosqlite.cursor", "Cursor", "execute")
    method("redis.client", "Redis", "execute_command", text_of=_command)
    method("redis.asyncio.client", "Redis", "execute_command", text_of=_command)

    @lru_cache(maxsize=None)
    def followed(before: Callable[..., Any]) -> Callable[..., Any]:
        return _followed(before, lambda args: _sql(args[0]), begun)

    in_sqlite(finder, lambda before, *args: followed(before)(*args))


def _followed(before: Callable[..., Any], text_of: TextOf, begun: Begun) -> Callable[..., Any]:
    def begin(args: Tuple[Any, ...]) -> Optional[Ended]:
        ended = None if _inside.get() or not args else begun(text_of(args))
        if ended is not None:
            _inside.set(True)
        return ended

    def end(ended: Optional[Ended]) -> None:
        if ended is not None:
            _inside.set(False)
            ended()

    @wraps(before)
    async def awaited(self: Any, *args: Any, **named: Any) -> Any:
        ended = begin(args)
        try:
            return await before(self, *args, **named)
        finally:
            end(ended)

    @wraps(before)
    def called(self: Any, *args: Any, **named: Any) -> Any:
        ended = begin(args)
        try:
            return before(self, *args, **named)
        finally:
            end(ended)

    code = getattr(before, "__code__", None)
    return awaited if code is not None and code.co_flags & COROUTINE else called


@lru_cache(maxsize=1000)
def shape(statement: str) -> str:
    """Return a statement of SQL without its values, so that those that differ in these alone are the same."""
    text = " ".join(statement[: 8 * TEXT].split())
    return _LISTS.sub("(?)", _VALUES.sub("?", text))[:TEXT]


def _sql(statement: Any) -> str:
    if isinstance(statement, bytes):
        statement = statement.decode("utf-8", "replace")
    return shape(str(statement))


def _command(args: Tuple[Any, ...]) -> str:
    """Return a command of Redis and its key, without the parts of this that name one thing among many."""
    words = [word.decode("utf-8", "replace") if isinstance(word, bytes) else str(word) for word in args[:2]]
    return _command_of(*words)


@lru_cache(maxsize=1000)
def _command_of(name: str, key: str = "") -> str:
    return ("%s %s" % (name.upper(), _PARTS_OF_KEY.sub("?", key[:TEXT]))).strip()


FACTORY = 5
"""Place of `factory` among the arguments of `sqlite3.connect`."""


def in_sqlite(
    finder: Finder, execute: Callable[..., Any], connected: Callable[[Any], Any] = lambda connection: None
) -> None:
    """Have `execute` called in the place of `execute` of cursors of `sqlite3`, and `connected` with new connections.

    It is called with the method that it stands for, the cursor, and the arguments. The classes are in C: connections
    and cursors get some that are derived from those that the app names.
    """

    def patch(module: Any) -> None:
        before = module.connect

        # A class for each that the app uses, not for each connection: it may open one for each request.
        @lru_cache(maxsize=None)
        def cursor_of(usual: Any) -> Any:
            class Cursor(usual):  # type: ignore[misc]
                def execute(self, *args: Any) -> Any:
                    return execute(usual.execute, self, *args)

            return Cursor

        @lru_cache(maxsize=None)
        def connection_of(usual: Any) -> Any:
            class Connection(usual):  # type: ignore[misc]
                def cursor(self, factory: Any = module.Cursor) -> Any:
                    return super().cursor(cursor_of(factory) if isinstance(factory, type) else factory)

                def execute(self, *args: Any) -> Any:
                    return self.cursor().execute(*args)

            return Connection

        def connect(*args: Any, **more: Any) -> Any:
            factory = more.get("factory", module.Connection)
            if len(args) <= FACTORY and isinstance(factory, type):
                more["factory"] = connection_of(factory)
            found = before(*args, **more)
            connected(found)
            return found

        module.connect = connect

    finder.after("sqlite3.dbapi2", patch)  # `sqlite3` takes it from there
