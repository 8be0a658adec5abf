"""Where a server's time goes under load, from samples of its stacks; never of a measured trial."""

import re
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import islice

from velodrome.guest import catalog
from velodrome.model.trial import Trial

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


def part_of(frames: Sequence[str]) -> str:
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


@dataclass(frozen=True)
class Profile:
    """What a sampling profiler saw of one contestant under one load."""

    trial: Trial
    """The cell and load it was taken under; nothing of that load is ranked."""
    started_at: str
    """ISO 8601, UTC."""
    profiler: str = ""
    """Name and version."""
    samples: int = 0
    seconds: float = 0.0
    rate_hz: float = 0.0
    errors: int = 0
    """Samples that could not be taken."""
    idle_share: float | None = None
    """Share of samples in which the thread waits for events, 0 to 1."""
    opaque_share: float | None = None
    """The part of `idle_share` in which an event loop written in C (uvloop, gevent's) waits or works: from outside
    these look alike. CPU time tells how much of it was work.
    """
    depth_mean: float | None = None
    """Frames of Python per sample that is not idle."""
    depth_max: int | None = None
    share_by_package: Mapping[str, float] = field(default_factory=dict)
    """Of the samples that are not idle, by the package of the innermost frame outside the standard library's own."""
    share_by_part: Mapping[str, float] = field(default_factory=dict)
    """The same by part of a server: event loop, HTTP, server, framework, handler, driver (`model/profile.py`)."""
    share_by_function: Mapping[str, float] = field(default_factory=dict)
    """The same by function, the innermost of each stack outside the standard library: the `MOST_FUNCTIONS` heaviest, as
    `render (jinja2/environment.py)`.
    """
    python: str = ""
    """Version of the server's interpreter."""
    achieved_rps: float | None = None
    """Right answers per second while it was taken."""
    server_cpu_s: float | None = None
    """Of the server while it was loaded, sampled or not, in `load_s`."""
    load_s: float | None = None
    collapsed: str = ""
    """File of collapsed stacks, relative to the results."""
    speedscope: str = ""
    """File for speedscope, relative to the results."""
    notes: tuple[str, ...] = ()
    """What to know when reading it, as sentences."""
    failed: str = ""
    """Why there is none, with the cure, or empty."""


# Samples of stacks, as text with one line a stack, and what follows from them: waiting, depth, whose code it is.
#
#     process 4711;Handle._run (asyncio/events.py);data_received (uvicorn/protocols/http/httptools_impl.py) 12
#     process 4711;Runner.run (asyncio/runners.py);[waits or works in C] 188
#
# This is the «collapsed» form that flame graphs are drawn from, outermost frame first. A last frame in brackets is no
# Python: `[waits]` where the line that runs waits for something, `[waits or works in C]` where an event loop written in
# C runs, in which both look alike from outside.

WAITS = "[waits]"
OPAQUE = "[waits or works in C]"
MARKS = (WAITS, OPAQUE)

LEAST_AT_WORK, LEAST_SHARE = 50, 0.1
"""Samples at work, and their share of those that may have been at work: of fewer no share of anything can be told."""


def shows_work(samples: int, idle_share: float | None, opaque_share: float | None) -> bool:
    """Return whether enough was seen at work to say where it goes: not of a server that works in C."""
    if idle_share is None:
        return False
    at_work = samples * (1 - idle_share)
    return at_work >= LEAST_AT_WORK and at_work >= LEAST_SHARE * (at_work + samples * (opaque_share or 0.0))


MOST_FUNCTIONS = 12
"""Functions that are stored with their share; the file of stacks has all."""

Stack = tuple[str, ...]
"""Frames from the outermost in, the process first."""


@dataclass(frozen=True)
class Shape:
    """What samples tell together. Shares are from 0 to 1; None where nothing was sampled."""

    samples: int
    idle_share: float | None
    opaque_share: float | None
    """The part of the idle samples that were in an event loop written in C."""
    depth_mean: float | None
    depth_max: int | None
    by_package: Mapping[str, float]
    by_part: Mapping[str, float]
    by_function: Mapping[str, float]


def parse(text: str) -> dict[Stack, int]:
    """Return how often each stack was seen. Raises ValueError for a line that is none."""
    found: Counter[Stack] = Counter()
    for number, line in enumerate(text.splitlines(), 1):
        frames, _, count = line.rpartition(" ")
        if not frames or not count.isdecimal():
            raise ValueError(f"line {number} is no stack with a number: '{line[:40]}'")
        found[tuple(frames.split(";"))] += int(count)
    return dict(found)


def dump(stacks: Mapping[Stack, int]) -> str:
    """Return the text of stacks, most often seen first."""
    ordered = sorted(stacks.items(), key=lambda item: (-item[1], item[0]))
    return "".join(f"{';'.join(stack)} {count}\n" for stack, count in ordered)


def idle(stack: Stack) -> bool:
    """Whether a thread waited."""
    return stack[-1] in MARKS


def frames(stack: Stack) -> Stack:
    """Return the frames of Python alone."""
    return tuple(frame for frame in stack if frame not in MARKS and not frame.startswith("process "))


def busy(stacks: Mapping[Stack, int]) -> dict[Stack, int]:
    """Return those that did not wait."""
    return {stack: count for stack, count in stacks.items() if not idle(stack) and frames(stack)}


def shape(stacks: Mapping[Stack, int]) -> Shape:
    """Return what samples tell together."""
    samples = sum(stacks.values())
    working = busy(stacks)
    at_work = sum(working.values())
    depths = [(len(frames(stack)), count) for stack, count in working.items()]
    return Shape(
        samples=samples,
        idle_share=_sum(stacks, MARKS) / samples if samples else None,
        opaque_share=_sum(stacks, (OPAQUE,)) / samples if samples else None,
        depth_mean=sum(depth * count for depth, count in depths) / at_work if at_work else None,
        depth_max=max((depth for depth, _ in depths), default=None),
        by_package=_shares((package(frames(stack)), count) for stack, count in working.items()),
        by_part=_shares((part_of(frames(stack)), count) for stack, count in working.items()),
        by_function=dict(
            islice(
                _shares((function(frames(stack)), count) for stack, count in working.items()).items(),
                MOST_FUNCTIONS,
            )
        ),
    )


def _sum(stacks: Mapping[Stack, int], marks: tuple[str, ...]) -> int:
    return sum(count for stack, count in stacks.items() if stack[-1] in marks)


def _shares(counted: Iterable[tuple[str, int]]) -> dict[str, float]:
    found: Counter[str] = Counter()
    for name, count in counted:
        found[name] += count
    total = sum(found.values())
    return {name: count / total for name, count in found.most_common()}
