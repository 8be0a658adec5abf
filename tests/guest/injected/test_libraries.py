"""Treatments of packages take hold in the package, are noted, and change no answer."""

from textwrap import dedent

import pytest
from tests.guest.injected.conftest import Injected
from tests.ward import cells
from tests.ward.cells import (
    ANYIO,
    ASGIREF,
    ASYNC_SESSIONS,
    FASTAPI,
    GRPC,
    HTTPX,
    NUMPY,
    OTEL,
    REQUESTS,
    SQLALCHEMY,
    STARLETTE,
    TORNADO,
)

from velodrome.guest.injected.bounds import BEYOND
from velodrome.guest.injected.giving import WARM

CALLING = """
import asyncio

def response_of(app, path="/", **headers):
    found = []
    scope = {"type": "http", "method": "GET", "path": path, "raw_path": path.encode(), "query_string": b"",
             "headers": [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()],
             "scheme": "http", "server": ("127.0.0.1", 80), "client": ("127.0.0.1", 1), "root_path": "",
             "http_version": "1.1", "asgi": {"version": "3.0", "spec_version": "2.4"}}
    async def receive():
        if found and not found[-1].get("more_body"): await asyncio.sleep(3600)
        return {"type": "http.request", "body": b"", "more_body": False}
    async def send(message): found.append(message)
    asyncio.run(app(scope, receive, send))
    return found[0]["status"], dict(found[0]["headers"]), b"".join(message.get("body", b"") for message in found[1:])
"""


@pytest.fixture
def calling(injected: Injected) -> Injected:
    (injected.app / "calling.py").write_text(CALLING)
    return injected


def test_what_asgiref_runs_in_its_one_thread_runs_in_several(injected: Injected) -> None:
    program = """
        import asyncio, threading
        from asgiref.sync import sync_to_async
        gate = threading.Barrier(4)
        async def main():
            await asyncio.gather(*(asyncio.create_task(sync_to_async(gate.wait)(20)) for _ in range(4)))
        asyncio.run(main())
        print("passed")
    """
    assert injected.run(program, {"sync-to-async": 8}, requires=(ASGIREF,)) == "passed\n"
    assert injected.took() == {"sync-to-async"}


def test_a_client_that_accepts_compression_is_answered_as_if_it_did_not(calling: Injected) -> None:
    program = """
        from calling import response_of
        from starlette.middleware.gzip import GZipMiddleware
        from starlette.responses import PlainTextResponse
        status, headers, body = response_of(GZipMiddleware(PlainTextResponse("x" * 2000)), accept_encoding="gzip")
        print(status, headers.get(b"content-encoding"), len(body) == 2000)
    """
    assert calling.run(program, {}, requires=(STARLETTE,)) == "200 b'gzip' False\n"
    assert calling.run(program, {"compression": "off"}, requires=(STARLETTE,)) == "200 None True\n"
    assert calling.took() == {"compression"}


DJANGO = """
    import django
    from django.conf import settings
    settings.configure(MIDDLEWARE=["django.middleware.gzip.GZipMiddleware"], ROOT_URLCONF=__name__)
    django.setup()
    from django.http import HttpResponse
    from django.test import RequestFactory
    from django.middleware.gzip import GZipMiddleware
    answer = GZipMiddleware(lambda request: HttpResponse("x" * 2000))(
        RequestFactory().get("/", HTTP_ACCEPT_ENCODING="gzip")
    )
    print(answer.get("Content-Encoding"))
"""
FLASK = """
    from flask import Flask
    from flask_compress import Compress
    app = Flask("shop")
    Compress(app)
    app.add_url_rule("/", view_func=lambda: "x" * 2000)
    print(app.test_client().get("/", headers={"Accept-Encoding": "gzip"}).headers.get("Content-Encoding"))
"""
BROTLI = """
    from calling import response_of
    from brotli_asgi import BrotliMiddleware
    from starlette.responses import PlainTextResponse
    _, headers, _ = response_of(BrotliMiddleware(PlainTextResponse("x" * 2000)), accept_encoding="br")
    print(headers[b"content-encoding"].decode() if b"content-encoding" in headers else None)
"""
AIOHTTP = """
    from aiohttp import web
    answer = web.Response(text="x" * 2000)
    answer.enable_compression()
    print("gzip" if answer.compression else None)
"""


@pytest.mark.parametrize(
    ("program", "requires", "encoding"),
    [
        (DJANGO, ("django==5.2.8",), "gzip"),
        (FLASK, ("flask==3.1.2", "flask-compress==1.18"), "gzip"),
        (BROTLI, ("brotli-asgi==1.4.0", STARLETTE), "br"),
        (AIOHTTP, (cells.AIOHTTP,), "gzip"),
    ],
    ids=["Django", "Flask", "Brotli", "aiohttp"],
)
def test_what_other_frameworks_compress_is_not_compressed(
    calling: Injected, program: str, requires: tuple[str, ...], encoding: str
) -> None:
    assert calling.run(program, {}, requires=requires) == f"{encoding}\n"
    assert calling.run(program, {"compression": "off"}, requires=requires) == "None\n"
    assert calling.took() == {"compression"}


def test_what_an_app_compresses_itself_is_stored_with_the_same_content(injected: Injected) -> None:
    program = """
        import gzip, io, zlib
        body = b"x" * 2000
        def pieces():
            out = io.BytesIO()
            with gzip.GzipFile(mode="wb", fileobj=out) as file:
                file.write(body)
            return out.getvalue()
        every = gzip.compress(body, compresslevel=9), zlib.compress(body), zlib.compress(body, level=6), pieces()
        print(*(len(packed) > 2000 for packed in every), len(gzip.compress(b"y" * 100)) < 100)
        assert gzip.decompress(every[0]) == zlib.decompress(every[1]) == gzip.decompress(every[3]) == body
    """
    assert injected.run(program, {"compression": "stored"}) == "True True True True True\n"
    assert injected.took() == {"compression"}
    assert injected.run(program, {"compression": "off"}) == "False False False False True\n"


def test_clients_that_are_made_alike_share_one_tls_context(injected: Injected) -> None:
    program = """
        import ssl
        first, other, third = (ssl.create_default_context(**how) for how in ({}, {}, {"cadata": None}))
        print(first is other, first is third)
    """
    assert injected.run(program, {}) == "False False\n"
    assert injected.run(program, {"tls-context": "shared"}) == "True False\n"
    assert injected.took() == {"tls-context"}


def test_a_client_of_httpx_takes_the_context_that_is_there(injected: Injected) -> None:
    program = "import httpx\nfor _ in range(2): httpx.Client().close()"
    injected.run(program, {"tls-context": "shared"}, requires=(HTTPX,))
    assert injected.took() == {"tls-context"}


