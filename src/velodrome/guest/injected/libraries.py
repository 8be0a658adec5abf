"""Treatments of packages: what is otherwise in a library than the app has it, each noted when it takes hold.

What a handler answers stays as it is, but for `compression`, with which it comes as a client gets it that accepts none,
or with the same content, but larger.
"""

from __future__ import annotations

import inspect
import itertools
import os
import threading
from contextlib import suppress
from types import ModuleType
from typing import (
    Any,
    AsyncIterator,
    Callable,
    Dict,
    List,
    Optional,
    Sequence,
    Set,
)

from velodrome.guest.injected import clients, connections
from velodrome.guest.injected.giving import Giving, Treatments

TRIES = 3
"""Responses of a route that must be the same without validation before it is left out."""
LARGE = 500
"""Bytes that a response is compressed from."""
SAMPLED_OFF = "velodrome: sampled off"


def _sync_to_async(giving: Giving, count: int) -> None:
    """Have asgiref's one thread for all that is thread-sensitive be so many."""

    def patch(module: Any) -> None:
        from concurrent.futures import ThreadPoolExecutor

        class Threads(ThreadPoolExecutor):
            def submit(self, *args: Any, **named: Any) -> Any:
                giving.took("sync-to-async")
                return super().submit(*args, **named)

        module.SyncToAsync.single_thread_executor = Threads(count, thread_name_prefix="velodrome")

    giving.finder.after("asgiref.sync", patch)


def _compression(giving: Giving, how: str) -> None:
    """Have middleware compress no response, as if the client accepted none that is compressed.

    `stored`: what middleware of the app's own compresses is in the form of gzip, but as large as before.
    """

    def passed_on(name: str) -> Callable[[ModuleType], None]:
        def patch(module: Any) -> None:
            async def call(self: Any, scope: Any, receive: Any, send: Any) -> None:
                giving.took("compression")
                await self.app(scope, receive, send)

            getattr(module, name).__call__ = call

        return patch

    def django(module: Any) -> None:
        def process_response(self: Any, request: Any, response: Any) -> Any:
            giving.took("compression")
            return response

        module.GZipMiddleware.process_response = process_response

    def flask(module: Any) -> None:
        def after_request(self: Any, response: Any) -> Any:
            giving.took("compression")
            return response

        module.Compress.after_request = after_request

    def aiohttp(module: Any) -> None:
        def enable_compression(self: Any, *args: Any, **named: Any) -> None:
            giving.took("compression")

        module.StreamResponse.enable_compression = enable_compression

    def stored(module: Any) -> None:
        compress, compressobj = module.compress, module.compressobj

        def storing(data: Any, level: int = -1, *args: Any, **named: Any) -> Any:
            if len(data) < LARGE:
                return compress(data, level, *args, **named)
            giving.took("compression")
            return compress(data, 0, *args, **named)

        def storing_pieces(level: int = -1, *args: Any, **named: Any) -> Any:
            giving.took("compression")
            return compressobj(0, *args, **named)

        module.compress, module.compressobj = storing, storing_pieces

    giving.finder.after("starlette.middleware.gzip", passed_on("GZipMiddleware"))
    giving.finder.after("brotli_asgi", passed_on("BrotliMiddleware"))
    giving.finder.after("django.middleware.gzip", django)
    giving.finder.after("flask_compress.flask_compress", flask)
    giving.finder.after("aiohttp.web_response", aiohttp)
    if how == "stored":
        giving.finder.after("zlib", stored)


def _tls_context(giving: Giving, _: str) -> None:
    """Have clients that are made the same way share one TLS context, and read the bundle of certificates once."""

    def patch(module: Any) -> None:
        before = module.create_default_context
        made: Dict[Any, Any] = {}

        def create_default_context(*args: Any, **named: Any) -> Any:
            key = (args, tuple(sorted(named.items())))
            if key in made:
                giving.took("tls-context")
            else:
                made[key] = before(*args, **named)
            return made[key]

        module.create_default_context = create_default_context

    giving.finder.after("ssl", patch)


