"""Treatments of what queries a database, with the database: connections are kept, and pools grow where they have to."""

from collections.abc import Iterator
from contextlib import ExitStack
from textwrap import dedent
from urllib.parse import urlsplit

import pytest
from tests.guest.injected.conftest import HEARTBEAT, UNTIL_REPORTED, Injected
from tests.ward.cells import REDIS, SQLALCHEMY

from velodrome.guest.injected.bounds import BEYOND
from velodrome.guest.injected.statements import OPENING
from velodrome.model.errors import CompanionMissingError
from velodrome.run.environments import guest_tree
from velodrome.run.services import service
from velodrome.run.services.service import Surroundings

KEPT = "kept-connections"
POOLS = "database-pools"
PSYCOPG = ("psycopg[binary]==3.2.13", "psycopg-pool==3.2.8")


@pytest.fixture(scope="module")
def databases() -> Iterator[dict[str, str]]:
    """Their URLs, as environment variables; skips where one is not installed."""
    names = ("postgresql", "mariadb", "redis")
    with ExitStack() as running:
        try:
            beside = service.start_services(names, Surroundings(guest_tree.export()), running)
        except CompanionMissingError as missing:
            pytest.skip(str(missing))
        yield {name.upper(): beside.running[name].url for name in names}


def mariadb(url: str) -> dict[str, str]:
    """What a client of MariaDB is opened with."""
    parts = urlsplit(url)
    assert parts.hostname is not None
    return {
        "DB_HOST": parts.hostname,
        "DB_PORT": str(parts.port),
        "DB_USER": parts.username or "",
        "DB_PASSWORD": parts.password or "",
        "DB_NAME": parts.path.lstrip("/"),
    }


POSTGRESQL_WAITS = """
    import asyncio, os
    {imported}
    URL = os.environ["POSTGRESQL"]

    def use(fails=False):
        with {module}.connect(URL) as db:
            with db.cursor() as cursor:
                cursor.execute("CREATE TEMP TABLE IF NOT EXISTS names (name text)")
                cursor.execute("INSERT INTO names VALUES ('a')")
                cursor.execute("SELECT pg_backend_pid(), (SELECT count(*) FROM names)")
                found = cursor.fetchone()
                if fails: raise RuntimeError
        db.close()
        return found

    first = use()
    try: use(fails=True)
    except RuntimeError: pass
    second = use()
    db = {module}.connect(URL)  # nothing is committed
    with db.cursor() as cursor:
        cursor.execute("CREATE TEMP TABLE IF NOT EXISTS names (name text)")
        cursor.execute("INSERT INTO names VALUES ('lost')")
    db.close()
    third = use()
    print(len({{row[0] for row in (first, second, third)}}), [row[1] for row in (first, second, third)])
"""
PSYCOPG2_WAITS = POSTGRESQL_WAITS.format(imported="import psycopg2", module="psycopg2")
PSYCOPG_WAITS = POSTGRESQL_WAITS.format(imported="import psycopg", module="psycopg")
PSYCOPG_AWAITS = """
    import asyncio, os
    import psycopg

    async def use():
        async with await psycopg.AsyncConnection.connect(os.environ["POSTGRESQL"]) as db:
            async with db.cursor() as cursor:
                await cursor.execute("CREATE TEMP TABLE IF NOT EXISTS names (name text)")
                await cursor.execute("INSERT INTO names VALUES ('a')")
                await cursor.execute("SELECT pg_backend_pid(), (SELECT count(*) FROM names)")
                return await cursor.fetchone()

    async def main():
        every = [await use() for _ in range(3)]
        print(len({row[0] for row in every}), [row[1] for row in every])

    asyncio.run(main())
"""
ASYNCPG_AWAITS = """
    import asyncio, os
    import asyncpg

    async def use():
        db = await asyncpg.connect(os.environ["POSTGRESQL"])
        try:
            await db.execute("CREATE TEMP TABLE IF NOT EXISTS names (name text)")
            async with db.transaction():
                await db.execute("INSERT INTO names VALUES ('a')")
            return tuple(await db.fetchrow("SELECT pg_backend_pid(), (SELECT count(*) FROM names)"))
        finally:
            await db.close()

    async def main():
        every = [await use() for _ in range(3)]
        print(len({row[0] for row in every}), [row[1] for row in every])

    asyncio.run(main())
"""
MARIADB_WAITS = """
    import os
    import {module}

    def use(commits=True):
        db = {module}.connect(
            host=os.environ["DB_HOST"], port=int(os.environ["DB_PORT"]), user=os.environ["DB_USER"],
            password=os.environ["DB_PASSWORD"], database=os.environ["DB_NAME"])
        cursor = db.cursor()
        cursor.execute("CREATE TEMPORARY TABLE IF NOT EXISTS names (name text) ENGINE=InnoDB")
        cursor.execute("INSERT INTO names VALUES ('a')")
        cursor.execute("SELECT connection_id(), (SELECT count(*) FROM names)")
        found = cursor.fetchone()
        if commits: db.commit()
        cursor.close()
        db.close()
        return found

    every = [use(), use(commits=False), use()]
    print(len({{row[0] for row in every}}), [row[1] for row in every])
"""


