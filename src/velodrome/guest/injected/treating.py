"""Treatments: one thing each that is otherwise in a process than its app has it, named in an environment variable.

    VELODROME_INJECTED={"folder": "/tmp/x", "give": {"anyio-tokens": 400, "heartbeat": {"late_s": 0.01}}}

What is given with a name is a number, a place and the like; a word where there are several ways (`logging`), and some
word or `true` where there is nothing to choose.

A treatment that takes hold is noted in the folder (`took-<pid>.jsonl`), so that one which changed nothing because it
never met what it changes is not taken for one that does not help. The host creates `<folder>/warm` when the app has
answered its first requests.
"""

from __future__ import annotations

import ast
import json
import os
import re
import struct
import sys
import threading
import time
import zlib
from contextlib import suppress
from typing import Any, Callable, Dict, List, Mapping, Optional, Set

from velodrome.guest.injected import allocations, bounds, building, gathering, libraries, life, statements
from velodrome.guest.injected.importing import Finder, Missing
from velodrome.guest.injected.places import Place

VARIABLE = "VELODROME_INJECTED"
_sleep = time.sleep
"""As it is before gevent makes it one that lets others run."""
WARM = "warm"
"""File that says that the app has answered its first requests."""
THREADS = 64
"""Of the pool that calls are moved to."""
POLL_S = 0.05


class Giving:
    """One process that is treated."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.finder = Finder()
        self._noted: Set[str] = set()
        self._warm: Optional[List[bool]] = None

    def took(self, name: str) -> None:
        """Note once that a treatment met what it changes."""
        if name in self._noted:
            return
        self._noted.add(name)
        self.write("took", {"took": name, "at": time.monotonic()})

    def write(self, what: str, line: Mapping[str, Any]) -> None:
        """Write a line for the host, into the file of this process for what it is about."""
        with open(os.path.join(self.folder, "%s-%d.jsonl" % (what, os.getpid())), "a") as file:
            file.write(json.dumps(line) + "\n")

    def wait_for(self, name: str, every_s: float = POLL_S) -> None:
        """Wait until the host has made a file of this name, and look for it so often."""
        path = os.path.join(self.folder, name)
        while not os.path.exists(path):
            _sleep(every_s)

    def when_warm(self, act: Callable[[], None]) -> None:
        """Call `act` once when the app has answered its first requests, and in each worker forked from here."""

        def begin() -> None:
            threading.Thread(
                target=self._wait_for_warmth, args=(act,), name="velodrome-warm", daemon=True
            ).start()

        begin()
        os.register_at_fork(after_in_child=begin)

    def warmth(self) -> List[bool]:
        """Return a list that is empty until the app has answered its first requests."""
        if self._warm is None:
            warm: List[bool] = []
            self._warm = warm
            self.when_warm(lambda: warm.append(True))
        return self._warm

    def _wait_for_warmth(self, act: Callable[[], None]) -> None:
        self.wait_for(WARM)
        act()


def apply(environment: Mapping[str, str]) -> None:
    """Give this process what the variable names. Raises KeyError for a treatment that there is none of."""
    text = environment.get(VARIABLE)
    if not text:
        return
    document = json.loads(text)
    giving = Giving(document["folder"])
    for name, value in document["give"].items():
        TREATMENTS[name](giving, value)
    giving.finder.install()


def _building_longer(giving: Giving, kind: str) -> None:
    """Have what builds something of a kind compute for twice as long, once the app is warm."""
    warm = giving.warmth()

    def around(function: Callable[..., Any], args: Any, named: Any) -> Any:
        if not warm:
            return function(*args, **named)
        began = time.thread_time()
        try:
            return function(*args, **named)
        finally:
            until = 2 * time.thread_time() - began
            while time.thread_time() < until:
                pass
            giving.took("building-longer")

    building.follow(giving.finder, kind, around)


def _failing_imports(giving: Giving, _: bool) -> None:
    """Have modules that were looked for some times and are not there no longer be looked for."""
    sys.meta_path.append(Missing(lambda: giving.took("failing-imports")))


def _nodelay(giving: Giving, _: bool) -> None:
    """Turn Nagle's algorithm off (`TCP_NODELAY`) on every connection that the process accepts."""

    def patch(module: Any) -> None:
        before = module.socket.accept

        def accept(self: Any) -> Any:
            accepted, address = before(self)
            is_tcp = accepted.type == module.SOCK_STREAM and accepted.family in (
                module.AF_INET,
                module.AF_INET6,
            )
            if is_tcp and not accepted.getsockopt(module.IPPROTO_TCP, module.TCP_NODELAY):
                accepted.setsockopt(module.IPPROTO_TCP, module.TCP_NODELAY, 1)
                giving.took("nodelay")
            return accepted, address

        module.socket.accept = accept

    giving.finder.after("socket", patch)