VALIDATED = """
    from calling import response_of
    from fastapi import FastAPI
    from pydantic import BaseModel
    class Article(BaseModel):
        number: int
        price: float
    app = FastAPI()
    @app.get("/same")
    async def same() -> list[Article]: return [{"number": 1, "price": 2.5}]
    @app.get("/models")
    async def models() -> list[Article]: return [Article(number=1, price=2.5)]
    @app.get("/other")
    async def other() -> list[Article]: return [{"number": "1", "price": 2, "secret": 3}]
    print([response_of(app, "PATH")[2] for _ in range(5)])
"""


@pytest.mark.parametrize(("path", "took"), [("same", True), ("models", True), ("other", False)])
def test_validation_is_left_out_only_where_the_response_is_the_same(
    calling: Injected, path: str, took: bool
) -> None:
    program = VALIDATED.replace("PATH", f"/{path}")
    before = calling.run(program, {}, requires=(FASTAPI,))
    assert calling.run(program, {"validation": "off"}, requires=(FASTAPI,)) == before
    assert calling.took() == ({"validation"} if took else set())


@pytest.mark.parametrize("path", ["same", "models", "other"])
def test_validation_twice_changes_no_response(calling: Injected, path: str) -> None:
    program = VALIDATED.replace("PATH", f"/{path}")
    before = calling.run(program, {}, requires=(FASTAPI,))
    assert calling.run(program, {"validation": "twice"}, requires=(FASTAPI,)) == before
    assert calling.took() == {"validation"}


@pytest.mark.parametrize("starlette", [STARLETTE, "starlette==1.10.0"])
def test_base_middleware_in_one_task_answers_the_same(calling: Injected, starlette: str) -> None:
    program = """
        from calling import response_of
        from starlette.middleware.base import BaseHTTPMiddleware
        from starlette.responses import StreamingResponse
        async def parts():
            for part in ("a", "b"): yield part
        async def dispatch(request, call_next):
            response = await call_next(request)
            response.headers["x-shop"] = request.url.path
            return response
        async def app(scope, receive, send):
            await StreamingResponse(parts(), 201)(scope, receive, send)
        print(response_of(BaseHTTPMiddleware(app, dispatch)))
    """
    before = calling.run(program, {}, requires=(starlette,))
    assert "201" in before
    assert "ab" in before
    assert calling.run(program, {"base-middleware": "one-task"}, requires=(starlette,)) == before
    assert calling.took() == {"base-middleware"}


def test_no_span_is_recorded(injected: Injected) -> None:
    program = """
        from opentelemetry.sdk.trace import TracerProvider
        with TracerProvider().get_tracer("shop").start_as_current_span("one") as span:
            print(span.is_recording())
    """
    assert injected.run(program, {}, requires=(OTEL,)) == "True\n"
    assert injected.run(program, {"telemetry": "off"}, requires=(OTEL,)) == "False\n"
    assert injected.took() == {"telemetry"}


def test_sentry_samples_no_transaction(injected: Injected) -> None:
    program = """
        import sentry_sdk
        sentry_sdk.init(dsn="http://a@127.0.0.1:9/1", traces_sample_rate=1.0, transport=lambda envelope: None)
        with sentry_sdk.start_transaction(name="one") as transaction:
            print(transaction.sampled)
    """
    assert injected.run(program, {}, requires=("sentry-sdk==2.43.0",)) == "True\n"
    assert injected.run(program, {"telemetry": "off"}, requires=("sentry-sdk==2.43.0",)) == "False\n"
    assert injected.took() == {"telemetry"}


def test_connections_are_kept_where_there_was_no_pool(injected: Injected) -> None:
    program = """
        import sqlite3
        from sqlalchemy import create_engine, text
        from sqlalchemy.pool import NullPool
        made = []
        def connect():
            made.append(1)
            return sqlite3.connect(":memory:", check_same_thread=False)
        engine = create_engine("sqlite://", creator=connect, poolclass=NullPool)
        for _ in range(5):
            with engine.connect() as connection: connection.execute(text("select 1"))
        print(len(made))
    """
    assert injected.run(program, {}, requires=(SQLALCHEMY,)) == "5\n"
    assert injected.run(program, {"kept-connections": 4}, requires=(SQLALCHEMY,)) == "1\n"
    assert injected.took() == {"kept-connections"}


def test_django_keeps_its_connections(injected: Injected) -> None:
    program = """
        import django
        from django.conf import settings
        database = {"ENGINE": "django.db.backends.sqlite3", "NAME": "shop.sqlite", "CONN_MAX_AGE": 0}
        settings.configure(DATABASES={"default": database})
        django.setup()
        from django.db import close_old_connections, connection
        from django.db.backends.signals import connection_created
        made = []
        def count(**named): made.append(1)
        connection_created.connect(count)
        for _ in range(3):
            connection.ensure_connection()
            close_old_connections()
        print(len(made))
    """
    assert injected.run(program, {}, requires=("django==5.2.8",)) == "3\n"
    assert injected.run(program, {"kept-connections": 4}, requires=("django==5.2.8",)) == "1\n"
    assert injected.took() == {"kept-connections"}


def test_a_name_is_looked_up_once(injected: Injected) -> None:
    program = """
        import _socket, socket
        looked_up, before = [], _socket.getaddrinfo
        def counted(*args):
            looked_up.append(args[0])
            return before(*args)
        _socket.getaddrinfo = counted
        every = [socket.getaddrinfo("127.0.0.1", 80) for _ in range(3)]
        print(len(looked_up), every[0] == every[2])
    """
    assert injected.run(program, {}) == "3 True\n"
    assert injected.run(program, {"resolved": "once"}) == "1 True\n"
    assert injected.took() == {"resolved"}


def test_urllib3_keeps_more_pools(injected: Injected) -> None:
    program = """
        import requests
        from requests.adapters import HTTPAdapter
        manager = HTTPAdapter(pool_connections=1, pool_maxsize=300).poolmanager
        first = manager.connection_from_url("http://shop")
        {more}
        print(manager.connection_from_url("http://shop") is first)
    """
    one_pool, two_pools = (
        program.format(more=""),
        program.format(more='manager.connection_from_url("http://bank")'),
    )
    assert injected.run(two_pools, {}, requires=(REQUESTS,)) == "False\n"
    assert injected.run(one_pool, {"urllib3-connections": 200}, requires=(REQUESTS,)) == "True\n"
    assert injected.took() == set()
    assert injected.run(two_pools, {"urllib3-connections": 200}, requires=(REQUESTS,)) == "True\n"
    assert injected.took() == {"urllib3-connections"}


