"""Starlette: an endpoint coroutine over ASGI."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import Any, AsyncIterator

from velodrome.guest.interface import AIOHTTP, Interface, lazily
from velodrome.guest.recipe import Recipe, served_here
from velodrome.guest.weave.endpoints import endpoint
from velodrome.guest.weave.idioms import Awaiting

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

    idiom = Awaiting()
    handler = endpoint(recipe, upstream, idiom, "request", "starlette " + recipe.name)

    @asynccontextmanager
    async def lifespan(app: Any) -> AsyncIterator[None]:
        idiom.open()
        yield

    return Starlette(routes=[Route("/", handler, methods=[recipe.method])], lifespan=lifespan)


def make_app() -> Any:
    """Return the application of the recipe this process serves."""
    return build(*served_here())


__getattr__ = lazily(make_app, globals())