def _collector(giving: Giving, _: str) -> None:
    """Have the garbage collector freeze what is there when the app is warm."""
    import gc

    def act() -> None:
        gc.collect()
        gc.freeze()
        giving.took("collector")

    giving.when_warm(act)


def _switch_interval(giving: Giving, seconds: float) -> None:
    """Have a thread that computes give up the interpreter's lock after so long, where another one wants it."""
    sys.setswitchinterval(seconds)
    giving.took("switch-interval")


LOG_RECORDS = 1000
"""Of `logging` that wait at most for the thread that calls the handlers; further records are dropped."""


def _logging(giving: Giving, how: str) -> None:
    """Turn the records of `logging` `off`, or have the handlers called by a thread of their own (`queued`)."""
    queues: Dict[int, Any] = {}

    def called(queue: Any) -> None:
        while True:
            before, logger, record = queue.get()
            before(logger, record)

    def queued(module: Any) -> None:
        from queue import Full, Queue

        before = module.Logger.callHandlers

        def call_handlers(self: Any, record: Any) -> None:
            giving.took("logging")
            queue = queues.get(os.getpid())  # threads stay behind in a fork
            if queue is None:
                queue = queues[os.getpid()] = Queue(LOG_RECORDS)
                threading.Thread(target=called, args=(queue,), name="velodrome-logging", daemon=True).start()
            # What is logged may be changed before the thread comes to it.
            record.msg, record.args = record.getMessage(), None
            # A queue without an end would only move the fault: memory would grow instead.
            with suppress(Full):
                queue.put_nowait((before, self, record))

        module.Logger.callHandlers = call_handlers

    def off(module: Any) -> None:
        def is_enabled_for(self: Any, level: int) -> bool:
            giving.took("logging")
            return False

        module.Logger.isEnabledFor = is_enabled_for

    giving.finder.after("logging", queued if how == "queued" else off)


# In a class, a name that begins with two underscores and does not end so is that of another one.
IN_THREAD, LONGER = "__velodrome_in_thread__", "__velodrome_longer_%d__"


def _in_thread(giving: Giving, sites: Any) -> None:
    """Move calls that stand in an `async def` to a thread, and await them there."""
    pools: List[Any] = []

    async def in_thread(func: Any, *args: Any, **named: Any) -> Any:
        import asyncio
        import contextvars
        from concurrent.futures import ThreadPoolExecutor
        from functools import partial

        if not pools:
            pools.append(ThreadPoolExecutor(THREADS, thread_name_prefix="velodrome"))
        giving.took("in-thread")
        context = contextvars.copy_context()
        call = partial(context.run, func, *args, **named)
        return await asyncio.get_event_loop().run_in_executor(pools[0], call)

    for site in sites:
        change = Awaited(Place.of(site), IN_THREAD)
        giving.finder.rewrite(site["file"], change.visit, {IN_THREAD: in_thread})


def _longer(giving: Giving, sites: Any) -> None:
    """Make calls take longer, by `more_s` seconds in which nothing computes."""
    for number, site in enumerate(sites):

        def longer(func: Any, *args: Any, _more_s: float = site["more_s"], **named: Any) -> Any:
            _sleep(_more_s)
            giving.took("longer")
            return func(*args, **named)

        name = LONGER % number
        change = Wrapped(Place.of(site), name)
        giving.finder.rewrite(site["file"], change.visit, {name: longer})


def _background_detached(giving: Giving, _: bool) -> None:
    """Have Starlette's background tasks run in a task of their own, so that the app's call returns before them."""

    def patch(module: Any) -> None:
        import asyncio
        import contextvars

        within = contextvars.ContextVar("velodrome_background", default=False)
        running: Set[Any] = set()

        def detach(cls: Any) -> None:
            before = cls.__call__

            async def in_background(self: Any) -> None:
                within.set(True)  # of this task alone: tasks of a list follow each other as they did
                await before(self)

            async def call(self: Any) -> None:
                if within.get():
                    await before(self)
                    return
                giving.took("background-detached")
                task = asyncio.ensure_future(in_background(self))
                running.add(task)
                task.add_done_callback(running.discard)

            cls.__call__ = call

        detach(module.BackgroundTask)
        detach(module.BackgroundTasks)

    giving.finder.after("starlette.background", patch)