@pytest.mark.parametrize("scheme", ["http", "https"])
@pytest.mark.parametrize(
    ("manager", "keeps"),
    [
        ('requests.Session().get_adapter("{}://shop").poolmanager', 10),
        ("urllib3.PoolManager()", 1),
        ("urllib3.PoolManager(maxsize=7)", 7),
    ],
)
def test_urllib3_keeps_more_connections(injected: Injected, manager: str, keeps: int, scheme: str) -> None:
    program = f"""
        import requests, urllib3
        print({manager.format(scheme)}.connection_from_url("{scheme}://shop").pool.maxsize)
    """
    assert injected.run(program, {}, requires=(REQUESTS,)) == f"{keeps}\n"
    assert injected.run(program, {"urllib3-connections": 200}, requires=(REQUESTS,)) == "200\n"
    assert injected.took() == {"urllib3-connections"}


def test_blas_computes_in_one_thread_whatever_the_app_set(injected: Injected) -> None:
    program = """
        import numpy, os, threadpoolctl, time
        threadpoolctl.threadpool_limits(4)
        open(os.environ["WARM"], "w").close()
        def count(): return {pool["num_threads"] for pool in threadpoolctl.threadpool_info()}
        until = time.monotonic() + 20
        while count() != {1} and time.monotonic() < until: time.sleep(0.01)
        print(count())
    """
    assert (
        injected.run(program, {"native-threads": 1}, requires=NUMPY, WARM=str(injected.seen / WARM))
        == "{1}\n"
    )
    assert injected.took() == {"native-threads"}


GREEN = """
from gevent import monkey
monkey.patch_all()
import ctypes, gevent, time
libc = ctypes.CDLL(None)

def query():
    libc.usleep(40_000)

def main():
    began = time.monotonic()
    gevent.joinall([gevent.spawn(query) for _ in range(5)], raise_error=True)
    return time.monotonic() - began
"""
GEVENT = ("gevent==25.9.1",)


def test_a_call_is_moved_to_a_thread_of_gevents(injected: Injected) -> None:
    (injected.app / "shop.py").write_text(GREEN)
    begin = GREEN.splitlines()[7].index("libc")
    site = {"line": 8, "end_line": 8, "column": begin, "end_column": begin + len("libc.usleep(40_000)")}
    give = {"in-green-thread": [{"file": str(injected.app / "shop.py"), **site}]}
    program = "import shop\nprint(shop.main() > 0)"
    assert injected.run(program, give, requires=GEVENT) == "True\n"
    assert injected.took() == {"in-green-thread"}


def test_a_heartbeat_watches_the_hub_of_gevent_and_names_the_line_that_blocks_it(injected: Injected) -> None:
    (injected.app / "shop.py").write_text(GREEN)
    program = "import shop, gevent\nfor _ in range(5): shop.main(); gevent.sleep(0.05)"
    injected.run(program, {"heartbeat": {"late_s": 0.008}}, requires=GEVENT)
    stalls = [line for line in injected.lines("heart") if "stall" in line]
    own = [
        frame["line"]
        for line in stalls
        for place in line["places"]
        for frame in place["frames"][:1]
        if frame["own"]
    ]
    assert 8 in own
    assert any(str(line["loop"]).startswith("gevent") for line in injected.lines("heart") if "seen" in line)


def test_a_heartbeat_watches_trio(injected: Injected) -> None:
    program = """
        import time, trio
        async def main():
            for _ in range(4):
                time.sleep(0.2)
                await trio.sleep(0.01)
        trio.run(main)
    """
    injected.run(program, {"heartbeat": {"late_s": 0.008}}, requires=("trio==0.32.0",))
    lines = injected.lines("heart")
    assert any("stall" in line for line in lines)
    assert any(str(line["loop"]).startswith("trio") for line in lines if "seen" in line)


def test_a_heartbeat_watches_loops_that_are_tornados_own(injected: Injected) -> None:
    """Those before 5.0, which no longer run on new interpreters: a module of that name stands in."""
    (injected.app / "tornado").mkdir()
    (injected.app / "tornado" / "__init__.py").touch()
    loop = """
        import time
        class PollIOLoop:
            def __init__(self): self.callbacks = []
            def add_callback(self, callback): self.callbacks.append(callback)
            def start(self):
                for _ in range(4):
                    time.sleep(0.2)
                    while self.callbacks: self.callbacks.pop()()
    """
    (injected.app / "tornado" / "ioloop.py").write_text(loop.replace("\n        ", "\n"))
    program = "from tornado.ioloop import PollIOLoop\nPollIOLoop().start()"
    injected.run(program, {"heartbeat": {"late_s": 0.008}})
    lines = injected.lines("heart")
    assert any("stall" in line for line in lines)
    assert any(line["loop"] == "tornado.ioloop" for line in lines if "seen" in line)


ONE_SESSION = """
    import asyncio, threading, time
    from sqlalchemy import event, text
    from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
    flying, most, lock = 0, 0, threading.Lock()
    def waits():
        global flying, most
        with lock:
            flying += 1
            most = max(most, flying)
        time.sleep(0.1)
        with lock:
            flying -= 1
        return 7
    engine = create_async_engine("sqlite+aiosqlite:///shop.sqlite", pool_size=9)
    @event.listens_for(engine.sync_engine, "connect")
    def connected(connection, record):
        connection.create_function("waits", 0, waits)
    async def main():
        async with AsyncSession(engine) as session:
            await session.connection()
            query = text("select waits()")
            found = await asyncio.gather(*(session.execute(query) for _ in range(4)))
            print([result.scalar() for result in found], await session.scalar(query), most)
        await engine.dispose()
    asyncio.run(main())
"""


def test_statements_that_are_sent_over_one_session_at_once_have_one_each(injected: Injected) -> None:
    assert injected.run(ONE_SESSION, {}, requires=ASYNC_SESSIONS) == "[7, 7, 7, 7] 7 1\n"
    assert injected.run(ONE_SESSION, {"session-each": True}, requires=ASYNC_SESSIONS) == "[7, 7, 7, 7] 7 4\n"
    assert injected.took() == {"session-each"}