def _validation(giving: Giving, how: str) -> None:
    """Have FastAPI pass on what a handler returns, where that comes to the same as validated and serialized.

    `twice`: have it validate that once more, and serialize it, where it does not serialize it as text at once, which
    somebody has to do.
    """

    def patch(module: Any) -> None:
        before = module.serialize_response
        same: Dict[int, int] = {}

        async def serialize_response(*, field: Any = None, response_content: Any = None, **more: Any) -> Any:
            if field is None or more.get("dump_json"):
                return await before(field=field, response_content=response_content, **more)
            seen = same.get(id(field), 0)
            if seen >= TRIES:
                giving.took("validation")
                return _plain(response_content)
            found = await before(field=field, response_content=response_content, **more)
            if seen >= 0:
                # Keys in another order, or a tuple for a list, are another answer.
                same[id(field)] = seen + 1 if repr(_plain(response_content)) == repr(found) else -1
            return found

        module.serialize_response = serialize_response

    def again(module: Any) -> None:
        before = module.serialize_response

        async def serialize_response(*, field: Any = None, response_content: Any = None, **more: Any) -> Any:
            # An iterator would be at its end.
            if field is not None and not hasattr(response_content, "__next__"):
                giving.took("validation")
                if not more.get("dump_json"):
                    await before(field=field, response_content=response_content, **more)
                elif more.get("is_coroutine", True):
                    field.validate(response_content, {}, loc=("response",))
                else:
                    await module.run_in_threadpool(field.validate, response_content, {}, loc=("response",))
            return await before(field=field, response_content=response_content, **more)

        module.serialize_response = serialize_response

    giving.finder.after("fastapi.routing", again if how == "twice" else patch)


def _plain(content: Any) -> Any:
    """Return models as plain data, and plain data as it is."""
    if isinstance(content, list) and content and hasattr(content[0], "model_dump"):
        return [item.model_dump(mode="json", by_alias=True) for item in content]
    return content.model_dump(mode="json", by_alias=True) if hasattr(content, "model_dump") else content


def _base_middleware(giving: Giving, _: str) -> None:
    """Have Starlette's BaseHTTPMiddleware call the app in its own task, without streams between two tasks.

    The response is there as a whole before the middleware sees it: one that never ends would never begin.
    """

    def patch(module: Any) -> None:
        base = module.BaseHTTPMiddleware
        request_of = getattr(module, "_CachedRequest", module.Request)
        sends = "send" in inspect.signature(request_of).parameters
        response_of = getattr(module, "_StreamingResponse", None) or module.StreamingResponse

        async def call(self: Any, scope: Any, receive: Any, send: Any) -> None:
            if scope["type"] != "http":
                await self.app(scope, receive, send)
                return
            giving.took("base-middleware")
            request = request_of(scope, receive, send) if sends else request_of(scope, receive)
            theirs = getattr(request, "wrapped_receive", receive)

            async def call_next(request: Any) -> Any:
                messages: List[Any] = []

                async def keep(message: Any) -> None:
                    messages.append(message)

                await self.app(scope, theirs, keep)
                starts = [message for message in messages if message["type"] == "http.response.start"]
                if not starts:
                    raise RuntimeError("No response returned.")

                async def body() -> AsyncIterator[Any]:
                    for message in messages:
                        if message["type"] == "http.response.pathsend":
                            yield message
                        elif message.get("body"):
                            yield message["body"]

                response = response_of(content=body(), status_code=starts[0]["status"])
                response.raw_headers = starts[0]["headers"]
                return response

            response = await self.dispatch_func(request, call_next)
            await response(scope, theirs, send)

        base.__call__ = call

    giving.finder.after("starlette.middleware.base", patch)


def _telemetry(giving: Giving, _: str) -> None:
    """Have OpenTelemetry and Sentry sample no trace."""

    def opentelemetry(module: Any) -> None:
        off = module.sampling.ALWAYS_OFF
        before = module.TracerProvider.__init__

        class Off(module.sampling.Sampler):  # type: ignore[misc]
            def should_sample(self, *args: Any, **named: Any) -> Any:
                giving.took("telemetry")
                return off.should_sample(*args, **named)

            def get_description(self) -> str:
                return SAMPLED_OFF

        def init(self: Any, *args: Any, **named: Any) -> None:
            before(self, *args, **named)
            self.sampler = Off()

        module.TracerProvider.__init__ = init

    def sentry(module: Any) -> None:
        def decide(self: Any, sampling_context: Any) -> None:
            giving.took("telemetry")
            self.sampled = False

        module.Transaction._set_initial_sampling_decision = decide

    giving.finder.after("opentelemetry.sdk.trace", opentelemetry)
    giving.finder.after("sentry_sdk.tracing", sentry)