def _reuseport(giving: Giving, _: bool) -> None:
    """Have each worker listen on a socket of its own (`SO_REUSEPORT`) in place of one that was bound for all."""

    def bound_together(module: Any) -> None:
        before = module.socket.bind

        def bind(self: Any, address: Any) -> None:
            if self.type == module.SOCK_STREAM and self.family in (module.AF_INET, module.AF_INET6):
                self.setsockopt(module.SOL_SOCKET, module.SO_REUSEPORT, 1)
            before(self, address)

        module.socket.bind = bind

    def own(shared: Any) -> Any:
        import socket

        # One that listens already has a queue that somebody must go on emptying.
        if shared.family == socket.AF_UNIX or shared.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
            return shared
        made = socket.socket(shared.family, socket.SOCK_STREAM)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind(shared.getsockname())
        giving.took("reuseport")
        return made

    def patch(cls: Any) -> None:
        before = cls.create_server

        async def create_server(self: Any, *args: Any, **more: Any) -> Any:
            if more.get("sock") is not None:
                more["sock"] = own(more["sock"])
            return await before(self, *args, **more)

        cls.create_server = create_server

    giving.finder.after("socket", bound_together)
    giving.finder.after("asyncio.base_events", lambda module: patch(module.BaseEventLoop))
    giving.finder.after("uvloop", lambda module: patch(module.Loop))


def _read_body(giving: Giving, _: bool) -> None:
    """Have gunicorn's workers and uvicorn read the body of a request before the app is called."""

    def wsgi(app: Any) -> Any:
        import io

        def reading(environ: Any, start_response: Any) -> Any:
            length = int(environ.get("CONTENT_LENGTH") or 0)
            if length:
                giving.took("read-body")
                environ["wsgi.input"] = io.BytesIO(environ["wsgi.input"].read(length))
            return app(environ, start_response)

        return reading

    def asgi(app: Any) -> Any:
        async def reading(scope: Any, receive: Any, send: Any) -> None:
            if scope["type"] != "http":
                await app(scope, receive, send)
                return
            messages = [await receive()]
            while messages[-1].get("more_body"):
                giving.took("read-body")
                messages.append(await receive())

            async def again() -> Any:
                return messages.pop(0) if messages else await receive()

            await app(scope, again, send)

        return reading

    life.before_app(giving, wsgi, asgi)


def _cancel_on_disconnect(giving: Giving, _: bool) -> None:
    """Have uvicorn cancel the app's call when the client of an unanswered request has left."""

    def leaving(app: Any) -> Any:
        import asyncio

        async def watched(scope: Any, receive: Any, send: Any) -> None:
            if scope["type"] != "http":
                await app(scope, receive, send)
                return
            messages: Any = asyncio.Queue()
            state = {"answered": False, "left": False}

            async def listen() -> None:
                while True:
                    message = await receive()
                    if message["type"] == "http.disconnect" and not state["answered"]:
                        state["left"] = True
                        giving.took("cancelled")
                        call.cancel()
                        return
                    messages.put_nowait(message)
                    if message["type"] == "http.disconnect":
                        return

            async def answer(message: Any) -> None:
                # What follows the answer is work of the app's own choice.
                if message["type"] == "http.response.body" and not message.get("more_body"):
                    state["answered"] = True
                await send(message)

            call = asyncio.ensure_future(app(scope, messages.get, answer))
            listener = asyncio.ensure_future(listen())
            try:
                await call
            except asyncio.CancelledError:
                if not state["left"]:
                    raise
            finally:
                listener.cancel()

        return watched

    life.before_asgi(giving, leaving)


_BEGIN = re.compile(r"\s*BEGIN(\s+DEFERRED)?(\s+TRANSACTION)?\s*;?\s*", re.IGNORECASE)


def _sqlite_waits(giving: Giving, seconds: float) -> None:
    """Have connections of `sqlite3` wait so long for a lock, and transactions take theirs when they begin.

    A transaction that has read something and then writes is refused at once where another one has written since: to
    wait would not help it.
    """

    def execute(before: Callable[..., Any], cursor: Any, statement: str, *values: Any) -> Any:
        return before(cursor, "BEGIN IMMEDIATE" if _BEGIN.fullmatch(statement) else statement, *values)

    def connected(connect: Callable[[], Any]) -> Any:
        giving.took("sqlite-waits")
        connection = connect()
        connection.execute("PRAGMA busy_timeout = %d" % round(1000 * seconds))
        return connection

    statements.in_sqlite(giving.finder, execute, connected)


