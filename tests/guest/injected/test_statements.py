"""Statements to databases are followed once each, normalized, by the line of the app that sends them."""

from collections import Counter
from pathlib import Path

import pytest
from tests.guest.injected.conftest import HEARTBEAT, UNTIL_REPORTED, Injected
from tests.ward.cells import ASYNC_SESSIONS, DJANGO, REDIS, SQLALCHEMY

from velodrome.guest.injected.statements import OPENING, normalize

SQLITE = """
import sqlite3
connection = sqlite3.connect(":memory:")
cursor = connection.cursor()
for number in range(4):
    cursor.execute("SELECT 1 WHERE 3 = ?", (number,))
connection.execute("SELECT 'a', 2").fetchall()
"""
CORE = """
from sqlalchemy import create_engine, text
with create_engine("sqlite://").connect() as connection:
    for number in range(4):
        connection.execute(text("SELECT 1 WHERE 3 = :number"), {"number": number})
    connection.execute(text("SELECT 'a', 2"))
"""
SESSIONS = """
import asyncio
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
async def main():
    async with AsyncSession(create_async_engine("sqlite+aiosqlite://")) as session:
        for number in range(4):
            await session.execute(text("SELECT 1 WHERE 3 = :number"), {"number": number})
        await session.execute(text("SELECT 'a', 2"))
asyncio.run(main())
"""
CURSOR = """
import asyncio, aiosqlite
async def main():
    async with aiosqlite.connect(":memory:") as connection:
        for number in range(4):
            await connection.execute("SELECT 1 WHERE 3 = ?", (number,))
        await connection.execute("SELECT 'a', 2")
asyncio.run(main())
"""
VIEWS = """
from django.conf import settings
settings.configure(DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}})
import django
django.setup()
from django.db import connection
with connection.cursor() as cursor:
    for number in range(4):
        cursor.execute("SELECT 1 WHERE 3 = %s", (number,))
    cursor.execute("SELECT 'a', 2")
"""


def sent(injected: Injected) -> Counter[tuple[str, str]]:
    """Return how often each statement was sent from which line of the app."""
    found: Counter[tuple[str, str]] = Counter()
    for line in injected.lines("heart"):
        for statement in line.get("statements", ()):
            assert Path(statement["file"]).name == "shop.py"
            found[statement["statement"], statement["text"]] += statement["times"]
    return found


@pytest.mark.parametrize(
    ("source", "requires"),
    [
        pytest.param(SQLITE, (), id="sqlite3"),
        pytest.param(CORE, (SQLALCHEMY,), id="sqlalchemy"),
        pytest.param(SESSIONS, ASYNC_SESSIONS, id="coroutines"),
        pytest.param(CURSOR, ASYNC_SESSIONS, id="aiosqlite"),
        pytest.param(VIEWS, (DJANGO,), id="django"),
    ],
)
def test_each_statement_is_reported_once_by_the_line_that_sends_it(
    injected: Injected, source: str, requires: tuple[str, ...]
) -> None:
    (injected.app / "shop.py").write_text(source)
    injected.run("import shop" + UNTIL_REPORTED, HEARTBEAT, requires=requires)
    lines = [line.strip() for line in source.splitlines() if "SELECT" in line]
    found = {key: times for key, times in sent(injected).items() if key[0].startswith("SELECT")}
    assert found == {("SELECT ? WHERE ? = ?", lines[0]): 4, ("SELECT ?, ?", lines[1]): 1}


BUSY = """
import sqlite3, threading, time
until = time.monotonic() + 1.3
def send():
    connection, sent = sqlite3.connect(":memory:"), 0
    while time.monotonic() < until:
        connection.execute("SELECT 1")
        sent += 1
    counts.append(sent)
counts = []
threads = [threading.Thread(target=send) for _ in range(3)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(sum(counts))
"""


def test_no_statement_of_several_threads_is_lost_while_others_are_reported(injected: Injected) -> None:
    (injected.app / "shop.py").write_text(BUSY)
    count = int(injected.run("import shop" + UNTIL_REPORTED, HEARTBEAT))
    assert sum(times for (normalized, _), times in sent(injected).items() if normalized != OPENING) == count


