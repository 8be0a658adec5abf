"""ASGI 3 on trio: the coroutine function of `asgi`, which awaits what trio has for it."""

from __future__ import annotations

from typing import Any

from velodrome.guest.codegen.idioms import Trio
from velodrome.guest.interface import Interface, lazily
from velodrome.guest.interfaces import asgi
from velodrome.guest.recipe import Recipe, served_here

TRIO = "trio==0.35.0"

interface = Interface(
    "asgi_trio",
    "a coroutine function called once per request, which awaits on trio",
    requires=(TRIO, "httpx==0.28.1"),
    awaits=True,
    apps=True,
)


def build(recipe: Recipe, upstream: str) -> Any:
    """Return the ASGI application of a recipe. Needs trio installed."""
    return asgi.build(recipe, upstream, Trio())


def make_app() -> Any:
    """Return the application of the recipe this process serves."""
    return build(*served_here())


__getattr__ = lazily(globals())
