"""A user's app stands on servers that are not installed in its environment."""

import os
import time
import urllib.request
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
from tests.run.apps.theirs import SHOP, python_with
from tests.usecases.served import standing

from velodrome.model.app import App, Content, Request
from velodrome.model.errors import AppAnswersWrongError, AppNotServedError, InterpreterNotFoundError
from velodrome.model.load import Limits
from velodrome.model.trial import Contestant
from velodrome.run.environments.interpreter import find_interpreter
from velodrome.usecases.apps import AppSpec, lab_for, look, stacks_for
from velodrome.usecases.bench import Bench, trial_of

FLASK = "flask==3.1.2"


def flask(*requests: Request, **more: object) -> AppSpec:
    return AppSpec("flask_shop:app", python_with(FLASK), str(SHOP), requests=requests, **more)  # type: ignore[arg-type]


def children() -> set[int]:
    return {process.pid for process in psutil.Process().children(recursive=True)}


def got(app: App, spec: AppSpec, stack: str, path: str, **knobs: int) -> str:
    with standing(app, Contestant(stack, knobs), lab_for(spec)) as booted:
        url = booted.server.url.rstrip("/") + path
        with urllib.request.urlopen(url, timeout=10) as answer:
            return str(answer.read().decode())


def files(python: str) -> list[str]:
    home = Path(python).parents[1]
    return sorted(os.path.join(at, name) for at, _, names in os.walk(home) for name in names)


def test_flask_stands_on_gunicorn_that_is_not_installed_there() -> None:
    spec = flask(Request("cart", "/cart?id=7"))
    app = look(spec)
    before = files(app.python)
    with standing(app, Contestant("gunicorn-sync", {"workers": 2}), lab_for(spec)) as booted:
        with urllib.request.urlopen(booted.server.url + "cart?id=7", timeout=10) as answer:
            assert b'"7"' in answer.read()
        assert booted.environment.packages["flask"] == "3.1.2"
        assert booted.environment.packages["gunicorn"]
        assert booted.target.url.endswith("/cart?id=7")
    assert files(app.python) == before


def test_requests_have_to_be_answered_rightly() -> None:
    order = Request(
        "order",
        "/orders",
        "POST",
        headers=(("Content-Type", "application/json"),),
        body=Content('{"id": "{{uuid}}"}'),
        expect_status=201,
        expect_contains="ordered",
    )
    spec = flask(Request("cart", "/cart?id={{random 1..9}}"), order)
    app = look(spec)
    with standing(app, Contestant("waitress"), lab_for(spec)) as booted:
        assert booted.target.mix == app.requests
    wrong = flask(Request("nope", "/nope"))
    with (
        pytest.raises(
            AppAnswersWrongError, match=r"it answers GET /nope with status 404, not 2xx: «<!doctype"
        ),
        standing(look(wrong), Contestant("waitress"), lab_for(wrong)),
    ):
        pass


def test_what_is_answered_wrongly_of_a_mix_is_reported_before_anything_is_measured() -> None:
    spec = flask(Request("cart", "/cart?id=7"), Request("gone", "/gone"))
    app, lab = look(spec), lab_for(spec)
    heard: list[str] = []
    trial = trial_of("told", app.recipe, Contestant("waitress"), Limits(), app=app)
    with Bench(trial, lab, warn=heard.append) as bench:
        bench.alone()
    (sentence,) = heard
    assert sentence.startswith("warning: on waitress")
    assert "gone" in sentence
    assert "status 404" in sentence