DRIVERS = [
    pytest.param(PSYCOPG2_WAITS, ("psycopg2-binary==2.9.11",), "[1, 2, 3]", id="psycopg2"),
    pytest.param(PSYCOPG_WAITS, PSYCOPG, "[1, 2, 3]", id="psycopg"),
    pytest.param(PSYCOPG_AWAITS, PSYCOPG, "[1, 2, 3]", id="psycopg, awaited"),
    pytest.param(ASYNCPG_AWAITS, ("asyncpg==0.31.0",), "[1, 2, 3]", id="asyncpg"),
    pytest.param(MARIADB_WAITS.format(module="pymysql"), ("pymysql==1.2.4",), "[1, 2, 2]", id="pymysql"),
    pytest.param(
        MARIADB_WAITS.format(module="MySQLdb"), ("mysqlclient==2.3.1",), "[1, 2, 2]", id="mysqlclient"
    ),
]
"""Programs that open a connection three times or more; each with what it counts where one is kept."""


@pytest.mark.parametrize(("program", "requires", "counts"), DRIVERS)
def test_what_an_app_opens_of_a_driver_is_kept_and_what_it_did_not_commit_is_gone(
    injected: Injected, databases: dict[str, str], program: str, requires: tuple[str, ...], counts: str
) -> None:
    (injected.app / "shop.py").write_text(dedent(program))
    env = {**databases, **mariadb(databases["MARIADB"])}
    assert injected.run("import shop", {}, requires=requires, **env).startswith("3 ")
    assert injected.took() == set()
    assert injected.run("import shop", {KEPT: 4}, requires=requires, **env) == f"1 {counts}\n"
    assert injected.took() == {KEPT}


LABELLED = """
    import os
    import psycopg2

    def use(number):
        db = psycopg2.connect(os.environ["POSTGRESQL"], {label}=f"shop/{{number}}")
        db.autocommit = True
        with db.cursor() as cursor:
            cursor.execute("SELECT pg_backend_pid(), (SELECT count(*) FROM pg_stat_activity WHERE backend_type = "
                           "'client backend' AND pid <> pg_backend_pid())")
            return cursor.fetchone()

    every = [use(number) for number in range(8)]
    print(len({{row[0] for row in every}}), max(row[1] for row in every))
"""


@pytest.mark.parametrize(
    ("label", "found"), [("application_name", "1 0\n"), ("fallback_application_name", "8 4\n")]
)
def test_connections_are_known_by_what_they_are_and_no_more_are_kept_than_a_database_bears(
    injected: Injected, databases: dict[str, str], label: str, found: str
) -> None:
    (injected.app / "shop.py").write_text(dedent(LABELLED.format(label=label)))
    requires = ("psycopg2-binary==2.9.11",)
    assert injected.run("import shop", {KEPT: 4}, requires=requires, **databases) == found


@pytest.mark.parametrize(("program", "requires", "counts"), DRIVERS)
def test_each_connection_that_is_opened_is_followed_by_the_line_that_opens_it(
    injected: Injected, databases: dict[str, str], program: str, requires: tuple[str, ...], counts: str
) -> None:
    (injected.app / "shop.py").write_text(dedent(program) + UNTIL_REPORTED)
    env = {**databases, **mariadb(databases["MARIADB"])}
    injected.run("import shop", HEARTBEAT, requires=requires, **env)
    opened = [
        (statement["text"], statement["times"])
        for line in injected.lines("heart")
        for statement in line.get("statements", ())
        if statement["statement"] == OPENING
    ]
    assert sum(times for _, times in opened) >= 3
    assert all("connect" in text for text, _ in opened)