PRICES = """
    import asyncio, threading
    import grpc
    from concurrent.futures import ThreadPoolExecutor
    from grpc import aio
    peers = set()
    def price(request, context):
        peers.add(context.peer())
        return request * 2
    server = grpc.server(ThreadPoolExecutor(4))
    handlers = {"Price": grpc.unary_unary_rpc_method_handler(price)}
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("Shop", handlers),))
    address = "127.0.0.1:%d" % server.add_insecure_port("127.0.0.1:0")
    server.start()
    with grpc.insecure_channel(address) as first, grpc.insecure_channel(address, [("grpc.x", 1)]) as second:
        for channel in (first, second):
            call = channel.unary_unary("/Shop/Price")
            print(call(b"a"), call.with_call(b"b")[0], call.future(b"c").result())
    print(len(peers))
    peers.clear()
    async def main():
        async with aio.insecure_channel(address) as channel:
            call = channel.unary_unary("/Shop/Price")
            print([await call(b"d") for _ in range(4)])
    asyncio.run(main())
    print(len(peers))
    server.stop(5).wait()  # None cancels, which clients that are still closing log
"""


def test_a_channel_of_grpc_is_several_in_turn(injected: Injected) -> None:
    calls, later = "b'aa' b'bb' b'cc'\n" * 2, "[b'dd', b'dd', b'dd', b'dd']\n"
    assert injected.run(PRICES, {}, requires=(GRPC,)) == f"{calls}2\n{later}1\n"
    assert injected.took() == set()
    assert injected.run(PRICES, {"grpc-channels": 3}, requires=(GRPC,)) == f"{calls}6\n{later}3\n"
    assert injected.took() == {"grpc-channels"}


def test_a_pool_that_is_made_larger_keeps_its_other_options(injected: Injected) -> None:
    program = """
        from sqlalchemy import create_engine
        from sqlalchemy.pool import QueuePool
        options = {"pool_timeout": 7, "pool_use_lifo": True, "pool_recycle": 60, "pool_pre_ping": True}
        pool = create_engine("sqlite:///shop.sqlite", poolclass=QueuePool, **options).pool
        print(pool.size() + pool._max_overflow, pool._timeout, pool._recycle, pool._pre_ping, pool._pool.use_lifo)
    """
    assert injected.run(program, {}, requires=(SQLALCHEMY,)) == "15 7 60 True True\n"
    assert injected.run(program, {"database-pools": 200}, requires=(SQLALCHEMY,)) == "200 7 60 True True\n"
    assert injected.took() == {"database-pools"}


ASYNCPG = """
    from asyncpg import create_pool
    print([create_pool("postgresql://", min_size=2, **more)._maxsize for more in ({}, {"max_size": 300})])
"""
PSYCOPG = """
    from psycopg_pool import AsyncConnectionPool, ConnectionPool
    print([pool("", open=False, **more).max_size for pool, more in (
        (ConnectionPool, {"min_size": 4}), (AsyncConnectionPool, {"max_size": 300}))])
"""
AIOMYSQL = """
    import asyncio
    from aiomysql import create_pool

    async def main():
        pools = [await create_pool(minsize=0, **more) for more in ({}, {"maxsize": 300})]
        print([pool.maxsize for pool in pools])

    asyncio.run(main())
"""
REDIS = """
    from redis import BlockingConnectionPool
    from redis.asyncio import BlockingConnectionPool as Later
    waiting = [BlockingConnectionPool(max_connections=8), Later(max_connections=8)]
    most = {pool.max_connections for pool in waiting} | {waiting[0].pool.qsize()}
    print([*most, BlockingConnectionPool(max_connections=300).pool.qsize()])
"""
PSYCOPG2 = """
    from psycopg2.pool import SimpleConnectionPool, ThreadedConnectionPool
    print([SimpleConnectionPool(0, 10).maxconn, ThreadedConnectionPool(0, 300).maxconn])
"""
CLIENTS_OF_HTTPX = """
    import httpx
    limits = httpx.Limits(max_connections=300)
    print([client._transport._pool._max_connections for client in (httpx.AsyncClient(), httpx.Client(limits=limits))])
"""
CLIENTS_OF_TORNADO = """
    import asyncio
    from tornado.httpclient import AsyncHTTPClient

    async def main():
        print([AsyncHTTPClient(force_instance=True, **more).max_clients for more in ({}, {"max_clients": 300})])

    asyncio.run(main())
"""
KEPT_BY_HTTPX = """
    import httpx
    limits = [httpx.Limits(max_keepalive_connections=count) for count in (300, 5)]
    print([client(limits=limit)._transport._pool._max_keepalive_connections
           for client in (httpx.AsyncClient, httpx.Client) for limit in limits])
"""


def test_clients_of_httpx_keep_fewer_connections_and_no_more_than_they_did(injected: Injected) -> None:
    assert injected.run(KEPT_BY_HTTPX, {}, requires=(HTTPX,)) == "[300, 5, 300, 5]\n"
    assert injected.run(KEPT_BY_HTTPX, {"httpx-kept": 10}, requires=(HTTPX,)) == "[10, 5, 10, 5]\n"
    assert injected.took() == {"httpx-kept"}


OPENED_BY_PEEWEE = """
    import os, sqlite3, tempfile, threading
    from peewee import Model, SqliteDatabase, TextField
    opened = []
    connect = sqlite3.connect
    sqlite3.connect = lambda *args, **named: opened.append(args[0]) or connect(*args, **named)
    database = SqliteDatabase(os.path.join(tempfile.mkdtemp(), "shop.db"))

    class Item(Model):
        name = TextField()
        class Meta:
            database = database

    def use():
        with database.connection_context():
            assert Item.table_exists() or not Item.create_table()
            with database.atomic():
                Item.create(name="cup")

    for _ in range(3):
        use()
    other = threading.Thread(target=use)
    other.start()
    other.join()
    memory = SqliteDatabase(":memory:")
    for _ in range(2):
        with memory.connection_context():
            assert memory.get_tables() == []
            memory.execute_sql("create table t (a)")
    use()
    with database.connection_context():
        print(len(opened), Item.select().count())
"""


def test_connections_that_peewee_closes_are_kept_for_the_next_of_their_thread(injected: Injected) -> None:
    assert injected.run(OPENED_BY_PEEWEE, {}, requires=("peewee==3.18.3",)) == "8 5\n"
    assert injected.run(OPENED_BY_PEEWEE, {"kept-connections": 4}, requires=("peewee==3.18.3",)) == "4 5\n"
    assert injected.took() == {"kept-connections"}


PEEWEE = """
    from playhouse.pool import PooledSqliteDatabase
    print([PooledSqliteDatabase("shop", **more)._max_connections for more in ({}, {"max_connections": 300})])
"""


PEEWEE_LATER = """
    from playhouse.pool import PooledSqliteDatabase
    databases = [PooledSqliteDatabase(None) for _ in range(2)]
    databases[0].init("shop", max_connections=8)
    databases[1].init("shop", max_connections=300)
    print([database._max_connections for database in databases])
"""


