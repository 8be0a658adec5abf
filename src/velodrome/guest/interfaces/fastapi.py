"""FastAPI: a path operation over Starlette over ASGI."""

from __future__ import annotations

from typing import Any

from velodrome.guest.codegen.idioms import Awaiting
from velodrome.guest.interface import AIOHTTP, Interface, lazily
from velodrome.guest.interfaces.starlette import endpoint
from velodrome.guest.recipe import Recipe, served_here

interface = Interface(
    "fastapi",
    "a FastAPI path operation, called through ASGI, which awaits",
    requires=("fastapi==0.165.0", AIOHTTP),
    awaits=True,
)


def build(recipe: Recipe, upstream: str) -> Any:
    """Return the FastAPI application of a recipe, an ASGI application. Needs FastAPI installed.

    The endpoint returns a response rather than data: the answer is fixed bytes, so there is nothing for
    a response model to validate.
    """
    from fastapi import FastAPI

    handler = endpoint(recipe, upstream, Awaiting(), "request: Request", "fastapi " + recipe.name)
    app = FastAPI(openapi_url=None)
    app.add_api_route("/", handler, methods=[recipe.method])
    return app


def make_app() -> Any:
    """Return the application of the recipe this process serves."""
    return build(*served_here())


__getattr__ = lazily(globals())