REDIS_WAITS = """
    import os, time
    import redis

    def use():
        client = redis.Redis.from_url(os.environ["REDIS"])
        client.incr("shop:{how}")
        found = client.client_id(), int(client.get("shop:{how}"))
        {ends}
        return found

    first = use()
    open(os.environ["SEEN"] + "/warm", "w").close()
    time.sleep(0.3)
    every = [use() for _ in range(3)]
    print(len({row[0] for row in every}), [row[1] - first[1] for row in every])
"""
REDIS_AWAITS = """
    import asyncio, os, time
    import redis.asyncio

    async def use():
        client = redis.asyncio.Redis.from_url(os.environ["REDIS"])
        await client.incr("shop:awaited")
        found = await client.client_id(), int(await client.get("shop:awaited"))
        await client.aclose()
        return found

    async def main():
        first = await use()
        open(os.environ["SEEN"] + "/warm", "w").close()
        await asyncio.sleep(0.3)
        every = [await use() for _ in range(3)]
        print(len({row[0] for row in every}), [row[1] - first[1] for row in every])

    asyncio.run(main())
"""


@pytest.mark.parametrize(
    "program",
    [
        REDIS_WAITS.replace("{how}", "closed").replace("{ends}", "client.close()"),
        REDIS_WAITS.replace("{how}", "gone").replace("{ends}", "pass"),
        REDIS_AWAITS,
    ],
    ids=["closed", "let go", "awaited"],
)
def test_clients_of_redis_that_are_made_alike_hand_on_their_connections(
    injected: Injected, databases: dict[str, str], program: str
) -> None:
    env = {**databases, "SEEN": str(injected.seen)}
    assert injected.run(program, {}, requires=(REDIS,), **env) == "3 [1, 2, 3]\n"
    (injected.seen / "warm").unlink()
    assert injected.run(program, {KEPT: 4}, requires=(REDIS,), **env) == "1 [1, 2, 3]\n"
    assert injected.took() == {KEPT}


SQLALCHEMY_GROWS = """
    from sqlalchemy import create_engine
    engine = create_engine("sqlite:///shop.sqlite", pool_size=2, max_overflow=1)
    engine.dispose()
    taken = [engine.connect() for _ in range({count})]
    print(len(taken))
"""
ASYNCPG_GROWS = """
    import asyncio, os
    import asyncpg

    async def main():
        async with asyncpg.create_pool(os.environ["POSTGRESQL"], min_size=2, max_size=3) as pool:
            taken = [await pool.acquire() for _ in range({count})]
            print(len(taken))
            for connection in taken: await pool.release(connection)

    asyncio.run(main())
"""
PSYCOPG_GROWS = """
    import os
    from psycopg_pool import ConnectionPool

    with ConnectionPool(os.environ["POSTGRESQL"], min_size=1, max_size=3) as pool:
        taken = [pool.getconn() for _ in range({count})]
        print(len(taken))
        for connection in taken: pool.putconn(connection)
"""
PSYCOPG_GROWS_LATER = """
    import asyncio, os
    from psycopg_pool import AsyncConnectionPool

    async def main():
        async with AsyncConnectionPool(os.environ["POSTGRESQL"], min_size=1, max_size=3) as pool:
            taken = [await pool.getconn() for _ in range({count})]
            print(len(taken))
            for connection in taken: await pool.putconn(connection)

    asyncio.run(main())
"""
AIOMYSQL_GROWS = """
    import asyncio, os
    import aiomysql

    async def main():
        async with aiomysql.create_pool(
            host=os.environ["DB_HOST"], port=int(os.environ["DB_PORT"]), user=os.environ["DB_USER"],
            password=os.environ["DB_PASSWORD"], db=os.environ["DB_NAME"], minsize=1, maxsize=3) as pool:
            taken = [await pool.acquire() for _ in range({count})]
            print(len(taken))
            for connection in taken: pool.release(connection)

    asyncio.run(main())
"""


@pytest.mark.parametrize(
    ("program", "requires"),
    [
        (SQLALCHEMY_GROWS, (SQLALCHEMY,)),
        (ASYNCPG_GROWS, ("asyncpg==0.31.0",)),
        (PSYCOPG_GROWS, PSYCOPG),
        (PSYCOPG_GROWS_LATER, PSYCOPG),
        (AIOMYSQL_GROWS, ("aiomysql==0.3.2",)),
    ],
    ids=["sqlalchemy", "asyncpg", "psycopg", "psycopg, awaited", "aiomysql"],
)
def test_a_larger_pool_notes_when_more_are_in_use_than_the_smaller_one_had(
    injected: Injected, databases: dict[str, str], program: str, requires: tuple[str, ...]
) -> None:
    env = {**databases, **mariadb(databases["MARIADB"])}
    # Psycopg's pool grows ahead, so that it may have one more than are taken.
    assert injected.run(program.format(count=2), {POOLS: 20}, requires=requires, **env) == "2\n"
    assert injected.took() == {POOLS}
    assert injected.run(program.format(count=5), {POOLS: 20}, requires=requires, **env) == "5\n"
    assert injected.took() == {POOLS, POOLS + BEYOND}
