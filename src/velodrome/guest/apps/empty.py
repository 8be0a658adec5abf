"""Apps that do nothing, to be served in place of a user's: what a request costs without the app.

    python -m gunicorn velodrome.guest.apps.empty:wsgi          # the server alone, through that interface
    python -m gunicorn velodrome.guest.apps.empty:flask         # with an empty route of a framework

Each is the recipe of a fixed answer, as the interface of that name builds it; the framework is whatever version is
installed beside the user's app.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, Callable, Dict

from velodrome.guest.interface import lazily
from velodrome.guest.recipe import Body, Recipe

NOTHING = Recipe("nothing", "answers at once", (Body(64),))
MODULE = "velodrome.guest.apps.empty"

BARE = ("wsgi", "asgi", "asgi_trio", "rsgi", "aiohttp", "tornado")
"""Interfaces of servers through which nothing can be served."""
FRAMEWORKS: Dict[str, Dict[str, str]] = {
    "django": {"wsgi": "django_wsgi", "asgi": "django_asgi"},
    "fastapi": {"asgi": "fastapi"},
    "flask": {"wsgi": "flask"},
    "starlette": {"asgi": "starlette"},
}
"""Framework to its interface here, by the interface of the server that calls it."""


def _maker(name: str) -> Callable[[], Any]:
    return lambda: import_module("velodrome.guest.interfaces." + name).build(NOTHING, "")


NAMES = (*BARE, *(name for framework in FRAMEWORKS.values() for name in framework.values()))
globals().update({"make_" + name: _maker(name) for name in NAMES})
__getattr__ = lazily(globals())
