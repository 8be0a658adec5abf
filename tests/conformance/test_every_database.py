"""Databases under the stacks that can query them: every client reads, writes and waits as its idiom does."""

import os
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.conformance import mongo_stand_in
from tests.conformance.answering import check_nothing_is_left, check_one_answer
from tests.conformance.booted import Booted, booted
from tests.conformance.grpc_wire import call, send_calls

from velodrome.guest import catalog, client
from velodrome.guest.client import Client
from velodrome.guest.recipe import EMBEDDED, Body, Query, Recipe, Sleep, Step, Together, Write
from velodrome.guest.stack import Stack
from velodrome.model.errors import CompanionMissingError
from velodrome.run.environments import environment
from velodrome.run.services import service
from velodrome.run.services.service import Surroundings

STACKS = catalog.stacks()
CLIENTS = client.clients()
STARTED = ("mariadb", "postgresql", "redis")
BOTH_IDIOMS = ("gunicorn-gevent", "gunicorn-gthread", "uvicorn", "aiohttp", "tornado", "tornado-gen")
"""Stacks that between them wait in every way: on greenlets, threads, tasks, Tornado's coroutines and generators."""
REQUESTS = 10
PAUSE_MS = 100.0
PATIENCE_S = 30.0


def exercise(db_client: Client, driver: str = "") -> tuple[Step, ...]:
    """Return steps that query a database in every way."""
    pause = (Query(2, db_client.database, driver, 20),) if db_client.pauses else ()
    beside = (Query(3, db_client.database, driver), Write(2, db_client.database, driver), Sleep(5))
    return (
        Together(beside),
        *pause,
        Write(1, db_client.database, driver),
        Query(40, db_client.database, driver),
    )


def whole(names: tuple[str, ...]) -> Recipe:
    """Return a recipe that queries several databases, each through the client of the handler's own idiom."""
    defaults = [
        db_client
        for db_client in CLIENTS.values()
        if db_client.database in names and db_client.default and not db_client.awaits
    ]
    steps = [step for default in defaults for step in exercise(default)]
    return Recipe("every-database", "asks them all", (*steps, Body(84)))


def named(db_client: Client) -> Recipe:
    return Recipe(
        db_client.name, f"asks {db_client.database}", (*exercise(db_client, db_client.name), Body(84))
    )


def protocol(stack: Stack) -> str:
    return catalog.interface(stack.interface).protocol


def exhaustive(pair: bool) -> tuple[pytest.MarkDecorator, ...]:
    return (pytest.mark.exhaustive,) if pair else ()


@pytest.fixture(scope="module")
def beside(tree: Path) -> Iterator[Callable[[Recipe], Mapping[str, str]]]:
    """The variables of the databases a recipe queries, each started once; a test is skipped where one is missing."""
    with ExitStack() as running:
        found: dict[str, str | CompanionMissingError] = {}

        def variables(recipe: Recipe) -> Mapping[str, str]:
            for name in recipe.services:
                if name not in found:
                    try:
                        surroundings = Surroundings(tree)
                        found[name] = service.start_services((name,), surroundings, running).running[name].url
                    except CompanionMissingError as missing:
                        found[name] = missing
                if isinstance(found[name], CompanionMissingError):
                    pytest.skip(str(found[name]))
            return {client.variable(name): str(found[name]) for name in recipe.services}

        yield variables


@pytest.fixture
def serving(
    beside: Callable[[Recipe], Mapping[str, str]], tree: Path, upstream: str, tmp_path: Path
) -> Iterator[Callable[[Stack, Recipe], Booted]]:
    """Boots a stack, in an environment with the clients of the recipe."""
    with ExitStack() as running:

        def serve(stack: Stack, recipe: Recipe) -> Booted:
            variables = beside(recipe)
            if (why := environment.cannot_run(stack)) is not None:
                pytest.skip(why)
            python = environment.environment_for(stack, served=recipe).python
            return running.enter_context(
                booted(stack, recipe, python, tree, upstream, tmp_path, variables=variables)
            )

        yield serve


@pytest.mark.parametrize(
    "stack",
    [
        pytest.param(stack, id=name, marks=exhaustive(name not in BOTH_IDIOMS))
        for name, stack in STACKS.items()
        if catalog.serves(stack, whole(STARTED)) is None and protocol(stack) == "http"
    ],
)
def test_a_stack_queries_all_databases_and_leaves_nothing(
    stack: Stack, serving: Callable[[Stack, Recipe], Booted]
) -> None:
    recipe = whole(STARTED)
    server = serving(stack, recipe)
    # The first requests come together: one pool is opened, not ten.
    with ThreadPoolExecutor(REQUESTS) as pool:
        for future in [pool.submit(check_one_answer, server, stack, recipe) for _ in range(3 * REQUESTS)]:
            future.result()
    check_nothing_is_left(server)


@pytest.mark.parametrize(
    "stack",
    [
        pytest.param(stack, id=name, marks=exhaustive(name != "grpc-aio"))
        for name, stack in STACKS.items()
        if catalog.serves(stack, whole(STARTED)) is None and protocol(stack) == "grpc"
    ],
)
def test_a_grpc_stack_queries_all_databases_and_leaves_nothing(
    stack: Stack, serving: Callable[[Stack, Recipe], Booted], tree: Path
) -> None:
    recipe = whole(STARTED)
    server = serving(stack, recipe)
    caller = environment.environment_for(STACKS["grpc-aio"]).python
    responses = send_calls(caller, tree, [call(server.port, recipe)] * REQUESTS, together=True)
    assert [response.code for response in responses] == [0] * REQUESTS, server.output()
    check_nothing_is_left(server)