def _cache_lookups(giving: Giving, _: str) -> None:
    """Have each name looked up once, and what was found used again."""

    def patch(module: Any) -> None:
        before = module.getaddrinfo
        found: Dict[Any, Any] = {}

        def getaddrinfo(*args: Any, **named: Any) -> Any:
            key = (args, tuple(sorted(named.items())))
            if key in found:
                giving.took("resolved")
            else:
                found[key] = before(*args, **named)
            return list(found[key])

        module.getaddrinfo = getaddrinfo

    def aiohttp(module: Any) -> None:
        before = module.TCPConnector._resolve_host
        found: Dict[Any, Any] = {}

        # A resolver may be the app's own, and its answers are kept for 10 s, or not at all.
        async def resolve_host(self: Any, host: str, port: int, *args: Any, **named: Any) -> Any:
            if ":" in host or host.replace(".", "").isdigit():
                return await before(self, host, port, *args, **named)
            key = (host, port, self._family)
            if key not in found:
                found[key] = await before(self, host, port, *args, **named)
            elif not self._use_dns_cache or (host, port) not in self._cached_hosts:
                giving.took("resolved")
            return list(found[key])

        module.TCPConnector._resolve_host = resolve_host

    giving.finder.after("socket", patch)
    giving.finder.after("aiohttp.connector", aiohttp)


def _urllib3_connections(giving: Giving, count: int) -> None:
    """Have every pool of urllib3 that keeps fewer connections keep so many, and managers that many pools."""

    def pools(module: Any) -> None:
        manager = module.PoolManager
        before, pool_of = manager.__init__, manager.connection_from_pool_key

        def init(self: Any, num_pools: int = 10, *args: Any, **named: Any) -> None:
            self.velodrome_pools = num_pools
            before(self, max(num_pools, count), *args, **named)

        def connection_from_pool_key(self: Any, *args: Any, **named: Any) -> Any:
            found = pool_of(self, *args, **named)
            if len(self.pools) > self.velodrome_pools:  # one would have been thrown away with its connections
                giving.took("urllib3-connections")
            return found

        manager.__init__, manager.connection_from_pool_key = init, connection_from_pool_key

    def patch(module: Any) -> None:
        before = module.HTTPConnectionPool.__init__
        signature = inspect.signature(before)

        def init(*args: Any, **named: Any) -> None:
            bound = signature.bind(*args, **named)  # those over TLS give it by its place
            bound.apply_defaults()
            if bound.arguments["maxsize"] < count:
                bound.arguments["maxsize"] = count
                giving.took("urllib3-connections")
            before(*bound.args, **bound.kwargs)

        module.HTTPConnectionPool.__init__ = init

    giving.finder.after("urllib3.connectionpool", patch)
    giving.finder.after("urllib3.poolmanager", pools)


def _session_each(giving: Giving, _: bool) -> None:
    """Have statements that several tasks send over one asynchronous session of SQLAlchemy at once use one each.

    A session that holds unwritten changes is left alone: another one would not see them.
    """

    def apart(cls: Any, names: Sequence[str], other_of: Callable[[Any], Any]) -> None:
        busy: Dict[int, Any] = {}

        def patch(name: str) -> None:
            before = getattr(cls, name)

            async def call(self: Any, *args: Any, **named: Any) -> Any:
                import asyncio

                task = asyncio.current_task()
                holder = busy.get(id(self))
                if holder is None:
                    busy[id(self)] = task
                    try:
                        return await before(self, *args, **named)
                    finally:
                        del busy[id(self)]
                session = getattr(self, "sync_session", None)
                changed = session is not None and (session.new or session.dirty or session.deleted)
                if holder is task or changed:
                    return await before(self, *args, **named)
                giving.took("session-each")
                async with other_of(self) as other:
                    return await before(other, *args, **named)

            setattr(cls, name, call)

        for name in names:
            patch(name)

    def session_like(session: Any) -> Any:
        return type(session)(
            bind=session.bind,
            binds=getattr(session, "binds", None),
            sync_session_class=type(session.sync_session),
            expire_on_commit=False,
        )

    def sessions(module: Any) -> None:
        apart(module.AsyncSession, ("execute", "scalar", "scalars", "get"), session_like)

    def connections(module: Any) -> None:
        apart(
            module.AsyncConnection,
            ("execute", "scalar", "scalars"),
            lambda connection: connection.engine.connect(),
        )

    giving.finder.after("sqlalchemy.ext.asyncio.session", sessions)
    giving.finder.after("sqlalchemy.ext.asyncio.engine", connections)


MULTICALLABLES = ("unary_unary", "unary_stream", "stream_unary", "stream_stream")