AIOHTTP, TORNADO, DJANGO, FASTAPI = "aiohttp==3.13.2", "tornado==6.5.2", "django==5.2.8", "fastapi==0.121.1"
CART = ("/cart?id=7", '"7"')
FORMS = [
    ("plain:create_named('test')", (), "gunicorn-gthread", ("/", "hello")),
    pytest.param("plain:create_app", (), "waitress", ("/", "hello"), marks=pytest.mark.exhaustive),
    ("plain:Double", (), "uvicorn", ("/", "hello")),
    ("awaited:create_asgi('mall')", (), "uvicorn", ("/", "hello")),
    pytest.param("awaited:create_asgi", (), "hypercorn", ("/", "hello"), marks=pytest.mark.exhaustive),
    pytest.param("awaited:create_asgi", (), "granian-asgi", ("/", "hello"), marks=pytest.mark.exhaustive),
    pytest.param("awaited:create_asgi", (), "gunicorn-uvicorn", ("/", "hello"), marks=pytest.mark.exhaustive),
    pytest.param("plain:Double", (), "hypercorn", ("/", "hello"), marks=pytest.mark.exhaustive),
    pytest.param("plain:asgi", (), "granian-asgi", ("/", "hello"), marks=pytest.mark.exhaustive),
    ("aiohttp_shop:app", (AIOHTTP,), "aiohttp", CART),
    ("aiohttp_shop:make_later", (AIOHTTP,), "aiohttp-uvloop", CART),
    ("tornado_shop:make_app", (TORNADO,), "tornado", CART),
    ("bare_settings", (DJANGO,), "gunicorn-sync", CART),
    pytest.param("bare_settings", (DJANGO,), "uvicorn", CART, marks=pytest.mark.exhaustive),
    ("mall.settings", (DJANGO,), "gunicorn-gevent", CART),
    ("fastapi_shop:create_app", (FASTAPI,), "uvicorn", ("/stock", "apples")),
    pytest.param(
        "fastapi_shop:app", (FASTAPI,), "hypercorn", ("/stock", "apples"), marks=pytest.mark.exhaustive
    ),
]


@pytest.mark.parametrize(("app", "requires", "stack", "exchange"), FORMS)
def test_every_form_of_an_app_stands(
    app: str, requires: tuple[str, ...], stack: str, exchange: tuple[str, str]
) -> None:
    path, right = exchange
    spec = AppSpec(app, python_with(*requires), str(SHOP), requests=(Request("it", path),))
    assert right in got(look(spec), spec, stack, path)


def test_a_django_site_is_raced_on_servers_of_both_kinds() -> None:
    spec = AppSpec("mall.settings", python_with(DJANGO), str(SHOP))
    found = look(spec)
    assert found.served == {
        "wsgi": "mall.wsgi:application",
        "asgi": "velodrome.guest.apps.served:django_asgi",
    }
    assert {"gunicorn-sync", "uvicorn"} <= set(stacks_for(found, lab_for(spec)))


def test_its_users_version_of_a_server_gets_only_options_it_knows() -> None:
    spec = AppSpec("plain:application", python_with("gunicorn==21.2.0"), str(SHOP))
    app = look(spec)
    with standing(app, Contestant("gunicorn-sync"), lab_for(spec)) as booted:
        assert booted.environment.packages["gunicorn"] == "21.2.0"


def test_an_app_on_an_old_interpreter_stands() -> None:
    try:
        python = str(find_interpreter("3.8").path)
    except InterpreterNotFoundError as error:
        pytest.skip(str(error))
    spec = AppSpec("plain:application", python, str(SHOP))
    assert got(look(spec), spec, "gunicorn-gthread", "/") == "hello"


