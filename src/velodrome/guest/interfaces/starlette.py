"""Starlette: an endpoint coroutine over ASGI."""

from __future__ import annotations

from typing import Any

from velodrome.guest.interface import AIOHTTP, Interface, lazily
from velodrome.guest.recipe import Recipe, served_here
from velodrome.guest.weave.endpoints import endpoint

interface = Interface(
    "starlette",
    "a Starlette endpoint, called through ASGI, which awaits",
    requires=("starlette==1.10.0", AIOHTTP),
    awaits=True,
)


def build(recipe: Recipe, upstream: str) -> Any:
    """Return the Starlette application of a recipe, an ASGI application. Needs Starlette installed."""
    from starlette.applications import Starlette
    from starlette.routing import Route

    handler = endpoint(recipe, upstream, "request", "starlette " + recipe.name)
    return Starlette(routes=[Route("/", handler, methods=[recipe.method])])


def make_app() -> Any:
    """Return the application of the recipe this process serves."""
    return build(*served_here())


__getattr__ = lazily(make_app, globals())
