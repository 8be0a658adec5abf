"""Apps that do nothing stand in for a user's, each through the interface of its name."""

import asyncio
from typing import Any

import pytest

from velodrome.guest.apps import empty
from velodrome.guest.apps.finding import FRAMEWORKS


def test_through_wsgi_it_answers_a_constant_whatever_is_requested() -> None:
    heads: list[tuple[str, list[tuple[str, str]]]] = []
    body = b"".join(
        empty.wsgi({"PATH_INFO": "/cart"}, lambda status, headers: heads.append((status, headers)))
    )
    ((status, headers),) = heads
    assert status == "200 OK"
    assert dict(headers)["Content-Length"] == str(len(body)) == "64"


def test_through_asgi_too_and_it_says_yes_to_start_and_stop() -> None:
    sent: list[dict[str, Any]] = []
    incoming = iter([{"type": "lifespan.startup"}, {"type": "lifespan.shutdown"}])

    async def receive() -> dict[str, Any]:
        return next(incoming)

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    asyncio.run(empty.asgi({"type": "lifespan"}, receive, send))
    asyncio.run(empty.asgi({"type": "http", "path": "/"}, receive, send))
    assert [message["type"] for message in sent[:2]] == [
        "lifespan.startup.complete",
        "lifespan.shutdown.complete",
    ]
    assert sent[2]["status"] == 200
    assert len(sent[3]["body"]) == 64


def test_a_server_that_looks_into_the_module_finds_what_makes_each() -> None:
    assert all(callable(vars(empty)[f"make_{name}"]) for name in empty.NAMES)
    with pytest.raises(AttributeError):
        empty.cobol  # noqa: B018


def test_every_framework_that_is_known_by_its_class_has_an_empty_route() -> None:
    assert set(FRAMEWORKS.values()) == set(empty.FRAMEWORKS)
