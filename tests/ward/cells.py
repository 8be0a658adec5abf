"""The ward: apps with one fault each, their cured twins, healthy apps and decoys, and what the doctor has to find."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from velodrome.guest.stack import KnobValue

APPS = Path(__file__).with_name("apps")
ANYIO, SQLALCHEMY, AIOHTTP = "anyio==4.11.0", "sqlalchemy==2.0.44", "aiohttp==3.13.2"
ASGIREF, HTTPX, STARLETTE = "asgiref==3.10.0", "httpx==0.28.1", "starlette==0.49.1"
JINJA, PYDANTIC = "jinja2==3.1.6", "pydantic==2.12.4"
FASTAPI, OTEL = "fastapi==0.121.1", "opentelemetry-sdk==1.38.0"
AIOSQLITE, GREENLET = "aiosqlite==0.21.0", "greenlet==3.2.4"
GRPC, GRPCLIB = "grpcio==1.76.0", "grpclib==0.4.8"
NUMPY = ("numpy==2.3.4", "threadpoolctl==3.6.0")
REQUESTS, FAR = "requests==2.32.5", ("PAYMENTS_URL=latency:50ms",)
WITH_HTTPX = (HTTPX, "sniffio==1.3.1")
"""httpx tries to import sniffio for each request; where that is not there, this is a fault of its own."""
QUICK = ("PAYMENTS_URL=latency:1ms",)
ASYNC_SESSIONS = (SQLALCHEMY, AIOSQLITE, GREENLET)
FLASK, DJANGO = "flask==3.1.2", "django==5.2.8"
PKG_RESOURCES = "setuptools==80.9.0"
"""The last with `pkg_resources`, which datasette imports."""
DATASETTE, HTTPBIN, PYPISERVER = "datasette==0.65.1", "httpbin==0.10.2", "pypiserver==2.4.0"
GZIP = {"Accept-Encoding": "gzip"}
SLOW = ("PAYMENTS_URL=latency:200ms",)
USUAL = ("PAYMENTS_URL=latency:40ms",)


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
    headers: Mapping[str, str] = field(default_factory=dict)
    line: str = ""
    """File and line that are to be named."""
    requests: tuple[str, ...] = ("GET /",)
    cpus: int | None = None
    """Of the server; None: as many as there are beside the load."""
    beside: tuple[str, ...] = ()
    """What its settings come to as well: either may be found before its fault."""
    quota: int = 0
    """CPUs that the control group `GROUP` pays for, which its app joins (`apps/quota.py`); 0: it joins none."""


BLOCKING_LINE = "blocking.py:13"
UPLOAD = ('POST / {"order": 7}',)
REDIS, TORNADO = "redis==6.4.0", "tornado==6.5.2"
OLD_STARLETTE = "starlette==0.14.2"
"""Its successors, uvicorn 0.54 and gunicorn 27 do not hold the connection any more."""
TWO_ON_ASYNCIO: Mapping[str, KnobValue] = {"workers": 2, "loop": "asyncio"}
CLOSE: Mapping[str, KnobValue] = {"connection": "close"}
HOLDING, FORKED, OURS, RECYCLING = (
    str(APPS / f"{name}.py") for name in ("holding", "forked", "gunicorn_ours", "gunicorn_recycling")
)
GROUP = Path("/sys/fs/cgroup/cpu/velodrome-ward")
"""Of version 1, made by whoever runs the ward as root: the processes of an app may join it and leave it alone."""
BEHIND: Mapping[str, KnobValue] = {"keepalive": 1, "backlog": 64}
PRELOADED: Mapping[str, KnobValue] = {"preload": 1}
AT_ONCE: Mapping[str, KnobValue] = {"workers": 2, "ends": "at once"}
SETTINGS = ("keepalive-race", "backlog-overflow")
GOES_ON = ("no-cancel",)
"""Calls that were handed to threads are made, whether the client is there or not."""
OPENS = ("ports-exhausted",)
"""With more than 470 connections to one peer in a second its 28,000 ports do not last for the minute each lies idle."""
SYNC = ("slow-client", "lost-at-stop")
"""A sync worker reads one head at a time, and what lies in the listen queue at the stop is lost."""
ON_ITS_LOOP = ("blocking-call", "lost-at-stop", "lost-at-replacement")
"""`forked.py` calls its app on its loop, and ends at once."""


def of_the_index(app: str, package: str, made: str = "as_it_is", fault: str = "") -> Cell:
    """Return an app from the package index, as it is or made ill."""
    module, stack, request, more = {
        "datasette": (
            "index_datasette",
            "uvicorn",
            "GET /shop/articles.json?_shape=array&_size=20",
            (PKG_RESOURCES,),
        ),
        "httpbin": ("index_httpbin", "gunicorn-gthread", "GET /get", ()),
        "pypiserver": ("index_pypiserver", "gunicorn-gthread", "GET /simple/", (OTEL,)),
    }[app]
    return Cell(
        f"{app}, {made.replace('_', ' ')}",
        f"{module}:{made}",
        fault,
        stack=stack,
        requires=(package, *more),
        requests=(request,),
        upstreams=QUICK if made == "calls" else (),
    )


OF_THE_INDEX: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "datasette": (
        DATASETTE,
        {
            "blocks": "blocking-call",
            "calls": "client-per-request",
            "logs": "log-cost",
            "leaks": "connections-leak",
            "grows": "growth",
        },
    ),
    "httpbin": (
        HTTPBIN,
        {
            "cold": "cold-worker",
            "mixes": "context-bleed",
            "behind": "background-holds",
            "leaks": "connections-leak",
            "grows": "growth",
        },
    ),
    "pypiserver": (
        PYPISERVER,
        {
            "locked": "locked-database",
            "traces": "telemetry-cost",
            "logs": "log-blocks",
            "leaks": "connections-leak",
            "grows": "growth",
        },
    ),
}
"""Apps that others wrote: the package, and by what makes them ill the fault."""
INDEX_ILL = tuple(
    of_the_index(app, package, made, fault)
    for app, (package, faults) in OF_THE_INDEX.items()
    for made, fault in faults.items()
)
INDEX_AS_IT_IS = tuple(of_the_index(app, package) for app, (package, _) in OF_THE_INDEX.items())

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
    Cell("refreshed by a thread", "refreshing:severe", "background-work", line="refreshing.py:13"),
    Cell("refreshed by a thread, mild", "refreshing:mild", "background-work", line="refreshing.py:13"),
    Cell("goes through what it keeps", "ageing:going_through", "slows-with-age", beside=("growth",)),
    Cell("a deadline that keeps a slot", "ageing:keeping_slots", "slows-with-age"),
    Cell("sleeps and looks again", "pausing:polling", "pauses", line="pausing.py:17"),
    Cell("sleeps with a slot", "pausing:keeping_slots", "pauses", line="pausing.py:48"),
    Cell(
        "ends its own workers",
        "guarding:severe",
        "own-ends",
        stack="gunicorn-sync",
        knobs={"workers": 2},
        line="guarding.py:25",
        beside=SYNC,
    ),
    Cell(
        "short functions in threads", "hopping:severe", "thread-hops", requires=(FASTAPI,), line="hopping.py:"
    ),
    Cell("logging", "logging_much:severe", "log-cost"),
    Cell("logging, mild", "logging_much:mild", "log-cost"),
    Cell("lines of a file, each flushed", "logging_much:of_its_own", "log-cost"),
    Cell("a statement for each row", "rows:severe", "n-plus-one"),
    Cell("a statement for each row, mild", "rows:mild", "n-plus-one"),
    Cell("imports that fail", "importing:severe", "failing-import"),
    Cell("built each time", "building:severe", "built-per-request", requires=(JINJA, PYDANTIC)),
    Cell("built each time, mild", "building:mild", "built-per-request", requires=(JINJA, PYDANTIC)),
    Cell("httpx without sniffio", "clients:cured", "failing-import", requires=(HTTPX,), upstreams=QUICK),
    Cell("imports that fail, mild", "importing:mild", "failing-import"),
    Cell(
        "connections kept", "keeping_connections:severe", "httpx-kept", requires=WITH_HTTPX, upstreams=USUAL
    ),
    Cell(
        "answers left unread", "unreturned:severe", "connections-leak", requires=WITH_HTTPX, upstreams=USUAL
    ),
    Cell(
        "all answers left unread",
        "unreturned:at_once",
        "connections-leak",
        requires=WITH_HTTPX,
        upstreams=USUAL,
    ),
    Cell(
        "no library with pools",
        "dialled:severe",
        "connection-per-query",
        requires=(AIOSQLITE,),
        line="dialled.py:31",
    ),
    Cell(
        "no library with pools, threads", "dialled:in_threads", "connection-per-query", requires=(AIOSQLITE,)
    ),
    Cell(
        "Tornado's client",
        "ten_clients:severe",
        "connector-limit",
        stack="tornado",
        requires=(TORNADO,),
        upstreams=SLOW,
        beside=("lost-at-stop",),
    ),
    Cell("clients, mild", "clients:mild", "client-per-request", requires=WITH_HTTPX, upstreams=QUICK),
    Cell("middleware, mild", "wrapped:mild", "middleware-cost", requires=(STARLETTE,)),
    Cell("tracing, mild", "traced:mild", "telemetry-cost", requires=(OTEL,)),
    Cell("resolver, mild", "resolving:mild", "dns-per-call", upstreams=QUICK),
    Cell("pool", "pooled:severe", "pool-exhausted", requires=(SQLALCHEMY,)),
    Cell("connector", "calling:severe", "connector-limit", requires=(AIOHTTP,), upstreams=SLOW),
    Cell("race of keep-alive", "sound:waiting", "keepalive-race", knobs={"keepalive": 2}),
    Cell(
        "race of keep-alive, gunicorn",
        "plain:nothing",
        "keepalive-race",
        "",
        "gunicorn-gthread",
        {"keepalive": 2},
    ),
    Cell("limit of connections", "sound:waiting", "limit-concurrency", knobs={"limit_concurrency": 64}),
    Cell("slow client, one worker", "plain:waiting", "slow-client", stack="gunicorn-sync"),
    Cell("keep-alive holds the thread", "plain:nothing", "sync-keepalive", stack=HOLDING),
    Cell("short queue", "plain:waiting", "backlog-overflow", stack="gunicorn-gthread", knobs={"backlog": 16}),
    Cell("one worker does all", "waking:severe", "hot-workers", knobs=TWO_ON_ASYNCIO, cpus=2),
    Cell("mixes requests up", "mixing:severe", "context-bleed"),
    Cell(
        "background task",
        "afterwards:severe",
        "background-holds",
        requires=(OLD_STARLETTE,),
    ),
    # gunicorn 27 reads what is left before it closes.
    Cell("uploads unread", "plain:nothing", "unread-body", "", HOLDING, CLOSE, requests=UPLOAD, beside=SYNC),
    Cell("ends at once", "ending:severe", "lost-at-stop"),
    Cell("ends at once, waitress", "plain:slow", "lost-at-stop", stack="waitress"),
    Cell("database that is locked", "locking:severe", "locked-database"),
    Cell("pool that raises", "redis_pool:severe", "pool-raises", requires=(REDIS,)),
    Cell("leaves files open", "leaking:severe", "connections-leak"),
    Cell("works for nobody", "leaving:severe", "no-cancel"),
    Cell("waits for nobody", "leaving:waiting", "no-cancel"),
    Cell("first request loads", "cold:severe", "cold-worker", stack="gunicorn-gthread"),
    Cell("keeps all", "keeping:severe", "growth"),
    Cell("works behind the answer", "closing:severe", "background-holds", stack="gunicorn-gthread"),
    Cell("handlers that wait", "logging_slowly:severe", "log-blocks"),
    Cell("hashing", "hashing:severe", "hash-on-loop"),
    Cell("nothing but logins", "hashing:logins", "hash-on-loop"),
    Cell("asgiref's thread", "sync_views:severe", "sync-under-asgi", requires=(ASGIREF,)),
    Cell("compression", "compressing:severe", "gzip-on-loop", requires=(STARLETTE,), headers=GZIP),
    Cell("compression by hand", "compressing:by_hand", "gzip-on-loop", requires=(STARLETTE,), headers=GZIP),
    Cell(
        "clients",
        "clients:severe",
        "client-per-request",
        requires=WITH_HTTPX,
        upstreams=QUICK,
        beside=OPENS,
    ),
    Cell("validation", "validating:severe", "validation-cost", requires=(FASTAPI,)),
    Cell("middleware", "wrapped:severe", "middleware-cost", requires=(STARLETTE,)),
    Cell("tracing", "traced:severe", "telemetry-cost", requires=(OTEL,)),
    Cell("no pool", "unpooled:severe", "connection-per-query", requires=(SQLALCHEMY,)),
    Cell(
        "a client of redis each time",
        "redis_pool:anew",
        "connection-per-query",
        requires=(REDIS,),
        beside=OPENS,
    ),
    Cell("a pool that recycles at once", "unpooled:recycled", "connection-per-query", requires=(SQLALCHEMY,)),
    Cell(
        "an engine for each request", "unpooled:engine_each", "connection-per-query", requires=(SQLALCHEMY,)
    ),
    Cell(
        "sessions of aiohttp",
        "sessions:severe",
        "client-per-request",
        requires=(AIOHTTP, REQUESTS),
        upstreams=QUICK,
        beside=OPENS,
    ),
    Cell(
        "requests.get",
        "sessions:severe_threads",
        "client-per-request",
        stack="gunicorn-gthread",
        requires=(AIOHTTP, REQUESTS),
        upstreams=QUICK,
        beside=OPENS,
    ),
    Cell("resolver", "resolving:severe", "dns-per-call", upstreams=QUICK, beside=OPENS),
    Cell(
        "C under gevent",
        "greenlets:severe",
        "driver-not-green",
        stack="gunicorn-gevent",
        line="greenlets.py:11",
    ),
    Cell(
        "urllib3's pool",
        "far_away:severe",
        "urllib3-pool",
        requires=(REQUESTS,),
        upstreams=FAR,
        beside=GOES_ON,
    ),
    Cell("BLAS", "multiplying:severe", "native-threads", requires=NUMPY),
    Cell("deadlock of threads", "deadlocking:severe", "dependency-deadlock", requires=(FASTAPI, SQLALCHEMY)),
    Cell("session held", "session_across:severe", "session-held", requires=(SQLALCHEMY,), upstreams=SLOW),
    Cell(
        "pool, held for a query",
        "session_across:slow_query",
        "pool-exhausted",
        requires=(SQLALCHEMY,),
        upstreams=SLOW,
    ),
    Cell("awaits in turn", "in_turn:severe", "serial-awaits", requires=(AIOHTTP,), upstreams=FAR),
    Cell("awaits in a loop", "in_turn:loop", "serial-awaits", requires=(AIOHTTP,), upstreams=FAR),
    Cell("one session", "one_session:severe", "serial-gather", requires=ASYNC_SESSIONS),
    Cell("one connection behind a lock", "one_connection:severe", "serial-gather"),
    Cell("one connection of gRPC", "streaming:severe", "one-grpc-connection", requires=(GRPC, GRPCLIB)),
    Cell("connection each", "dialling:severe", "ports-exhausted", upstreams=QUICK),
    Cell(
        "reload loses",
        "plain:slow",
        "lost-at-reload",
        stack=OURS,
        knobs=AT_ONCE,
        beside=("lost-at-stop", "lost-at-replacement"),
    ),
    Cell(
        "replacement loses",
        "plain:slow",
        "lost-at-replacement",
        stack=OURS,
        knobs=AT_ONCE,
        beside=("lost-at-stop", "lost-at-reload"),
    ),
    Cell("recycled together", "plain:waiting", "recycle-together", stack=RECYCLING, beside=SYNC),
    Cell(
        "clients come back",
        "plain:waiting",
        "reconnect-storm",
        stack="gunicorn-gthread",
        knobs=BEHIND,
        beside=SETTINGS,
    ),
    Cell("few files", "files:severe", "nofile"),
    Cell("spent quota", "quota:severe", "throttled", cpus=2, quota=1),
    Cell("arenas", "retaining:severe", "arenas"),
    Cell("epoll of all", "plain:waiting", "shared-epoll", stack=FORKED, beside=ON_ITS_LOOP),
    Cell("pool before the fork", "preloaded:severe", "fork-after-init", stack=OURS, knobs=PRELOADED),
    Cell("cold keys", "stampeding:severe", "stampede", upstreams=FAR),
    Cell("cold keys of the app's own", "stampeding:severe", "stampede"),
    *INDEX_ILL,
)
IN_PAIRS: Mapping[str, Cell] = {
    "tokens": Cell("tokens", "", "thread-tokens", requires=(ANYIO,)),
    "executor": Cell("executor", "", "default-executor"),
    "pool": Cell("pool", "", "pool-exhausted", requires=(SQLALCHEMY,)),
    "connector": Cell("connector", "", "connector-limit", requires=(AIOHTTP,), upstreams=SLOW),
    "blocking": Cell("blocking", "", "blocking-call"),
    "logging": Cell("logging", "", "log-cost"),
    "hashing": Cell("hashing", "", "hash-on-loop"),
    "collecting": Cell("collecting", "", "gc-pause"),
    "growth": Cell("growth", "", "growth"),
    "leak": Cell("leak", "", "connections-leak"),
}
"""The faults that `apps/pairs.py` puts together."""


def pair(first: str, second: str) -> Cell:
    """Return the app that has two faults."""
    cell, other = IN_PAIRS[first], IN_PAIRS[second]
    return Cell(
        f"pair: {first} and {second}",
        f"pairs:{first}_and_{second}",
        cell.fault,
        other.fault,
        requires=(*cell.requires, *other.requires),
        upstreams=(*cell.upstreams, *other.upstreams),
    )


PAIRS = (
    *(
        pair(first, second)
        for first in ("tokens", "executor", "pool", "connector")
        for second in ("blocking", "growth", "leak")
    ),
    # Behind the other three a record costs too little of what a request then takes.
    pair("tokens", "logging"),
    # Not with tokens: one CPU is busy with hashes before 40 threads are.
    *(pair(first, "hashing") for first in ("executor", "pool", "connector")),
    *(pair(first, second) for first in ("logging", "hashing", "blocking") for second in ("growth", "leak")),
    pair("blocking", "logging"),
    pair("executor", "collecting"),
    *(pair("collecting", second) for second in ("leak", "blocking", "logging", "growth", "hashing")),
    pair("growth", "leak"),
)
WELL = (
    Cell("blocking, cured", "blocking:cured"),
    Cell("tokens, cured", "tokens:cured", requires=(ANYIO,)),
    Cell("executor, cured", "threads:cured"),
    Cell("nodelay, cured", "sound:nothing", knobs={"workers": 2}),
    Cell("collections, cured", "collecting:cured"),
    Cell("refreshed by a process", "refreshing:cured"),
    Cell("goes through an end of what it keeps", "ageing:bounded"),
    Cell("a deadline that gives a slot back", "ageing:giving_back"),
    Cell("woken", "pausing:waking"),
    Cell("sleeps without a slot", "pausing:giving_slots_back"),
    Cell(
        "ends its own workers, cured",
        "guarding:cured",
        stack="gunicorn-sync",
        knobs={"workers": 2},
        beside=SYNC,
    ),
    Cell("short functions on the loop", "hopping:cured", requires=(FASTAPI,)),
    Cell("logging, cured", "logging_much:cured"),
    Cell("a statement for each row, cured", "rows:cured"),
    Cell("imports that fail, cured", "importing:cured"),
    Cell("built each time, cured", "building:cured", requires=(JINJA, PYDANTIC)),
    Cell("pool, cured", "pooled:cured", requires=(SQLALCHEMY,)),
    Cell("connector, cured", "calling:cured", requires=(AIOHTTP,), upstreams=SLOW),
    Cell("race of keep-alive, cured", "sound:waiting"),
    Cell("slow client, cured by threads", "plain:waiting", stack="gunicorn-gthread"),
    Cell("keep-alive holds the thread, cured", "plain:nothing", stack=HOLDING, knobs=CLOSE),
    Cell("one worker does all, cured", "sound:waiting", knobs=TWO_ON_ASYNCIO, cpus=2),
    Cell("mixes requests up, cured", "mixing:cured"),
    Cell("uploads unread, cured", "plain:reading", stack=HOLDING, knobs=CLOSE, requests=UPLOAD),
    Cell("ends at once, cured", "ending:cured"),
    Cell("database that is locked, cured", "locking:cured"),
    Cell("pool that raises, cured", "redis_pool:cured", requires=(REDIS,)),
    Cell("leaves files open, cured", "leaking:cured"),
    Cell("works for nobody, cured", "leaving:cured"),
    Cell("waits for nobody, cured", "leaving:waiting_cured"),
    Cell("first request loads, cured", "cold:cured", stack="gunicorn-gthread"),
    Cell("keeps all, cured: a cache that fills", "keeping:cured"),
    Cell("background task, cured", "afterwards:cured", requires=(OLD_STARLETTE,)),
    Cell("works behind the answer, cured", "closing:cured", stack="gunicorn-gthread"),
    Cell("answers at once", "sound:nothing"),
    Cell("awaits", "sound:waiting"),
    # A record for each request costs an app that does nothing else what it costs, queue or not.
    Cell("handlers that wait, cured", "logging_slowly:cured", beside=("log-cost",)),
    Cell("hashing, cured", "hashing:cured"),
    Cell("nothing but logins, cured", "hashing:logins_cured"),
    Cell("asgiref's thread, cured", "sync_views:cured", requires=(ASGIREF,)),
    Cell("compression, cured", "compressing:cured", requires=(STARLETTE,), headers=GZIP),
    Cell("connections kept, cured", "keeping_connections:cured", requires=WITH_HTTPX, upstreams=USUAL),
    Cell("answers left unread, cured", "unreturned:cured", requires=WITH_HTTPX, upstreams=USUAL),
    Cell("a client of redis, cured", "redis_pool:kept", requires=(REDIS,)),
    Cell("clients, cured", "clients:cured", requires=WITH_HTTPX, upstreams=QUICK),
    Cell("sessions of aiohttp, cured", "sessions:cured", requires=(AIOHTTP, REQUESTS), upstreams=QUICK),
    Cell(
        "requests.get, cured",
        "sessions:cured_threads",
        stack="gunicorn-gthread",
        requires=(AIOHTTP, REQUESTS),
        upstreams=QUICK,
    ),
    Cell("validation, cured", "validating:cured", requires=(FASTAPI,)),
    Cell("middleware, cured", "wrapped:cured", requires=(STARLETTE,)),
    Cell("tracing, cured", "traced:cured", requires=(OTEL,)),
    Cell("no library with pools, cured", "dialled:cured", requires=(AIOSQLITE,)),
    Cell("no library with pools, threads, cured", "dialled:in_threads_cured", requires=(AIOSQLITE,)),
    Cell(
        "Tornado's client, cured",
        "ten_clients:cured",
        stack="tornado",
        requires=(TORNADO,),
        upstreams=SLOW,
        beside=("lost-at-stop",),
    ),
    Cell("no pool, cured", "unpooled:cured", requires=(SQLALCHEMY,)),
    Cell("resolver, cured", "resolving:cured", upstreams=QUICK),
    Cell("C under gevent, cured", "greenlets:cured", stack="gunicorn-gevent"),
    Cell("urllib3's pool, cured", "far_away:cured", requires=(REQUESTS,), upstreams=FAR, beside=GOES_ON),
    Cell("BLAS, cured", "multiplying:cured", requires=NUMPY),
    Cell("deadlock of threads, cured", "deadlocking:cured", requires=(FASTAPI, SQLALCHEMY)),
    Cell("session held, cured", "session_across:cured", requires=(SQLALCHEMY,), upstreams=SLOW),
    Cell("awaits in turn, cured", "in_turn:cured", requires=(AIOHTTP,), upstreams=FAR),
    Cell("one session, cured", "one_session:cured", requires=ASYNC_SESSIONS),
    Cell("one connection behind a lock, cured", "one_connection:cured"),
    Cell("one connection of gRPC, cured", "streaming:cured", requires=(GRPC, GRPCLIB)),
    Cell("connection each, cured", "dialling:cured", upstreams=QUICK),
    Cell("decoy: a semaphore before calls", "session_across:decoy", requires=(SQLALCHEMY,), upstreams=SLOW),
    Cell("decoy: each call needs the last", "in_turn:decoy", requires=(AIOHTTP,), upstreams=FAR),
    Cell("decoy: a database in single file", "one_session:decoy", requires=ASYNC_SESSIONS),
    Cell("decoy: a semaphore of 100 before gRPC", "streaming:decoy", requires=(GRPC, GRPCLIB)),
    Cell("reload loses, cured", "plain:slow", stack=OURS, knobs={"workers": 2}),
    Cell("recycled together, cured", "plain:waiting", stack=RECYCLING, knobs={"jitter": 200}, beside=SYNC),
    Cell("clients come back, cured", "plain:waiting", stack="gunicorn-gthread", knobs={"keepalive": 75}),
    Cell("few files, cured", "sound:waiting", knobs={"loop": "asyncio"}),
    Cell("spent quota, cured", "quota:cured", cpus=2),
    Cell("arenas, cured", "retaining:cured"),
    Cell("epoll of all, cured", "plain:waiting", stack=FORKED, knobs={"loop": "after"}, beside=ON_ITS_LOOP),
    Cell("pool before the fork, cured", "preloaded:cured", stack=OURS, knobs=PRELOADED),
    Cell("cold keys, cured", "stampeding:cured", upstreams=FAR),
    Cell("cold keys of the app's own, cured", "stampeding:cured"),
    Cell("decoy: does all for each request", "stampeding:decoy", upstreams=FAR),
    Cell("decoy: waits for all in each request", "stampeding:decoy"),
    Cell("decoy: sums on the loop", "hashing:decoy"),
    Cell("decoy: answers with an archive", "compressing:decoy", requires=(STARLETTE,), headers=GZIP),
    Cell("decoy: computes on the loop", "sound:computing"),
    Cell("decoy: a semaphore of 40 before AnyIO", "tokens:decoy", requires=(ANYIO,)),
    Cell("decoy: a lock of its own", "lookalikes:locked"),
    Cell("decoy: fifteen at once", "lookalikes:bounded"),
    Cell("decoy: a cache that fills", "lookalikes:caching"),
    Cell("decoy: files that stay open", "lookalikes:opening"),
    Cell("decoy: much memory for a moment", "lookalikes:large"),
    Cell("decoy: serialises on the loop", "lookalikes:serialising"),
    Cell("decoy: a thread that only waits", "lookalikes:waking"),
    Cell("decoy: a thread that is woken often", "refreshing:now_and_then"),
    Cell("decoy: refuses by itself", "lookalikes:refusing"),
    Cell("FastAPI, at once", "shop_fastapi:app", requires=(FASTAPI, SQLALCHEMY)),
    # Of a `def` FastAPI validates the answer in one more thread, which the row of a database shows.
    Cell(
        "FastAPI, a row of a database",
        "shop_fastapi:app",
        requires=(FASTAPI, SQLALCHEMY),
        requests=("GET /articles/7",),
        beside=("validation-cost",),
    ),
    Cell(
        "FastAPI, an order",
        "shop_fastapi:app",
        requires=(FASTAPI, SQLALCHEMY),
        requests=('POST /orders {"number": 7, "name": "a", "price": 2}',),
    ),
    Cell("Flask, a page, threads", "shop_flask:app", stack="gunicorn-gthread", requires=(FLASK,)),
    Cell(
        "Flask, a page, waitress",
        "shop_flask:app",
        stack="waitress",
        requires=(FLASK,),
        beside=("lost-at-stop",),
    ),
    Cell(
        "Flask, rows of a database",
        "shop_flask:app",
        stack="gunicorn-gthread",
        requires=(FLASK,),
        requests=("GET /articles",),
    ),
    Cell("FastAPI on granian", "shop_fastapi:app", stack="granian-asgi", requires=(FASTAPI, SQLALCHEMY)),
    Cell(
        "FastAPI on hypercorn, a row",
        "shop_fastapi:app",
        stack="hypercorn",
        requires=(FASTAPI, SQLALCHEMY),
        requests=("GET /articles/7",),
        beside=("validation-cost",),
    ),
    Cell("FastAPI on asyncio", "shop_fastapi:app", knobs={"loop": "asyncio"}, requires=(FASTAPI, SQLALCHEMY)),
    Cell("Flask on granian", "shop_flask:app", stack="granian-wsgi", requires=(FLASK,)),
    Cell(
        "Flask on cheroot, rows",
        "shop_flask:app",
        stack="cheroot",
        requires=(FLASK,),
        requests=("GET /articles",),
    ),
    Cell("Flask on gevent", "shop_flask:app", stack="gunicorn-gevent", requires=(FLASK,)),
    Cell("Django on uWSGI", "shop_django:wsgi", stack="pyuwsgi", requires=(DJANGO,)),
    Cell("awaits, two workers", "sound:waiting", knobs={"workers": 2}),
    Cell("awaits, gunicorn", "sound:waiting", stack="gunicorn-asgi", knobs={"workers": 2}),
    Cell("waits in threads", "plain:waiting", stack="gunicorn-gthread", knobs={"threads": 16}),
    Cell("Django, gunicorn's threads", "shop_django:wsgi", stack="gunicorn-gthread", requires=(DJANGO,)),
    Cell(
        "Django, an async view",
        "shop_django:asgi",
        requires=(DJANGO,),
        requests=("GET /async",),
    ),
    *INDEX_AS_IT_IS,
)
ELSEWHERE: Mapping[str, tuple[str, ...]] = {
    "uvicorn": (
        "daphne",
        "granian-asgi",
        "gunicorn-asgi",
        "gunicorn-uvicorn",
        "hypercorn",
        "uvicorn-h11",
    ),
    "gunicorn-gthread": ("cheroot", "granian-wsgi", "pyuwsgi", "waitress"),
}
"""By the stack of a cell, others that serve its app in the same way: in tasks of a loop, or in threads."""
LOSES = frozenset({"daphne", "waitress"})
"""Stacks that answer nothing after SIGTERM."""


NOT_THERE: Mapping[str, frozenset[str]] = {
    "lost-at-stop": frozenset({"granian-asgi"}),
}
"""Faults that cannot be on these stacks: a handler of SIGTERM of the app's own is never called, since another process
gets the signal."""


def elsewhere(cell: Cell) -> Iterator[Cell]:
    """Yield a cell on every other stack where its app is as ill: none where what is wrong is a setting of its stack."""
    if not cell.knobs:
        for stack in ELSEWHERE.get(cell.stack, ()):
            if stack in NOT_THERE.get(cell.fault, ()):
                continue
            more = ("lost-at-stop",) if stack in LOSES else ()
            yield replace(cell, name=f"{cell.name}, {stack}", stack=stack, beside=(*cell.beside, *more))