def test_it_sees_its_folder_and_the_variables_of_its_user(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_NAME", "blue")
    spec = AppSpec("plain:application", cwd=str(SHOP), env=("SHOP_NAME",))
    app = look(spec)
    assert got(app, spec, "waitress", "/env") == "blue"
    assert got(app, spec, "waitress", "/cwd") == str(SHOP)
    assert "blue" not in repr(app)


def test_a_third_party_that_it_calls_is_simulated() -> None:
    spec = AppSpec(
        "calls_payments:application",
        cwd=str(SHOP),
        upstreams=("PAYMENTS_URL=latency:uniform(20ms,30ms)",),
    )
    app = look(spec)
    with standing(app, Contestant("waitress"), lab_for(spec)) as booted:
        (third,) = booted.upstreams
        third.begin()
        began = time.monotonic()
        with urllib.request.urlopen(booted.server.url, timeout=10) as answer:
            assert answer.read() == b"paid"
        assert time.monotonic() - began >= 0.02
        assert third.end().requests == 1


def test_megabytes_forks_threads_and_another_folder_do_no_harm_to_serving() -> None:
    spec = AppSpec("troublesome:application", cwd=str(SHOP))
    with standing(look(spec), Contestant("waitress"), lab_for(spec)) as booted:
        stopped = booted.server.stop(2.0)
    assert stopped.left == ()


def test_an_app_deaf_to_every_signal_is_ended_with_its_children() -> None:
    spec = AppSpec("deaf:application", cwd=str(SHOP))
    with standing(look(spec), Contestant("waitress"), lab_for(spec)) as booted:
        stopped = booted.server.stop(0.5)
    assert stopped.ending.hung
    assert stopped.left == ()


def test_where_an_app_listens_instead_is_reported() -> None:
    spec = AppSpec("elsewhere:application", cwd=str(SHOP))
    lab = replace(lab_for(spec), start_seconds=4.0)
    with (
        pytest.raises(
            AppNotServedError, match=r"no answer within 4 s: .*it listens on 127\.0\.0\.1:\d+ instead"
        ),
        standing(look(spec), Contestant("waitress"), lab),
    ):
        pass


@pytest.mark.parametrize(("app", "stack"), [("hangs:application", "waitress"), ("hangs:asgi", "uvicorn")])
def test_an_app_that_never_ends_an_answer_is_reported_with_what_to_do_and_nothing_is_left(
    app: str, stack: str
) -> None:
    spec = AppSpec(app, cwd=str(SHOP))
    before = children()
    lab = replace(lab_for(spec), start_seconds=3.0)
    with (
        pytest.raises(
            AppNotServedError,
            match=r"(?s)no answer within 3 s: .*--setup, --env",
        ),
        standing(look(spec), Contestant(stack), lab),
    ):
        pass
    assert children() <= before


@pytest.mark.parametrize(("app", "stack"), [("fails:application", "waitress"), ("fails:asgi", "uvicorn")])
def test_an_app_that_fails_at_each_request_shows_its_own_error(app: str, stack: str) -> None:
    spec = AppSpec(app, cwd=str(SHOP))
    with (
        pytest.raises(
            AppAnswersWrongError,
            match=r"(?s)status 500.*ConnectionRefusedError.*--env NAME",
        ),
        standing(look(spec), Contestant(stack), lab_for(spec)),
    ):
        pass


@pytest.mark.parametrize(
    ("app", "sentence"),
    [
        ("lifespan:raises", r"(?s)On uvicorn: its process ended.*no such database: shop"),
        ("lifespan:hangs", r"(?s)On uvicorn: no answer within 3 s.*waiting for the database"),
    ],
)
def test_an_app_whose_life_does_not_begin_ends_with_its_last_lines_and_nothing_is_left(
    app: str, sentence: str
) -> None:
    spec = AppSpec(app, cwd=str(SHOP))
    before = children()
    lab = replace(lab_for(spec), start_seconds=3.0)
    with (
        pytest.raises(AppNotServedError, match=sentence),
        standing(look(spec), Contestant("uvicorn"), lab),
    ):
        pass
    assert children() <= before


def test_an_app_whose_growth_meets_a_limit_is_reported() -> None:
    spec = AppSpec("grows:application", cwd=str(SHOP))
    limits = Limits(memory_bytes=200_000_000)
    with standing(look(spec), Contestant("waitress"), lab_for(spec), limits) as booted:
        for _ in range(60):
            with suppress(OSError):
                urllib.request.urlopen(booted.server.url, timeout=5).close()
        lines = " ".join(booted.server.last_lines(100))
        ended = booted.server.exit()
    assert "MemoryError" in lines or (ended is not None and "memory limit" in ended.sentence)
