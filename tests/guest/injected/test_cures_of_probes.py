"""The treatments of faults that are counted: each takes hold where its library is used, and is noted only there."""

import ast
from pathlib import Path

import pytest
from tests.guest.injected.conftest import Injected

BACKGROUND = """
class BackgroundTask:
    def __init__(self, work):
        self.work = work

    async def __call__(self):
        await self.work()


class BackgroundTasks(BackgroundTask):
    def __init__(self, tasks):
        self.tasks = tasks

    async def __call__(self):
        for task in self.tasks:
            await task()
"""
"""As Starlette has it."""
REDIS = """
class ConnectionPool:
    def __init__(self, max_connections=None):
        self.max_connections = max_connections or 2**31


class BlockingConnectionPool(ConnectionPool):
    def __init__(self, max_connections=50):
        super().__init__(max_connections=max_connections)
"""
"""As redis-py has it: the first raises above its bound, the second waits."""


@pytest.fixture
def injected(tmp_path: Path) -> Injected:
    return Injected(tmp_path)


def package(injected: Injected, name: str, module: str, source: str) -> None:
    folder, file = injected.app / name, injected.app / name / f"{module}.py"
    file.parent.mkdir(parents=True)
    (folder / "__init__.py").touch()
    file.write_text(source)


def test_background_tasks_are_detached_and_follow_each_other_as_they_did(injected: Injected) -> None:
    package(injected, "starlette", "background", BACKGROUND)
    program = """
        import asyncio
        from starlette.background import BackgroundTask, BackgroundTasks
        events = []
        def saying(word):
            async def say():
                await asyncio.sleep(0)
                events.append(word)
            return BackgroundTask(say)
        async def main():
            await BackgroundTasks([saying("one"), saying("two")])()
            events.append("answered")
            while len(events) < 3: await asyncio.sleep(0)
        asyncio.run(main())
        print(*events)
    """
    assert injected.run(program, {}) == "one two answered\n"
    assert injected.run(program, {"background-detached": True}) == "answered one two\n"
    assert injected.took() == {"background-detached"}


def test_a_socket_that_was_bound_for_all_workers_is_listened_on_by_each_for_itself(
    injected: Injected,
) -> None:
    program = """
        import asyncio, socket
        shared = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        shared.bind(("127.0.0.1", 0))
        async def main():
            both = [await asyncio.get_running_loop().create_server(asyncio.Protocol, sock=shared) for _ in range({n})]
            listener = both[0].sockets[0]
            print(listener.getsockname() == shared.getsockname(), listener.fileno() == shared.fileno())
            for server in both: server.close()
        asyncio.run(main())
    """
    assert injected.run(program.replace("{n}", "1"), {}) == "True True\n"
    assert injected.run(program.replace("{n}", "2"), {"reuseport": True}) == "True False\n"
    assert injected.took() == {"reuseport"}


def test_a_socket_that_listens_already_is_left(injected: Injected) -> None:
    """Its queue would be nobody's."""
    program = """
        import asyncio, socket
        shared = socket.create_server(("127.0.0.1", 0))
        async def main():
            server = await asyncio.get_running_loop().create_server(asyncio.Protocol, sock=shared)
            print(server.sockets[0].fileno() == shared.fileno())
            server.close()
        asyncio.run(main())
    """
    assert injected.run(program, {"reuseport": True}) == "True\n"
    assert injected.took() == set()


def test_a_body_is_read_before_the_app_is_called_and_the_app_still_gets_it(injected: Injected) -> None:
    source = "class Config:\n    def load(self):\n        self.loaded_app = app\n"
    app = """
async def app(scope, receive, send):
    await send("app is called")
    await send((await receive())["body"] + (await receive())["body"])
"""
    package(injected, "uvicorn", "config", app + source)
    program = """
        import asyncio
        from uvicorn.config import Config
        events = []
        parts = [{"type": "http.request", "body": b"one ", "more_body": True}, {"type": "http.request", "body": b"two"}]
        async def receive():
            events.append("received")
            return parts.pop(0)
        async def send(what):
            events.append(what)
        config = Config()
        config.load()
        asyncio.run(config.loaded_app({"type": "http"}, receive, send))
        print(events)
    """
    assert injected.run(program, {}) == "['app is called', 'received', 'received', b'one two']\n"
    assert (
        injected.run(program, {"read-body": True})
        == "['received', 'received', 'app is called', b'one two']\n"
    )
    assert injected.took() == {"read-body"}


def test_gunicorns_own_worker_for_asgi_has_the_body_read_as_well(injected: Injected) -> None:
    worker = """
class ASGIWorker:
    def load_wsgi(self):
        async def app(scope, receive, send): print(events)
        self.asgi = app
"""
    package(injected, "gunicorn", "workers/gasgi", worker)
    program = """
        import asyncio, sys
        from gunicorn.workers.gasgi import ASGIWorker
        events, bodies = [], [b"one", b"two"]
        async def receive():
            events.append("received")
            return {"type": "http.request", "body": bodies.pop(0), "more_body": bool(bodies)}
        sys.modules["gunicorn.workers.gasgi"].events = events
        worker = ASGIWorker()
        worker.load_wsgi()
        asyncio.run(worker.asgi({"type": "http"}, receive, None))
    """
    assert injected.run(program, {}) == "[]\n"
    assert injected.run(program, {"read-body": True}) == "['received', 'received']\n"