@pytest.mark.parametrize(
    ("program", "requires", "treatment", "default"),
    [
        (ASYNCPG, ("asyncpg==0.31.0",), "database-pools", 10),
        (PSYCOPG, ("psycopg[binary]==3.2.13", "psycopg-pool==3.2.8"), "database-pools", 4),
        (AIOMYSQL, ("aiomysql==0.3.2",), "database-pools", 10),
        (REDIS, ("redis==6.4.0",), "database-pools", 8),
        (CLIENTS_OF_HTTPX, (HTTPX,), "client-connections", 100),
        (CLIENTS_OF_TORNADO, ("tornado==6.5.2",), "client-connections", 10),
        (PEEWEE, ("peewee==3.18.3",), "raising-pools", 20),
        (PEEWEE_LATER, ("peewee==3.18.3",), "raising-pools", 8),
        (PSYCOPG2, ("psycopg2-binary==2.9.11",), "raising-pools", 10),
    ],
)
def test_pools_that_are_smaller_are_made_larger_and_others_are_left(
    injected: Injected, program: str, requires: tuple[str, ...], treatment: str, default: int
) -> None:
    assert injected.run(program, {}, requires=requires) == f"[{default}, 300]\n"
    assert injected.took() == set()
    assert injected.run(program, {treatment: 200}, requires=requires) == "[200, 300]\n"
    assert injected.took() == {treatment}


JINJA = """
    from jinja2 import Environment
    build = lambda: Environment().from_string("{{ a }}" * 40)
"""
BOTTLE = """
    from bottle import SimpleTemplate
    build = lambda: SimpleTemplate("{{a}} " * 40).render(a=1)
"""
TORNADO_TEMPLATE = """
    from tornado.template import Template
    build = lambda: Template("{{ a }}" * 40)
"""
PYDANTIC = """
    from typing import Dict, List, Union
    from pydantic import BaseModel, TypeAdapter

    class Item(BaseModel):
        child: "Item | None" = None

    def found_by_name():
        class Local(BaseModel):
            number: int
        return TypeAdapter("list[Local]").validate_python([{"number": 7}])

    assert found_by_name()[0].number == 7
    build = lambda: TypeAdapter(Union[List[Item], Dict[str, Item], List[Dict[str, List[int]]]])
"""
JSONSCHEMA = """
    from jsonschema import validate
    schema = {"properties": {"p%d" % number: {"type": "integer"} for number in range(20)}}
    build = lambda: validate({"p1": 2}, schema)
"""
SETTINGS = """
    from pydantic_settings import BaseSettings

    class Settings(BaseSettings):
        name: str = "shop"

    build = Settings
"""
DOTENV = """
    import io
    from dotenv import load_dotenv
    build = lambda: load_dotenv(stream=io.StringIO("SHOP=open"))
"""
CONFIG = """
    import configparser, os, pathlib
    path = pathlib.Path(os.environ["SEEN"]) / "shop.ini"
    path.write_text("[shop]\\nopen = yes")
    build = lambda: configparser.ConfigParser().read(path)
"""
BOTO = """
    import boto3
    words = {"aws_access_key_id": "a", "aws_secret_access_key": "b", "region_name": "eu-west-1"}
    build = lambda: boto3.client("sqs", **words)
"""
CLASSES = """
    from dataclasses import make_dataclass
    build = lambda: make_dataclass("Made", ["a", "b", "c"])
"""
PATTERNS = """
    import re
    count = iter(range(10_000))
    build = lambda: re.compile("(a|b)+%d" % next(count))
"""
FILES = """
    import json, pathlib
    path = pathlib.Path("rows.json")
    path.write_text("[1, 2]")

    def build():
        with path.open() as file:
            assert json.load(file) == [1, 2]
"""
BUILT_WHEN_WARM = """
    import os, pathlib, time
    seen = pathlib.Path(os.environ["SEEN"])
    noted = lambda: list(seen.glob("took-*"))
    build()
    print(bool(noted()))
    (seen / "warm").touch()
    until = time.monotonic() + 20
    while not noted() and time.monotonic() < until: build()
    print(bool(noted()))
"""


@pytest.mark.parametrize(
    ("kind", "program", "requires"),
    [
        ("template", JINJA, ("jinja2==3.1.6",)),
        ("template", BOTTLE, ("bottle==0.13.4",)),
        ("template", TORNADO_TEMPLATE, ("tornado==6.5.2",)),
        ("model", PYDANTIC, ("pydantic==2.12.4",)),
        ("schema", JSONSCHEMA, ("jsonschema==4.25.1",)),
        ("settings", SETTINGS, ("pydantic-settings==2.12.0",)),
        ("settings", DOTENV, ("python-dotenv==1.2.1",)),
        ("settings", CONFIG, ()),
        pytest.param("client", BOTO, ("boto3==1.40.70",), marks=pytest.mark.exhaustive),
        ("class", CLASSES, ()),
        ("pattern", PATTERNS, ()),
        ("file", FILES, ()),
    ],
)
def test_what_is_built_is_met_once_the_app_is_warm(
    injected: Injected, kind: str, program: str, requires: tuple[str, ...]
) -> None:
    whole = dedent(program) + dedent(BUILT_WHEN_WARM)
    give = {"building-longer": kind}
    assert injected.run(whole, give, requires=requires, SEEN=str(injected.seen)) == "False\nTrue\n"
    assert injected.took() == {"building-longer"}


def test_what_is_built_computes_for_twice_as_long_and_what_is_built_within_no_longer(
    injected: Injected,
) -> None:
    program = """
        import json, os, pathlib, time

        class Slow:
            def __init__(self, inner=None): self.inner = inner
            def read(self):
                until = time.thread_time() + 0.02
                while time.thread_time() < until: pass
                if self.inner: json.load(self.inner)
                return "[]"

        seen = pathlib.Path(os.environ["SEEN"])
        (seen / "warm").touch()
        until = time.monotonic() + 20
        while not list(seen.glob("took-*")) and time.monotonic() < until: json.load(Slow())
        began = time.thread_time()
        json.load(Slow(Slow()))
        print(0.08 <= time.thread_time() - began < 0.1)
    """
    assert injected.run(program, {"building-longer": "file"}, SEEN=str(injected.seen)) == "True\n"