SERVER = """
import socket, threading
server = socket.create_server(("127.0.0.1", 0))
def serve():
    while True:
        connection = server.accept()[0]
        threading.Thread(target=answer, args=(connection,), daemon=True).start()
def answer(connection):
    with connection, connection.makefile("rb") as lines:
        for line in lines:
            if line.startswith(b"*"):
                for _ in range(2 * int(line[1:])): lines.readline()
                connection.sendall(b"+OK\\r\\n")
threading.Thread(target=serve, daemon=True).start()
port = server.getsockname()[1]
"""
CLIENT = """
import redis
from server import port
client = redis.Redis(port=port)
for number in range(4):
    client.get("item:%d" % number)
"""
ON_LOOP = """
import asyncio
import redis.asyncio
from server import port
async def main():
    client = redis.asyncio.Redis(port=port)
    for number in range(4):
        await client.get("item:%d" % number)
    await client.aclose()
asyncio.run(main())
"""


@pytest.mark.parametrize("source", [CLIENT, ON_LOOP])
def test_commands_of_redis_are_reported_without_what_names_one_key(injected: Injected, source: str) -> None:
    (injected.app / "server.py").write_text(SERVER)
    (injected.app / "shop.py").write_text(source)
    injected.run("import shop" + UNTIL_REPORTED, HEARTBEAT, requires=(REDIS,))
    found = {key: times for key, times in sent(injected).items() if key[0].startswith("GET")}
    assert found == {("GET item:?", next(line.strip() for line in source.splitlines() if ".get(" in line)): 4}


READS = """
import sqlite3, time
connection = sqlite3.connect(":memory:")
connection.create_function("wait", 1, lambda s: time.sleep(s))
rows = "SELECT 1 UNION ALL SELECT wait(0.1) UNION ALL SELECT 3"
for read in (list, lambda cursor: cursor.fetchall(), lambda cursor: [cursor.fetchone(), cursor.fetchmany(2)]):
    read(connection.execute(rows))
"""


def test_reading_the_rows_of_sqlite_takes_the_time_of_their_statement(injected: Injected) -> None:
    (injected.app / "shop.py").write_text(READS)
    injected.run("import shop" + UNTIL_REPORTED, HEARTBEAT)
    every = [statement for line in injected.lines("heart") for statement in line.get("statements", ())]
    (reading,) = [statement for statement in every if statement["statement"] != OPENING]
    assert {(each["times"], each["text"]) for each in every if each is not reading} == {
        (1, 'connection = sqlite3.connect(":memory:")')
    }
    assert (reading["times"], reading["text"]) == (3, "read(connection.execute(rows))")
    assert 0.3 <= reading["seconds"] < 0.6


def test_chosen_statements_take_longer_and_others_as_long_as_before(injected: Injected) -> None:
    program = """
        import sqlite3, time
        connection = sqlite3.connect(":memory:")
        def took(statement):
            began = time.perf_counter()
            connection.execute(statement).fetchall()
            return time.perf_counter() - began
        print(took("SELECT 1") >= 0.1, took("SELECT 1, 2") < 0.1)
    """
    assert injected.run(program, {"statements-longer": {"SELECT ?": 0.1}}) == "True True\n"
    assert injected.took() == {"statements-longer"}


def test_coroutines_wait_beside_each_other_for_statements_that_take_longer(injected: Injected) -> None:
    program = """
        import asyncio, aiosqlite, time
        async def select():
            async with aiosqlite.connect(":memory:") as connection:
                await connection.execute("SELECT 1")
        async def main():
            began = time.perf_counter()
            await asyncio.gather(*(select() for _ in range(8)))
            return time.perf_counter() - began
        print(0.2 <= asyncio.run(main()) < 1.2)
    """
    assert (
        injected.run(program, {"statements-longer": {"SELECT ?": 0.2}}, requires=ASYNC_SESSIONS) == "True\n"
    )


@pytest.mark.parametrize(
    ("statement", "normalized"),
    [
        (
            "SELECT a,\n  b FROM t WHERE id = 41 AND n = 'it''s 3'",
            "SELECT a, b FROM t WHERE id = ? AND n = ?",
        ),
        ("SELECT a FROM t2 WHERE id IN (%s, %s, %s)", "SELECT a FROM t2 WHERE id IN (?)"),
        ("SELECT a::text FROM t WHERE id = $1 AND b = :name", "SELECT a::text FROM t WHERE id = ? AND b = ?"),
        ("INSERT INTO t VALUES (%(a)s, %(b)s)", "INSERT INTO t VALUES (?)"),
    ],
)
def test_statements_that_differ_in_their_values_are_normalized_to_one(
    statement: str, normalized: str
) -> None:
    assert normalize(statement) == normalized
