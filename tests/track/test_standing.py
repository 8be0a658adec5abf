"""A user's app stands on servers that are not installed in its environment."""

import os
import urllib.request
from pathlib import Path

import pytest
from tests.run.apps.theirs import SHOP, python_with

from velodrome.model.app import App
from velodrome.model.errors import AppAnswersWrongError
from velodrome.model.request import Content, Request
from velodrome.model.trial import Contestant
from velodrome.track.apps import Asked, lab_for, look
from velodrome.track.standing import standing

FLASK = "flask==3.1.2"


def flask(*requests: Request, **more: object) -> Asked:
    return Asked("flask_shop:app", python_with(FLASK), str(SHOP), requests=requests, **more)  # type: ignore[arg-type]


def got(app: App, asked: Asked, stack: str, path: str, **knobs: int) -> str:
    with standing(app, Contestant(stack, knobs), lab_for(asked)) as booted:
        url = booted.server.url.rstrip("/") + path
        with urllib.request.urlopen(url, timeout=10) as answer:
            return str(answer.read().decode())


def files(python: str) -> list[str]:
    home = Path(python).parents[1]
    return sorted(os.path.join(at, name) for at, _, names in os.walk(home) for name in names)


def test_flask_stands_on_gunicorn_that_is_not_installed_there() -> None:
    asked = flask(Request("cart", "/cart?id=7"))
    app = look(asked)
    before = files(app.python)
    with standing(app, Contestant("gunicorn-sync", {"workers": 2}), lab_for(asked)) as booted:
        with urllib.request.urlopen(booted.server.url + "cart?id=7", timeout=10) as answer:
            assert b'"7"' in answer.read()
        assert booted.environment.packages["flask"] == "3.1.2"
        assert booted.environment.packages["gunicorn"]
        assert booted.target.url.endswith("/cart?id=7")
    assert files(app.python) == before


def test_what_is_asked_has_to_be_answered_rightly() -> None:
    order = Request(
        "order",
        "/orders",
        "POST",
        headers=(("Content-Type", "application/json"),),
        body=Content('{"id": "{{uuid}}"}'),
        expect_status=201,
        expect_contains="ordered",
    )
    asked = flask(Request("cart", "/cart?id={{random 1..9}}"), order)
    app = look(asked)
    with standing(app, Contestant("waitress"), lab_for(asked)) as booted:
        assert booted.target.mix == app.requests
    wrong = flask(Request("nope", "/nope"))
    with (
        pytest.raises(
            AppAnswersWrongError, match=r"it answers GET /nope with status 404, not 2xx: «<!doctype"
        ),
        standing(look(wrong), Contestant("waitress"), lab_for(wrong)),
    ):
        pass
