"""The ward: apps with one fault each, their cured twins, healthy apps and decoys, and what the doctor has to find."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from velodrome.guest.stack import KnobValue

APPS = Path(__file__).with_name("apps")
ANYIO, SQLALCHEMY, AIOHTTP = "anyio==4.11.0", "sqlalchemy==2.0.44", "aiohttp==3.13.2"
SLOW = ("PAYMENTS_URL=latency:200ms",)


@dataclass(frozen=True)
class Cell:
    """One app on one stack."""

    name: str
    app: str
    fault: str = ""
    """What is wrong with it; empty: nothing."""
    also: str = ""
    """What is wrong with it besides: either may be found first."""
    stack: str = "uvicorn"
    knobs: Mapping[str, KnobValue] = field(default_factory=dict)
    requires: tuple[str, ...] = ()
    upstreams: tuple[str, ...] = ()
    line: str = ""
    """File and line that are to be named."""


BLOCKING_LINE = "blocking.py:13"

ILL = (
    Cell("blocking, severe", "blocking:severe", "blocking-call", line=BLOCKING_LINE),
    Cell("blocking, mild", "blocking:mild", "blocking-call", line=BLOCKING_LINE),
    Cell(
        "blocking on asyncio",
        "blocking:severe",
        "blocking-call",
        knobs={"loop": "asyncio"},
        line=BLOCKING_LINE,
    ),
    Cell("tokens", "tokens:severe", "thread-tokens", requires=(ANYIO,)),
    Cell("executor", "threads:severe", "default-executor"),
    Cell("executor on asyncio", "threads:severe", "default-executor", knobs={"loop": "asyncio"}),
    Cell("nodelay", "sound:nothing", "nodelay", stack="uvicorn-h11", knobs={"workers": 2}),
    Cell("collections", "collecting:severe", "gc-pause"),
    Cell("convoy", "beside:in_a_thread", "gil-convoy"),
    Cell("logging", "logging_much:severe", "log-cost"),
    Cell("pool", "pooled:severe", "pool-exhausted", requires=(SQLALCHEMY,)),
    Cell("connector", "calling:severe", "connector-limit", requires=(AIOHTTP,), upstreams=SLOW),
)
PAIRS = (
    Cell("pair: blocking and tokens", "pairs:severe", "blocking-call", "thread-tokens", requires=(ANYIO,)),
)
WELL = (
    Cell("blocking, cured", "blocking:cured"),
    Cell("tokens, cured", "tokens:cured", requires=(ANYIO,)),
    Cell("executor, cured", "threads:cured"),
    Cell("nodelay, cured", "sound:nothing", knobs={"workers": 2}),
    Cell("collections, cured", "collecting:cured"),
    Cell("logging, cured", "logging_much:cured"),
    Cell("pool, cured", "pooled:cured", requires=(SQLALCHEMY,)),
    Cell("connector, cured", "calling:cured", requires=(AIOHTTP,), upstreams=SLOW),
    Cell("answers at once", "sound:nothing"),
    Cell("awaits", "sound:waiting"),
    Cell("decoy: computes on the loop", "sound:computing"),
    Cell("decoy: a semaphore of 40 before AnyIO", "tokens:decoy", requires=(ANYIO,)),
)