LEAVING = """
import asyncio
async def app(scope, receive, send):
    await receive()
    if scope["path"] == "/long":
        await asyncio.sleep(60)
    await send({"type": "http.response.body"})
    await asyncio.sleep(0)
    await send({"type": "behind the answer"})

class Config:
    def load(self):
        self.loaded_app = app
"""


def test_a_call_is_cancelled_when_its_client_has_left_unanswered_and_not_behind_the_answer(
    injected: Injected,
) -> None:
    package(injected, "uvicorn", "config", LEAVING)
    program = """
        import asyncio
        from uvicorn.config import Config
        sent = []
        async def send(what):
            sent.append(what)
        config = Config()
        config.load()
        def from_client(*messages):
            left = list(messages)
            async def receive():
                await asyncio.sleep(0)
                return {"type": left.pop(0) if len(left) > 1 else left[0]}
            return receive
        async def main():
            for path in ("/long", "/short"):
                receive = from_client("http.request", "http.disconnect")
                if path == "/short":
                    receive = from_client(*["http.request"] * 9, "http.disconnect")
                await asyncio.wait_for(config.loaded_app({"type": "http", "path": path}, receive, send), 10)
        asyncio.run(main())
        print(sent)
    """
    sentence = "[{'type': 'http.response.body'}, {'type': 'behind the answer'}]\n"
    assert injected.run(program, {"cancelled": True}) == sentence
    assert injected.took() == {"cancelled"}


def test_sqlite_waits_for_a_lock_whatever_the_app_says(injected: Injected) -> None:
    program = """
        import sqlite3
        connection, waits = sqlite3.connect(":memory:", timeout=0), []
        for says in ("SELECT 1", "PRAGMA busy_timeout = 5", "pragma main.busy_timeout(7);"):
            connection.execute(says)
            waits.append(connection.execute("PRAGMA busy_timeout").fetchone()[0])
        connection.executescript("PRAGMA foreign_keys = ON; PRAGMA busy_timeout=9")
        print(*waits, *connection.cursor().execute("PRAGMA busy_timeout").fetchone())
    """
    assert injected.run(program, {}) == "0 5 7 9\n"
    assert injected.run(program, {"sqlite-waits": 20.0}) == "20000 20000 20000 20000\n"
    assert injected.took() == {"sqlite-waits"}


def test_transactions_of_sqlite_take_the_lock_when_they_begin_whoever_makes_connection_and_cursor(
    injected: Injected,
) -> None:
    program = """
        import sqlite3
        class Own(sqlite3.Connection): pass
        class Cursor(sqlite3.Cursor):
            def execute(self, statement, *values): return super().execute(statement, *values)
        ran = []
        first = sqlite3.connect("shop.sqlite", isolation_level=None)
        second = sqlite3.connect("shop.sqlite", 5.0, isolation_level=None, factory=Own)
        for connection in (first, second): connection.set_trace_callback(ran.append)
        first.execute("begin"); first.execute("ROLLBACK")
        cursor = second.cursor(factory=Cursor)
        cursor.execute("BEGIN DEFERRED TRANSACTION;"); cursor.execute("SELECT ?", (7,)); second.rollback()
        second.executescript("BEGIN; CREATE TABLE rows (id); COMMIT;")
        second.execute("CREATE TRIGGER sees AFTER INSERT ON rows BEGIN SELECT 1; END")
        second.cursor(Cursor).execute("BEGIN EXCLUSIVE")
        print(isinstance(second, Own), isinstance(cursor, Cursor), ran)
    """
    ran = injected.run(program, {"sqlite-waits": 20.0})
    assert ran.startswith("True True ")
    begun = [statement.strip(" ;") for statement in ast.literal_eval(ran[len("True True ") :])]
    assert [statement for statement in begun if "begin" in statement.lower()] == [
        "begin IMMEDIATE",
        "BEGIN IMMEDIATE",
        "BEGIN IMMEDIATE",
        "CREATE TRIGGER sees AFTER INSERT ON rows BEGIN SELECT 1; END",
        "BEGIN EXCLUSIVE",
    ]


def test_a_pool_that_raises_is_made_larger_and_one_that_waits_is_left(injected: Injected) -> None:
    package(injected, "redis", "connection", REDIS)
    program = """
        from redis.connection import BlockingConnectionPool, ConnectionPool
        print({pools})
    """
    bounds = "BlockingConnectionPool(8).max_connections, ConnectionPool().max_connections"
    assert injected.run(program.replace("{pools}", bounds), {"raising-pools": 99}) == f"8 {2**31}\n"
    assert injected.took() == set()
    raising = program.replace("{pools}", "ConnectionPool(8).max_connections")
    assert injected.run(raising, {"raising-pools": 99}) == "99\n"
    assert injected.took() == {"raising-pools"}