def _statements_longer(giving: Giving, longer_s: Mapping[str, float]) -> None:
    """Have statements, given without their values, take so many seconds longer."""

    def timer_of(normalized: str) -> Optional[statements.Timer]:
        if normalized not in longer_s:
            return None
        giving.took("statements-longer")
        timer = statements.Timer()
        timer.longer_s = longer_s[normalized]
        return timer

    statements.follow(giving.finder, timer_of)


GATHERED = "__velodrome_gathered__"


def _gather_awaits(giving: Giving, runs: Any) -> None:
    """Have awaits that follow each other, and do not need each other, run at once."""

    async def gathered(*started: Any) -> Any:
        import asyncio

        giving.took("gathered")
        return await asyncio.gather(*started)

    for run in runs:
        change = gathering.Gathered([(run["line"], run["end_line"])], GATHERED)
        giving.finder.rewrite(run["file"], change.visit, {GATHERED: gathered})


IN_GREEN_THREAD = "__velodrome_in_green_thread__"


def _in_green_thread(giving: Giving, sites: Any) -> None:
    """Move calls to threads of gevent's pool, so that other greenlets run until they return."""

    def in_green_thread(func: Any, *args: Any, **named: Any) -> Any:
        import contextvars

        import gevent  # type: ignore[import-not-found,import-untyped,unused-ignore]

        pool = gevent.get_hub().threadpool
        pool.maxsize = max(pool.maxsize, THREADS)
        giving.took("in-green-thread")
        return pool.apply(contextvars.copy_context().run, (func, *args), named)

    for site in sites:
        change = Wrapped(Place.of(site), IN_GREEN_THREAD)
        giving.finder.rewrite(site["file"], change.visit, {IN_GREEN_THREAD: in_green_thread})


IP_LOCAL_PORT_RANGE = 51
"""ip(7), since Linux 6.3."""
PORTS = 32_768, 60_999
"""Where this system does not say which ports it gives out."""


