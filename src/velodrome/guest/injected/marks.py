"""What a thread is busy with, by the files and functions on its stack.

    busy_with(frame)                -> {"logging": the frame of Logger.info}
    called_from(that frame, own)    -> the frame in the app's own code that called it

A mark counts anywhere on the stack where its functions do nothing else; one that calls the rest of the app (middleware,
tracing) counts only where the thread is in its own code, or in what that calls.
"""

from __future__ import annotations

import os
from types import FrameType
from typing import Callable, Dict, FrozenSet, NamedTuple, Optional, Set, Tuple

from velodrome.guest.injected import building

STANDARD = os.path.dirname(os.path.abspath(os.__file__)) + os.sep
_GUEST = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_INSTALLED = ("%ssite-packages%s" % (os.sep, os.sep), "%sdist-packages%s" % (os.sep, os.sep))


class Mark(NamedTuple):
    """Code that a thread may be in."""

    name: str
    file: str
    """Part of its path, with slashes."""
    functions: FrozenSet[str] = frozenset()
    """Empty: all."""
    calls_app: bool = False
    """Whether the rest of the app runs inside it."""
    waits_in: str = ""
    """Part of the path of code that it waits in for others: it is then not busy with what is named."""


def _of(*functions: str) -> FrozenSet[str]:
    return frozenset(functions)


MARKS = (
    Mark("logging", "/logging/__init__.py"),
    Mark("compression", "/gzip.py", _of("write", "compress", "close", "apply_compression")),
    Mark("compression", "/aiohttp/compression_utils.py"),
    Mark("compression", "/flask_compress/flask_compress.py", _of("compress")),
    Mark("compression", "/flask_compress.py", _of("compress")),
    Mark("compression", "/django/utils/text.py", _of("compress_string", "compress_sequence")),
    Mark("compression", "/brotli_asgi/__init__.py", calls_app=True),
    Mark("tls-context", "/ssl.py", _of("create_default_context", "load_default_certs")),
    Mark("tls-context", "/urllib3/util/ssl_.py", _of("create_urllib3_context", "ssl_wrap_socket")),
    Mark("tls-context", "/httpx/_config.py"),
    Mark("validation", "/fastapi/routing.py", _of("serialize_response", "_prepare_response_content")),
    Mark("base-middleware", "/starlette/middleware/base.py", calls_app=True),
    Mark("telemetry", "/opentelemetry/", calls_app=True),
    Mark("telemetry", "/sentry_sdk/", calls_app=True),
    # What ends a span or sends it is that, whoever's exporter it calls and whatever client that uses.
    Mark("telemetry", "/opentelemetry/sdk/", _of("on_end", "export", "emit", "on_emit", "force_flush")),
    Mark("telemetry", "/opentelemetry/exporter/"),
    Mark("telemetry", "/sentry_sdk/client.py", _of("capture_event")),
    Mark("telemetry", "/sentry_sdk/transport.py"),
    Mark("sync-to-async", "/asgiref/sync.py", _of("thread_handler")),
    Mark("resolving", "/socket.py", _of("getaddrinfo")),
    Mark("connecting", "/sqlalchemy/pool/base.py", _of("__connect")),
    Mark("connecting", "/django/db/backends/base/base.py", _of("connect")),
    Mark("connecting", "/velodrome/guest/injected/statements.py", _of("connect")),  # sqlite3's, which is in C
    Mark("connecting", "/aiosqlite/core.py", _of("_connect", "__await__")),
    Mark("connecting", "/asyncpg/connection.py", _of("connect")),
    Mark("connecting", "/psycopg2/__init__.py", _of("connect")),
    Mark("connecting", "/psycopg/connection.py", _of("connect")),
    Mark("connecting", "/psycopg/connection_async.py", _of("connect")),
    Mark("connecting", "/pymysql/connections.py", _of("connect", "__init__")),
    Mark("connecting", "/MySQLdb/__init__.py", _of("Connect")),
    Mark("connecting", "/redis/connection.py", _of("connect", "connect_check_health", "on_connect")),
    Mark("connecting", "/redis/asyncio/connection.py", _of("connect", "connect_check_health", "on_connect")),
    Mark("dialling", "/urllib3/connection.py", _of("connect", "_new_conn")),
    Mark("dialling", "/urllib3/poolmanager.py", _of("_new_pool")),
    # A pool of the app's own may do more for a new connection, such as signing on.
    Mark("dialling", "/urllib3/connectionpool.py", _of("_get_conn"), waits_in="/queue.py"),
    *(
        Mark(
            "httpcore-search",
            "/httpcore/%s/connection_pool.py" % kind,
            _of("_assign_requests_to_connections"),
        )
        for kind in ("_async", "_sync")
    ),
    *(
        Mark("database", "/%s" % part)
        for part in (
            "sqlalchemy/",
            "django/db/",
            "peewee.py",
            "asyncpg/",
            "psycopg/",
            "pymysql/",
            "MySQLdb/",
            "aiomysql/",
            "aiosqlite/",
            "redis/",
        )
    ),
    *(
        Mark(building.MARK % builder.kind, builder.file, _of(builder.function))
        for builder in building.BUILDERS
    ),
    # The search for a module: one that was imported before is not looked for.
    Mark("importing", "<frozen importlib._bootstrap>", _of("_find_spec")),
)
OWN = "own code"
"""Of the app, as if it were a mark: whatever a thread is in, the innermost line of it that is on the stack."""
BACKGROUND = "background"
"""Threads that the app's own code starts to run its own code, as if it were a mark: for how long they compute."""
NEAREST = ("importing",)
"""Marks whose nearest caller is named: the line of whichever package, and not the app's own behind it."""
LOOP = "watched"
"""The function of velodrome's in which event loops run."""
WAITS = (
    Mark("connector", "/aiohttp/connector.py", _of("connect", "_wait_for_available_connection")),
    Mark("httpcore-pool", "/httpcore/_async/connection_pool.py", _of("wait_for_connection")),
    Mark("resolver", "/aiohttp/connector.py", _of("_resolve_host")),
    Mark("async-session", "/sqlalchemy/ext/asyncio/"),
)
"""What a task that waits is in."""
BETWEEN = ("/anyio/", "/sniffio/", "/contextlib.py")
"""Code that works for whoever calls it, as the standard library does."""