def test_django_keeps_what_the_app_closes_once_it_is_warm(injected: Injected) -> None:
    program = """
        import os, pathlib, time
        import django
        from django.conf import settings
        database = {"ENGINE": "django.db.backends.sqlite3", "NAME": "shop.sqlite", "CONN_MAX_AGE": None}
        settings.configure(DATABASES={"default": database})
        django.setup()
        from django.db import connection, transaction
        from django.db.backends.signals import connection_created
        made, called = [], []
        def count(**named): made.append(1)
        connection_created.connect(count)
        def use():
            connection.ensure_connection()
            connection.close()
        use(); use()
        print(len(made))
        seen = pathlib.Path(os.environ["SEEN"])
        (seen / "warm").touch()
        until = time.monotonic() + 20
        while not list(seen.glob("took-*")) and time.monotonic() < until: use()
        before = len(made)
        use(); use()
        print(len(made) - before)
        with transaction.atomic():
            connection.close()
        use()
        print(len(made) - before)
    """
    django = ("django==5.2.8",)
    assert (
        injected.run(program, {"kept-connections": 4}, requires=django, SEEN=str(injected.seen))
        == "2\n0\n1\n"
    )
    assert injected.took() == {"kept-connections"}


DJANGO_UNDER_ASGI = """
    import asyncio
    import django
    from django.conf import settings
    database = {"ENGINE": "django.db.backends.sqlite3", "NAME": "shop.sqlite", "CONN_MAX_AGE": 60}
    settings.configure(DATABASES={"default": database}, ROOT_URLCONF=__name__, ALLOWED_HOSTS=["*"], MIDDLEWARE=[])
    django.setup()
    from django.core.asgi import get_asgi_application
    from django.db import connection, transaction
    from django.http import HttpResponse
    from django.urls import path

    opened = []

    def index(request):
        connection.ensure_connection()
        opened.append(connection.connection)
        with connection.cursor() as cursor: cursor.execute("SELECT 1")
        if "torn" in request.GET: transaction.set_autocommit(False)
        return HttpResponse("ok")

    urlpatterns = [path("", index)]
    app = get_asgi_application()

    async def get(query=b""):
        headers = [(b"host", b"shop")]
        scope = {"type": "http", "method": "GET", "path": "/", "query_string": query, "headers": headers}
        arrived, sent = iter([{"type": "http.request"}]), []
        async def receive():
            for message in arrived: return message
            await asyncio.sleep(60)
        async def send(message): sent.append(message)
        await app(scope, receive, send)
        assert sent[0]["status"] == 200, sent

    async def main():
        for _ in range(3): await get()
        print(len({id(one) for one in opened}), end=" ")
        await asyncio.gather(*(get() for _ in range(4)))
        await get(b"torn=1")
        torn = opened[-1]
        for _ in range(8): await get()
        print(torn in opened[-8:])

    asyncio.run(main())
"""


def test_django_under_asgi_hands_connections_on_from_request_to_request(injected: Injected) -> None:
    django = ("django==5.2.8",)
    assert injected.run(DJANGO_UNDER_ASGI, {}, requires=django) == "3 False\n"
    assert injected.run(DJANGO_UNDER_ASGI, {"kept-connections": 4}, requires=django) == "1 False\n"
    assert injected.took() == {"kept-connections"}


SQLITE = """
    import sqlite3
    opened, before = [], sqlite3.dbapi2.connect

    def use(commits):
        db = sqlite3.connect("shop.sqlite")
        opened.append(id(db._open) if hasattr(db, "_open") else id(db))
        db.execute("CREATE TABLE IF NOT EXISTS names (name)")
        assert db.row_factory is None
        db.row_factory = sqlite3.Row
        db.execute("INSERT INTO names VALUES ('a')")
        if commits: db.commit()
        print(db.execute("SELECT count(*) AS many FROM names").fetchone()["many"], end=" ")
        db.close()
        db.close()

    for commits in (True, False, True): use(commits)
    with sqlite3.connect("shop.sqlite") as db: db.execute("INSERT INTO names VALUES ('b')")
    first, second = (sqlite3.connect("shop.sqlite") for _ in range(2))
    print(first.execute("SELECT count(*) FROM names").fetchone()[0], len(set(opened)))
"""


def test_what_an_app_opens_of_sqlite_is_kept_and_is_as_new(injected: Injected) -> None:
    (injected.app / "shop.py").write_text(dedent(SQLITE))
    found = injected.run("import shop", {"kept-connections": 4})
    assert found == "1 2 2 3 1\n", "what was not committed is gone, and one connection serves all"
    assert injected.took() == {"kept-connections"}


AIOSQLITE_USED = """
    import asyncio, threading
    import aiosqlite

    async def use():
        async with aiosqlite.connect("shop.sqlite") as db:
            await db.execute("CREATE TABLE IF NOT EXISTS names (name)")
            await db.execute("INSERT INTO names VALUES ('a')")
            await db.commit()
            async with db.execute("SELECT count(*) FROM names") as found:
                return (await found.fetchone())[0], threading.active_count()

    async def main():
        print([await use() for _ in range(3)])
        db = await aiosqlite.connect("shop.sqlite")
        both = await asyncio.gather(use(), use())
        await db.close()
        print(sorted(many for many, _ in both))
        import os; os._exit(sys.stdout.flush() or 0)

    import sys
    asyncio.run(main())
"""


def test_what_an_app_opens_of_aiosqlite_is_kept(injected: Injected) -> None:
    (injected.app / "shop.py").write_text(dedent(AIOSQLITE_USED))
    found = injected.run("import shop", {"kept-connections": 4}, requires=("aiosqlite==0.21.0",))
    assert found == "[(1, 2), (2, 2), (3, 2)]\n[4, 5]\n"
    assert injected.took() == {"kept-connections"}


@pytest.mark.parametrize("name", ['":memory:"', '""', '"file:shop?mode=memory", uri=True'])
def test_a_database_that_is_only_in_memory_is_empty_each_time(injected: Injected, name: str) -> None:
    program = f"""
        import sqlite3
        for _ in range(2):
            db = sqlite3.connect({name})
            db.execute("CREATE TABLE names (name)")
            db.close()
    """
    (injected.app / "shop.py").write_text(dedent(program))
    injected.run("import shop", {"kept-connections": 4})
    assert injected.took() == set()


CLIENTS_THAT_GROW = """
    import asyncio
    {imported}

    waiting = []

    async def answer(reader, writer):
        await reader.readuntil(b"\\r\\n\\r\\n")
        waiting.append(writer)
        while len(waiting) < {count}: await asyncio.sleep(0.001)
        writer.write(b"HTTP/1.1 200 OK\\r\\nContent-Length: 2\\r\\n\\r\\nok")
        await writer.drain()

    async def main():
        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        url = "http://127.0.0.1:%d/" % server.sockets[0].getsockname()[1]
        {calls}
        print(len(waiting))

    asyncio.run(main())
"""
OF_AIOHTTP = (
    "import aiohttp",
    """async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=3)) as session:
            async def call():
                async with session.get(url) as found: return await found.text()
            await asyncio.gather(*(call() for _ in range({count})))""",
)
OF_HTTPX = (
    "import httpx",
    """async with httpx.AsyncClient(limits=httpx.Limits(max_connections=3)) as client:
            await asyncio.gather(*(client.get(url) for _ in range({count})))""",
)
OF_TORNADO = (
    "from tornado.httpclient import AsyncHTTPClient",
    """client = AsyncHTTPClient(force_instance=True, max_clients=3)
        await asyncio.gather(*(client.fetch(url) for _ in range({count})))""",
)