def _grpc_channels(giving: Giving, count: int) -> None:
    """Have each channel of a gRPC client be so many in turn, each with a TCP connection of its own."""

    class InTurn:
        """Calls one of several that are alike after the other; whatever else is wanted of them the first has."""

        def __init__(self, every: Sequence[Any]) -> None:
            self._every, self._turns = every, itertools.cycle(every)

        def __call__(self, *args: Any, **named: Any) -> Any:
            giving.took("grpc-channels")
            return next(self._turns)(*args, **named)

        def with_call(self, *args: Any, **named: Any) -> Any:
            giving.took("grpc-channels")
            return next(self._turns).with_call(*args, **named)

        def future(self, *args: Any, **named: Any) -> Any:
            giving.took("grpc-channels")
            return next(self._turns).future(*args, **named)

    def spread(base: Any, is_async: bool) -> Any:
        class Channels(base):  # type: ignore[misc]
            def __init__(self, every: Sequence[Any]) -> None:
                self._every = every

            def __getattr__(self, name: str) -> Any:
                return getattr(self._every[0], name)

        def multicallable(name: str) -> Any:
            def made(self: Any, *args: Any, **named: Any) -> Any:
                return InTurn([getattr(channel, name)(*args, **named) for channel in self._every])

            return made

        def first(name: str) -> Any:
            return lambda self, *args, **named: getattr(self._every[0], name)(*args, **named)

        def close(self: Any, *args: Any, **named: Any) -> None:
            for channel in self._every:
                channel.close(*args, **named)

        async def aclose(self: Any, *args: Any, **named: Any) -> None:
            for channel in self._every:
                await channel.close(*args, **named)

        async def aenter(self: Any) -> Any:
            return self

        async def aexit(self: Any, *error: Any) -> None:
            await aclose(self)

        own = {name: first(name) for name in getattr(base, "__abstractmethods__", ())}
        own.update({name: multicallable(name) for name in MULTICALLABLES})
        own["close"] = aclose if is_async else close
        if is_async:
            own["__aenter__"], own["__aexit__"] = aenter, aexit
        else:
            own["__enter__"] = lambda self: self
            own["__exit__"] = lambda self, *error: close(self)
        return type("Channels", (Channels,), own)

    def patched(module: Any, base: Any, is_async: bool) -> None:
        channels = spread(base, is_async)

        def several(name: str, at: int) -> None:
            before = getattr(module, name)

            def channel(*args: Any, **named: Any) -> Any:
                given = list(args)
                theirs = given.pop(at) if len(given) > at else named.pop("options", None)
                more = [*(theirs or ()), ("grpc.use_local_subchannel_pool", 1)]
                rest = given[at:]
                every = [
                    before(*given[:at], more, *rest, **named)
                    if len(given) >= at
                    else before(*given, options=more, **named)
                    for _ in range(count)
                ]
                return channels(every)

            setattr(module, name, channel)

        several("insecure_channel", 1)
        several("secure_channel", 2)

    giving.finder.after("grpc", lambda module: patched(module, module.Channel, False))
    giving.finder.after("grpc.aio", lambda module: patched(module, module.Channel, True))


SETTERS = (
    "openblas_set_num_threads",
    "openblas_set_num_threads64_",
    "scipy_openblas_set_num_threads",
    "scipy_openblas_set_num_threads64_",
    "MKL_Set_Num_Threads",
    "bli_thread_set_num_threads",
    "omp_set_num_threads",
)
"""Functions of the libraries that compute in threads of their own, each of which takes a count."""
COMPUTING = ("openblas", "mkl_rt", "libblis", "libgomp", "libiomp", "libomp")


def _native_threads(giving: Giving, count: int) -> None:
    """Have BLAS and OpenMP compute in so many threads, also where the app sets another number: when it is warm."""

    def act() -> None:
        import ctypes

        for path in _mapped_files():
            if any(part in os.path.basename(path) for part in COMPUTING):
                library = ctypes.CDLL(path)
                for name in SETTERS:
                    setter = getattr(library, name, None)
                    if setter is not None:
                        setter(count)
                        giving.took("native-threads")

    giving.when_warm(act)


def _mapped_files() -> List[str]:
    """Return the files of the libraries in this process."""
    found: Dict[str, Optional[str]] = {}
    try:
        with open("/proc/self/maps") as lines:
            for line in lines:
                parts = line.split(None, 5)
                if len(parts) == 6 and ".so" in parts[5]:
                    found[parts[5].strip()] = None
    except OSError:  # no Linux
        pass
    return list(found)


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


TREATMENTS: Treatments = {
    "logging": _logging,
    "background-detached": _background_detached,
    "sync-to-async": _sync_to_async,
    "compression": _compression,
    "tls-context": _tls_context,
    "clients-shared": clients.share,
    "validation": _validation,
    "base-middleware": _base_middleware,
    "telemetry": _telemetry,
    "kept-connections": connections.keep,
    "resolved": _cache_lookups,
    "urllib3-connections": _urllib3_connections,
    "session-each": _session_each,
    "grpc-channels": _grpc_channels,
    "native-threads": _native_threads,
}
