"""What a thing is to servers: of frameworks that bring their own server, known by their classes."""

import sys
import types
from typing import Any

import pytest

from velodrome.guest.apps.finding import kind_of
from velodrome.guest.apps.looking import look


def of_class(module: str, name: str) -> Any:
    """Return an instance of a class that is called so, and is called as an ASGI application is."""

    async def call(self: Any, scope: Any, receive: Any, send: Any) -> None:
        raise NotImplementedError

    return type(name, (), {"__module__": module, "__call__": call})()


@pytest.mark.parametrize(
    ("module", "name", "interface"),
    [
        ("aiohttp.web_app", "Application", "aiohttp"),
        ("tornado.web", "Application", "tornado"),
        ("robyn", "Robyn", "robyn"),
        ("sanic.app", "Sanic", "asgi"),
        ("their.own", "Application", "asgi"),
    ],
)
def test_an_application_is_known_by_its_class(module: str, name: str, interface: str) -> None:
    assert kind_of(of_class(module, name)).interface == interface


def test_what_can_be_called_in_two_ways_is_served_in_both(monkeypatch: pytest.MonkeyPatch) -> None:
    shop = types.ModuleType("shop_of_two_ways")
    shop.__dict__["app"] = of_class("sanic.app", "Sanic")
    monkeypatch.setitem(sys.modules, "shop_of_two_ways", shop)
    path = "shop_of_two_ways:app"
    assert look(path, "")["served"] == {"asgi": path, "sanic": path}
    assert look(path, "asgi")["served"] == {}