_known: Dict[Tuple[str, str], Tuple[Mark, ...]] = {}


def busy_with(frame: Optional[FrameType]) -> Dict[str, FrameType]:
    """Return the names of what the thread with this innermost frame is in, each with the outermost frame of it."""
    found: Dict[str, FrameType] = {}
    inner, outermost = True, ()  # type: bool, Tuple[Mark, ...]
    last: Optional[FrameType] = None
    inside: Set[str] = set()
    while frame is not None:
        file = frame.f_code.co_filename
        marks = _marks(file, frame.f_code.co_name)
        for mark in marks:
            waits = mark.waits_in and any(mark.waits_in in path for path in inside)
            if mark.name in found or ((inner or not mark.calls_app) and not waits):
                found[mark.name] = frame
        inside.add(file)
        if marks or not _between(file):
            inner, outermost, last = False, marks, frame
        frame = frame.f_back
    # A thread of its own, such as one that sends what was recorded.
    for mark in outermost:
        if last is not None:
            found[mark.name] = last
    return found


def called_from(name: str, frame: FrameType, is_own: Callable[[str], bool]) -> Optional[FrameType]:
    """Return the frame that called what a mark stands for, of which `frame` is the outermost; None: no such code did.

    That is the innermost of the app's own, or without any the nearest that is not of the standard library. Who runs the
    event loop (`LOOP`) has not called it.
    """
    nearest, outer = None, frame.f_back
    while outer is not None:
        file = outer.f_code.co_filename
        if is_own(file):
            return outer
        if is_guest(file) and outer.f_code.co_name == LOOP:
            return nearest
        if nearest is None and not (is_guest(file) or _between(file)):
            if name in NEAREST:
                return outer
            nearest = outer
        outer = outer.f_back
    return nearest


def own_line(frame: Optional[FrameType], is_own: Callable[[str], bool]) -> Optional[FrameType]:
    """Return the innermost frame of the app's own code."""
    while frame is not None and not is_own(frame.f_code.co_filename):
        frame = frame.f_back
    return frame


def waits_in(file: str, function: str) -> Set[str]:
    """Return the names of what a task is in that waits in such a function, or in what that awaits."""
    path = file.replace(os.sep, "/")
    return {
        wait.name
        for wait in WAITS
        if wait.file in path and (not wait.functions or function in wait.functions)
    }


def is_standard(file: str) -> bool:
    """Whether a file is of the standard library."""
    return file.startswith(("<", STANDARD)) and not any(part in file for part in _INSTALLED)


def is_guest(file: str) -> bool:
    """Whether a file is velodrome's, beside the app."""
    return file.startswith(_GUEST)


def is_installed(file: str) -> bool:
    """Whether a file is of a package."""
    return any(part in file for part in _INSTALLED)


def _between(file: str) -> bool:
    return is_standard(file) or any(part in file for part in BETWEEN)


def _marks(file: str, function: str) -> Tuple[Mark, ...]:
    key = (file, function)
    if key not in _known:
        path = file.replace(os.sep, "/")
        _known[key] = tuple(
            mark for mark in MARKS if mark.file in path and (not mark.functions or function in mark.functions)
        )
    return _known[key]