@pytest.mark.parametrize(
    ("of", "requires"),
    [(OF_AIOHTTP, (cells.AIOHTTP,)), (OF_HTTPX, (HTTPX,)), (OF_TORNADO, (TORNADO,))],
    ids=["aiohttp", "httpx", "tornado"],
)
def test_a_client_of_more_connections_notes_when_it_opens_more_than_it_had(
    injected: Injected, of: tuple[str, str], requires: tuple[str, ...]
) -> None:
    def program(count: int) -> str:
        imported, calls = of
        return CLIENTS_THAT_GROW.format(imported=imported, calls=calls.format(count=count), count=count)

    assert injected.run(program(3), {"client-connections": 20}, requires=requires) == "3\n"
    assert injected.took() == {"client-connections"}, "as many as it had are none more"
    assert injected.run(program(4), {"client-connections": 20}, requires=requires) == "4\n"
    assert injected.took() == {"client-connections", "client-connections" + BEYOND}


def test_more_tokens_and_threads_are_noted_when_more_are_in_use_than_there_were(injected: Injected) -> None:
    threads = """
        import asyncio, os, threading
        count = min(32, (os.cpu_count() or 1) + 4) + {more}
        together = threading.Barrier(count)

        async def main():
            await asyncio.gather(*(asyncio.to_thread(together.wait, 20) for _ in range(count)))
            await asyncio.to_thread(int)

        asyncio.run(main())
    """
    injected.run(threads.format(more=0), {"default-executor": 60})
    assert injected.took() == {"default-executor"}
    injected.run(threads.format(more=1), {"default-executor": 60})
    assert injected.took() == {"default-executor", "default-executor" + BEYOND}
    tokens = """
        import asyncio, threading
        import anyio.to_thread

        async def main():
            anyio.to_thread.current_default_thread_limiter().total_tokens = 3
            release = threading.Event()
            tasks = []
            for _ in range({count}):
                tasks.append(asyncio.create_task(anyio.to_thread.run_sync(release.wait, 20)))
                await asyncio.sleep(0.01)
            release.set()
            await asyncio.gather(*tasks)

        asyncio.run(main())
    """
    injected.run(tokens.format(count=3), {"anyio-tokens": 60}, requires=(ANYIO,))
    assert injected.took() - {"default-executor", "default-executor" + BEYOND} == {"anyio-tokens"}
    injected.run(tokens.format(count=5), {"anyio-tokens": 60}, requires=(ANYIO,))
    assert "anyio-tokens" + BEYOND in injected.took()


SQLALCHEMY_WARM = """
    import os, time
    from sqlalchemy import create_engine, event, pool, text
    made = []
    event.listen(pool.Pool, "connect", lambda *_: made.append(1))
    {first}
    open(os.environ["SEEN"] + "/warm", "w").close()
    time.sleep(0.3)  # a thread of the treatment's looks for that every 50 ms
    before = len(made)
    for _ in range(3):
        {each}
    print(len(made) - before)
"""
RECYCLED = ('engine = create_engine("sqlite:///shop.sqlite", pool_recycle=0)', "{use}")
MADE_EACH_TIME = ("pass", 'engine = create_engine("sqlite:///shop.sqlite"); {use}')
DISPOSED_OF = ('engine = create_engine("sqlite:///shop.sqlite")', "{use}; engine.dispose()")


@pytest.mark.parametrize(
    "how", [RECYCLED, MADE_EACH_TIME, DISPOSED_OF], ids=["recycled", "made each time", "disposed of"]
)
def test_connections_of_sqlalchemy_are_kept_whatever_the_app_does_to_lose_them(
    injected: Injected, how: tuple[str, str]
) -> None:
    use = "time.sleep(0.01); connection = engine.connect(); connection.execute(text('select 1')); connection.close()"
    first, each = (part.format(use=use) if "{use}" in part else part for part in how)
    program = SQLALCHEMY_WARM.format(first=first, each=each)
    env = {"SEEN": str(injected.seen)}
    assert int(injected.run(program, {}, requires=(SQLALCHEMY,), **env)) >= 3
    assert int(injected.run(program, {"kept-connections": 4}, requires=(SQLALCHEMY,), **env)) <= 1
    assert injected.took() == {"kept-connections"}


MADE_IN_A_HANDLER = """
    import asyncio, os, sys, threading, time
    from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
    {imported}

    peers = set()

    class Answer(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        def do_GET(self):
            peers.add(self.client_address)
            self.send_response(200)
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"ok")
        def log_message(self, *_): pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answer)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = "http://127.0.0.1:%d/" % server.server_port
    open(os.environ["SEEN"] + "/warm", "w").close()
    time.sleep(0.3)
    {calls}
    print(len(peers))
    sys.stdout.flush()
    os._exit(0)
"""
BY_AIOHTTP = (
    "import aiohttp",
    """async def main():
        for _ in range(4):
            async with aiohttp.ClientSession(headers={"X-Shop": "1"}) as session:
                async with session.get(url) as found: assert await found.text() == "ok"
    asyncio.run(main())""",
)
BY_HTTPX = (
    "import httpx",
    """async def main():
        for _ in range(4):
            async with httpx.AsyncClient(timeout=3) as client: assert (await client.get(url)).text == "ok"
    asyncio.run(main())""",
)
BY_HTTPX_WAITING = (
    "import httpx",
    "for _ in range(4): assert httpx.get(url).text == 'ok'",
)
BY_AIOHTTP_THAT_CLOSES = (
    "import aiohttp",
    """async def main():
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(force_close=True)) as session:
            for _ in range(4):
                async with session.get(url) as found: assert await found.text() == "ok"
    asyncio.run(main())""",
)
BY_HTTPX_THAT_CLOSES = (
    "import httpx",
    """async def main():
        async with httpx.AsyncClient(limits=httpx.Limits(max_keepalive_connections=0)) as client:
            for _ in range(4): assert (await client.get(url)).text == "ok"
    asyncio.run(main())""",
)
BY_REQUESTS = ("import requests", "for _ in range(4): assert requests.get(url).text == 'ok'")