def _few_ports(giving: Giving, count: int) -> None:
    """Have connections that the process opens choose among so few ports, as if the others were taken.

    Each start of a server has others: those of the one before are taken for a minute yet.
    """
    first, last = PORTS
    try:
        with open("/proc/sys/net/ipv4/ip_local_port_range") as file:
            first, last = map(int, file.read().split())
    except (OSError, ValueError):
        pass
    last -= zlib.crc32(giving.folder.encode()) % max((last - first) // count, 1) * count
    chosen = struct.pack("=I", last - count + 1 | last << 16)

    def patch(module: Any) -> None:
        inet = (module.AF_INET, module.AF_INET6)

        def narrowed(name: str) -> None:
            before = getattr(module.socket, name)

            def connect(sock: Any, address: Any) -> Any:
                # Bound to an address alone, as `source_address` has it, a socket gets its port before it connects.
                chooses = name != "bind" or (
                    isinstance(address, tuple) and len(address) > 1 and address[1] == 0
                )
                if chooses and sock.family in inet and sock.type == module.SOCK_STREAM:
                    try:
                        sock.setsockopt(module.IPPROTO_IP, IP_LOCAL_PORT_RANGE, chosen)
                        giving.took("few-ports")
                    except OSError:  # an older kernel
                        pass
                return before(sock, address)

            setattr(module.socket, name, connect)

        narrowed("connect")
        narrowed("connect_ex")
        narrowed("bind")

    def of_uvloop(module: Any) -> None:
        before = module.Loop.create_connection

        async def create_connection(
            loop: Any, protocol: Any, host: Any = None, port: Any = None, **named: Any
        ) -> Any:
            if host is None or named.get("sock") is not None:
                return await before(loop, protocol, host, port, **named)
            # By a socket of Python's, whose `connect` is the one above.
            import socket

            (family, _, _, _, address), *_ = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
            sock = socket.socket(family, socket.SOCK_STREAM)
            sock.setblocking(False)
            try:
                await loop.sock_connect(sock, address)
            except BaseException:
                sock.close()
                raise
            if named.get("ssl") and not named.get("server_hostname"):
                named["server_hostname"] = host
            for name in ("family", "proto", "flags", "local_addr", "happy_eyeballs_delay", "interleave"):
                named.pop(name, None)
            return await before(loop, protocol, None, None, **{**named, "sock": sock})

        module.Loop.create_connection = create_connection

    giving.finder.after("socket", patch)
    giving.finder.after("uvloop", of_uvloop)


def _heartbeat(giving: Giving, how: Mapping[str, float]) -> None:
    """Watch the event loops of the process from a thread beside them."""
    from velodrome.guest.injected import heartbeat

    heart = heartbeat.Heart(giving.folder, how["late_s"], os.path.join(giving.folder, WARM))
    giving.finder.after("asyncio.base_events", lambda module: heart.watch(module.BaseEventLoop))
    giving.finder.after("uvloop", lambda module: heart.watch(module.Loop))
    giving.finder.after("gevent.hub", lambda module: heart.watch_gevent(module.Hub))
    giving.finder.after("trio._core._run", heart.watch_trio)
    giving.finder.after("tornado.ioloop", heart.watch_tornado)
    giving.finder.after("socket", heart.watch_connects)
    giving.finder.after("uvloop", lambda module: heart.watch_connects_of(module.Loop))
    statements.follow(giving.finder, heart.timer_of)
    for kind in building.KINDS:
        building.follow(giving.finder, kind, heart.watch_builder(building.MARK % kind))
    os.register_at_fork(before=heart.forks, after_in_child=heart.forked)


def _collections(giving: Giving, _: bool) -> None:
    """Note how long collections of garbage take."""
    from velodrome.guest.injected import heartbeat

    heartbeat.Collections(giving.folder)


TREATMENTS = {
    "building-longer": _building_longer,
    "failing-imports": _failing_imports,
    "nodelay": _nodelay,
    "collector": _collector,
    "switch-interval": _switch_interval,
    "logging": _logging,
    "in-thread": _in_thread,
    "longer": _longer,
    "in-green-thread": _in_green_thread,
    "gathered": _gather_awaits,
    "few-ports": _few_ports,
    "heartbeat": _heartbeat,
    "collections": _collections,
    "background-detached": _background_detached,
    "reuseport": _reuseport,
    "read-body": _read_body,
    "cancelled": _cancel_on_disconnect,
    "sqlite-waits": _sqlite_waits,
    "statements-longer": _statements_longer,
    **bounds.TREATMENTS,
    **life.TREATMENTS,
    **allocations.TREATMENTS,
    **libraries.TREATMENTS,
}  # type: Dict[str, Callable[[Giving, Any], None]]


# --- A call in a source file, found by where it stands: that of the instruction that was running (`code.co_positions`,
# Python 3.11 and newer), lines from 1, columns in bytes from 0. Without columns the only outermost call that begins on
# the line is meant.


class Wrapped(ast.NodeTransformer):
    """Turns the call `f(a, b=c)` into `name(f, a, b=c)`; `changed` says how often, which is right only once."""

    def __init__(self, place: Place, name: str) -> None:
        self.place, self.name = place, name
        self.changed = 0
        self._inside: List[ast.AST] = []

    def visit(self, node: ast.AST) -> Any:
        """Visit a node, knowing what it is inside of."""
        if isinstance(
            node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.GeneratorExp, ast.ClassDef)
        ):
            self._inside.append(node)
            try:
                return super().visit(node)
            finally:
                self._inside.pop()
        return super().visit(node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """Change the call that is meant."""
        if not self.place.is_at(node) or not self._can(node):
            return self.generic_visit(node)
        self.changed += 1
        func, args, keywords = node.func, node.args, node.keywords
        wrapper = ast.copy_location(ast.Name(self.name, ast.Load()), node)
        call = ast.Call(wrapper, [func, *args], keywords)
        return ast.copy_location(self._around(ast.copy_location(call, node)), node)

    def _can(self, node: ast.Call) -> bool:
        # `super()` finds out by its name in the source what it is called in.
        return not (isinstance(node.func, ast.Name) and node.func.id == "super")

    def _around(self, call: ast.Call) -> ast.expr:
        return call


class Awaited(Wrapped):
    """Turns it into `await name(f, a, b=c)`, where an `async def` is what it stands in."""

    def _can(self, node: ast.Call) -> bool:
        return (
            super()._can(node) and bool(self._inside) and isinstance(self._inside[-1], ast.AsyncFunctionDef)
        )

    def _around(self, call: ast.Call) -> ast.expr:
        return ast.Await(call)
