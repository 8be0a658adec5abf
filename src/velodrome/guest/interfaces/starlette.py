"""Starlette: an endpoint coroutine over ASGI."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import Any, AsyncIterator

from velodrome.guest.codegen.idioms import Awaiting
from velodrome.guest.codegen.steps import HandlerCode, Idiom, Lines, compile_lines, indent
from velodrome.guest.interface import AIOHTTP, Interface, lazily
from velodrome.guest.recipe import Recipe, filler, served_here


def refuse(status: int) -> Lines:
    """Return the line that answers `status` with an empty body."""
    return ["return Response(status_code=%d)" % status]


def endpoint(recipe: Recipe, upstream: str, idiom: Idiom, parameter: str, title: str) -> Any:
    """Return a coroutine function from request to response. Needs Starlette installed.

    `parameter` is how the function writes its parameter: FastAPI reads the annotation.
    """
    from starlette.requests import Request
    from starlette.responses import HTMLResponse, Response, StreamingResponse

    code = HandlerCode(recipe, upstream, idiom, refuse, ("body = await request.body()",))
    code.names.update(Request=Request, Response=Response)
    code.names.update(HTMLResponse=HTMLResponse, StreamingResponse=StreamingResponse)
    if code.streams:
        before, end = code.pieces(), "return StreamingResponse(pieces(), media_type='text/html')"
    else:
        before, end = [], "return HTMLResponse(BODY)"
        code.names["BODY"] = filler(code.size)
    lines = [*before, "async def endpoint(%s):" % parameter, *indent([*code.lines, end])]
    return compile_lines("endpoint", lines, code.names, title)


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


__getattr__ = lazily(globals())