@pytest.mark.parametrize(
    ("of", "requires"),
    [
        (BY_AIOHTTP, (cells.AIOHTTP,)),
        (BY_HTTPX, (HTTPX,)),
        (BY_HTTPX_WAITING, (HTTPX,)),
        (BY_AIOHTTP_THAT_CLOSES, (cells.AIOHTTP,)),
        (BY_HTTPX_THAT_CLOSES, (HTTPX,)),
        (BY_REQUESTS, (REQUESTS,)),
    ],
    ids=["aiohttp", "httpx", "httpx, waiting", "aiohttp that closes", "httpx that closes", "requests"],
)
def test_clients_that_are_made_alike_share_their_connections_and_keep_them(
    injected: Injected, of: tuple[str, str], requires: tuple[str, ...]
) -> None:
    program = MADE_IN_A_HANDLER.replace("{imported}", of[0]).replace("{calls}", of[1])
    env = {"SEEN": str(injected.seen)}
    assert injected.run(program, {}, requires=requires, **env) == "4\n"
    assert injected.took() == set()
    assert injected.run(program, {"clients-shared": True}, requires=requires, **env) == "1\n"
    assert injected.took() == {"clients-shared"}


LOOKED_UP = """
    import aiohttp, asyncio, socket
    from aiohttp.abc import AbstractResolver

    class Own(AbstractResolver):
        asked = 0
        async def resolve(self, host, port=0, family=socket.AF_INET):
            self.asked += 1
            return [{"hostname": host, "host": "127.0.0.1", "port": port, "family": family, "proto": 0, "flags": 0}]
        async def close(self): pass

    async def answer(reader, writer):
        await reader.readuntil(b"\\r\\n\\r\\n")
        writer.write(b"HTTP/1.1 200 OK\\r\\nConnection: close\\r\\nContent-Length: 2\\r\\n\\r\\nok")
        writer.close()

    async def main():
        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        url = "http://shop.test:%d/" % server.sockets[0].getsockname()[1]
        own = Own()
        connector = aiohttp.TCPConnector(resolver=own, use_dns_cache=False, force_close=True)
        async with aiohttp.ClientSession(connector=connector) as session:
            for _ in range(4):
                async with session.get(url) as found: assert await found.text() == "ok"
        print(own.asked)

    asyncio.run(main())
"""


def test_a_resolver_of_the_app_looks_a_name_up_once(injected: Injected) -> None:
    assert injected.run(LOOKED_UP, {}, requires=(cells.AIOHTTP,)) == "4\n"
    assert injected.took() == set()
    assert injected.run(LOOKED_UP, {"resolved": "once"}, requires=(cells.AIOHTTP,)) == "1\n"
    assert injected.took() == {"resolved"}


CALLS = """
    import asyncio, threading, time
    {imported}

    async def answer(reader, writer):
        await reader.readuntil(b"\\r\\n\\r\\n")
        await asyncio.sleep(0.02)
        writer.write(b"HTTP/1.1 200 OK\\r\\nContent-Length: 2\\r\\nConnection: close\\r\\n\\r\\nok")
        await writer.drain()
        writer.close()

    async def main():
        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        url = "http://127.0.0.1:%d/" % server.sockets[0].getsockname()[1]
        began = time.monotonic()
        for _ in range(2):
            {call}
        print(round(1000 * (time.monotonic() - began)))

    asyncio.run(main())
"""


@pytest.mark.parametrize(
    ("imported", "call", "requires"),
    [
        (
            "import aiohttp",
            "async with aiohttp.ClientSession() as session: await session.get(url)",
            (cells.AIOHTTP,),
        ),
        ("import httpx", "async with httpx.AsyncClient() as client: await client.get(url)", (HTTPX,)),
        ("import httpx", "await asyncio.to_thread(httpx.get, url)", (HTTPX,)),
        ("from tornado.httpclient import AsyncHTTPClient", "await AsyncHTTPClient().fetch(url)", (TORNADO,)),
        ("import urllib.request", "await asyncio.to_thread(urllib.request.urlopen, url)", ()),
    ],
    ids=["aiohttp", "httpx", "httpx that waits", "tornado", "urllib"],
)
def test_calls_of_third_parties_are_noted_and_take_longer_whichever_client_makes_them(
    injected: Injected, imported: str, call: str, requires: tuple[str, ...]
) -> None:
    program = CALLS.format(imported=imported, call=call)
    injected.run(program, {"calls-longer": 0}, requires=requires)
    noted = injected.lines("called")
    assert len(noted) == 2
    assert all(line["seconds"] >= 0.02 for line in noted)
    assert injected.took() == set()
    assert int(injected.run(program, {"calls-longer": 0.3}, requires=requires)) >= 2 * 320
    assert injected.took() == {"calls-longer"}
    assert injected.lines("called") == noted


OWN_WAITS = """
    import asyncio, sqlite3, time
    {imported}

    async def answer(reader, writer):
        await reader.readline()
        writer.write(b"ok")
        writer.close()

    async def main():
        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        for _ in range(3):
            {does}

    asyncio.run(main())
"""


@pytest.mark.parametrize(
    ("imported", "does", "counted"),
    [
        ("", "await asyncio.sleep(0.001)", 3),
        ("from asyncio import sleep", "await sleep(0.001)", 3),
        ("", "time.sleep(0.001)", 3),
        ("import concurrent.futures", "await asyncio.to_thread(time.sleep, 0.001)", 0),
        ("", "sqlite3.connect(':memory:').execute('CREATE TABLE t (n)')", 6),
        ("", "await asyncio.wait([asyncio.ensure_future(asyncio.sleep(9))], timeout=0.001)", 0),
        ("", "pass", 0),
    ],
    ids=["sleep", "imported", "blocks", "of a library", "statements", "cancelled", "nothing"],
)
def test_work_of_others_is_counted_when_it_has_ended_and_a_line_of_the_apps_own_waited_for_it(
    injected: Injected, imported: str, does: str, counted: int
) -> None:
    program = OWN_WAITS.format(imported=imported, does=does)
    (injected.app / "program.py").write_text(dedent(program))
    injected.run("import program", {"work-counted": True})
    assert sum(len(file.read_bytes()) for file in injected.seen.glob("worked-*")) == counted
    assert injected.took() == ({"work-counted"} if counted else set())


def test_reads_of_connections_are_work_of_others_on_both_of_their_ends(injected: Injected) -> None:
    does = """reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"what\\n")
            await reader.read()
            writer.close()"""
    (injected.app / "program.py").write_text(dedent(OWN_WAITS.format(imported="", does=does)))
    injected.run("import program", {"work-counted": True})
    (file,) = injected.seen.glob("worked-*")
    assert len(file.read_bytes()) == 2 * 3