@pytest.mark.parametrize(
    ("stack", "db_client"),
    [
        pytest.param(stack, db_client, id=f"{name}-{db_client.name}", marks=exhaustive(db_client.default))
        for name, stack in STACKS.items()
        for db_client in CLIENTS.values()
        if name in BOTH_IDIOMS[:3] and db_client.database in STARTED
        # A client that blocks stops the loop of one that awaits: one such pair is enough.
        if db_client.awaits == catalog.interface(stack.interface).awaits
        or (name, db_client.name) == ("uvicorn", "pymysql")
    ],
)
def test_a_client_named_by_the_recipe_is_the_one_that_is_used(
    stack: Stack, db_client: Client, serving: Callable[[Stack, Recipe], Booted]
) -> None:
    recipe = named(db_client)
    server = serving(stack, recipe)
    for _ in range(3):
        check_one_answer(server, stack, recipe)
    check_nothing_is_left(server)


@pytest.fixture(scope="module")
def mongodb(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Have a server that speaks MongoDB's protocol named in the environment: the user's, else a stand-in."""
    variable = client.variable("mongodb")
    if os.environ.get(variable):
        yield
        return
    if why := mongo_stand_in.missing():
        pytest.skip(f"no MongoDB is named in {variable}, and for a stand-in {why}")
    with (
        mongo_stand_in.running(tmp_path_factory.mktemp("mongodb")) as url,
        pytest.MonkeyPatch.context() as patched,
    ):
        patched.setenv(variable, url)
        yield


@pytest.mark.usefixtures("mongodb")
@pytest.mark.parametrize(
    "name", [db_client.name for db_client in CLIENTS.values() if db_client.database == "mongodb"]
)
def test_mongodb_is_queried_where_the_user_names_one(
    name: str, serving: Callable[[Stack, Recipe], Booted]
) -> None:
    db_client = CLIENTS[name]
    stack = STACKS["uvicorn" if db_client.awaits else "gunicorn-gevent"]
    server = serving(stack, named(db_client))
    for _ in range(3):
        check_one_answer(server, stack, named(db_client))
    check_nothing_is_left(server)


@pytest.mark.parametrize(
    ("name", "driver"),
    [("gunicorn-gthread", "pymysql"), ("gunicorn-gthread", "psycopg"), ("uvicorn", "asyncpg")],
)
def test_writers_of_the_same_rows_wait_for_each_other_and_none_is_refused(
    name: str, driver: str, serving: Callable[[Stack, Recipe], Booted]
) -> None:
    """Each changes most of the table, from another first row: locks taken in any order would end in a deadlock."""
    recipe = Recipe("x", "x", (Write(3000, CLIENTS[driver].database, driver), Body(84)))
    server = serving(STACKS[name], recipe)
    for _ in range(3):
        request_together(server, STACKS[name], recipe)


def request_together(server: Booted, stack: Stack, recipe: Recipe) -> float:
    """Send ten requests at once; return the seconds until all were answered."""
    with ThreadPoolExecutor(REQUESTS) as pool:
        began = time.monotonic()
        for future in [pool.submit(check_one_answer, server, stack, recipe) for _ in range(REQUESTS)]:
            future.result()
        return time.monotonic() - began


WAITING = [
    ("gunicorn-gevent", "pymysql", True),
    ("gunicorn-gevent", "mysqlclient", False),
    ("gunicorn-gevent", "psycopg", True),
    ("gunicorn-gevent", "sqlite3", False),
    ("uvicorn", "aiomysql", True),
    ("uvicorn", "pymysql", False),
    ("uvicorn", "asyncpg", True),
]


@pytest.mark.parametrize(("name", "driver", "cooperates"), WAITING)
def test_whether_others_run_while_a_client_waits_is_as_its_library_is_made(
    name: str, driver: str, cooperates: bool, serving: Callable[[Stack, Recipe], Booted]
) -> None:
    stack, database = STACKS[name], CLIENTS[driver].database
    recipe = Recipe("waiting", "waits 100 ms", (Query(1, database, driver, PAUSE_MS), Body(84)))
    server = serving(stack, recipe)
    in_turn_s = REQUESTS * PAUSE_MS / 1000
    request_together(server, stack, recipe)  # connections are opened
    if not cooperates:
        assert request_together(server, stack, recipe) >= in_turn_s - 0.01
        return
    until = time.monotonic() + PATIENCE_S  # a busy machine may delay one
    while (took_s := request_together(server, stack, recipe)) >= in_turn_s / 2:
        assert time.monotonic() < until, f"{took_s:.2f} s, in turn it is {in_turn_s:.1f}"


def test_every_idiom_has_a_client_of_every_database() -> None:
    for name in client.databases():
        for awaits in (False, True):
            db_client = client.choose_client(name, "", awaits)
            assert db_client.awaits == awaits
            assert (db_client.requires == ()) == (name == EMBEDDED)
