"""Whose code a stack runs: the package, and which part of a server that is.

A frame is `function (path)`, the path from its package on: `write (asyncio/streams.py)`. The standard library works
for whoever calls it, so the innermost frame outside of it counts; below a turn of the event loop nothing but the
loop is meant, above it nothing but start-up.
"""

import re
import sys
from collections.abc import Mapping, Sequence
from functools import cache

from velodrome.guest import catalog

PARTS = ("event loop", "HTTP", "server", "framework", "handler", "driver", "other")

HANDLER = "handler"
"""Package of recipes' handlers and of all code that no package installed."""
PYTHON = "python"
_FRAME = re.compile(r"^(.*) \((.*)\)$")
_TURNS = {
    ("asyncio/base_events.py", "_run_once"),
    ("asyncio/events.py", "_run"),
    ("asyncio/runners.py", "run"),
    ("gevent/hub.py", "run"),
    ("gevent/greenlet.py", "run"),
}
"""Files and functions from which an event loop, or a greenlet, runs what it was given."""

_LIBRARIES: Mapping[str, tuple[str, ...]] = {
    "driver": (
        "psycopg", "psycopg2", "psycopg_pool", "asyncpg", "redis", "pymysql", "MySQLdb", "aiomysql", "motor", "pymongo",
        "bson", "aiosqlite", "urllib3", "requests", "httpx", "httpcore", "pycurl",
    ),
    "HTTP": (
        "h11", "h2", "hpack", "hyperframe", "httptools", "wsproto", "websockets", "multidict", "yarl",
        "werkzeug/datastructures",
    ),
    "event loop": ("asyncio", "uvloop", "gevent", "greenlet", "anyio", "trio", "asgiref/sync"),
    "framework": (
        "django", "flask", "werkzeug", "starlette", "fastapi", "pydantic", "asgiref", "grpc", "grpclib", "betterproto",
        "google", "jinja2", "click",
    ),
}  # fmt: skip
"""Libraries that apps bring along, by part: the beginnings of their paths. A server's own stand in its stack."""


@cache
def _rules() -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Return part to the beginnings of paths, in the order in which they are tried."""
    servers = catalog.servers().values()
    return tuple(
        (
            name,
            (*_LIBRARIES.get(name, ()), *(path for server in servers for path in server.parts.get(name, ()))),
        )
        for name in ("driver", "HTTP", "event loop", "server", "framework")
    )


def path_of(frame: str) -> str:
    """Return the path of a frame."""
    found = _FRAME.match(frame)
    return found[2] if found else ""


def function_of(frame: str) -> str:
    """Return the name of a frame's function, without the class that newer Pythons tell."""
    found = _FRAME.match(frame)
    return (found[1] if found else frame).rpartition(".")[2]


def package_of(path: str) -> str:
    """Return the package of a path: `handler` for recipes and code of no package, `python` for its library."""
    if path.startswith(("velodrome/guest/", "<velodrome")):
        return HANDLER
    first = path.partition("/")[0].removesuffix(".py")
    if first in sys.stdlib_module_names or path.startswith("<"):
        return PYTHON
    return first if "/" in path and not path.startswith(("/", ".")) else HANDLER


def package(frames: Sequence[str]) -> str:
    """Return whose code a stack runs."""
    inner = path_of(_innermost(frames))
    return package_of(inner) if inner else "asyncio" if _turn(frames) else PYTHON


def part(frames: Sequence[str]) -> str:
    """Return which part of a server a stack runs."""
    inner = path_of(_innermost(frames))
    if not inner:
        in_loop = _turn(frames) or any(path_of(frame).startswith("asyncio/") for frame in frames)
        return "event loop" if in_loop else "other"
    if package_of(inner) == HANDLER:
        return "handler"
    for name, beginnings in _rules():
        for beginning in beginnings:
            if inner.startswith(beginning) and inner[len(beginning) :][:1] in ("/", ".", "", "_"):
                return name
    return "other"


def function(frames: Sequence[str]) -> str:
    """Return the function that a stack works for: its innermost frame outside the standard library, else the last."""
    return _innermost(frames) or frames[-1]


def after_turn(frames: Sequence[str]) -> Sequence[str]:
    """Return what the innermost turn of an event loop runs; the whole stack where there is none."""
    return frames[_turn(frames) :]


def _turn(frames: Sequence[str]) -> int:
    """Return how many frames there are up to the innermost turn of a loop; 0: none."""
    for place in range(len(frames), 0, -1):
        frame = frames[place - 1]
        if (path_of(frame), function_of(frame)) in _TURNS:
            return place
    return 0


def _innermost(frames: Sequence[str]) -> str:
    """Return the innermost frame outside the standard library; empty: there is none."""
    for frame in reversed(after_turn(frames)):
        path = path_of(frame)
        if path and package_of(path) != PYTHON:
            return frame
    return ""
