"""Robyn: a handler coroutine, called by Robyn's own server in Rust."""

from __future__ import annotations

from typing import Any

from velodrome.guest.codegen.idioms import Awaiting
from velodrome.guest.codegen.steps import CONTENT_TYPE, HandlerCode, Lines, compile_lines, indent
from velodrome.guest.interface import AIOHTTP, Interface, lazily
from velodrome.guest.recipe import Recipe, filler, served_here

ROBYN = "robyn==0.88.0"

interface = Interface(
    "robyn", "a Robyn handler, which awaits", requires=(ROBYN, AIOHTTP), awaits=True, apps=True
)

READ_BODY = ("body = request.body", "if isinstance(body, str):", "    body = body.encode()")


def refuse(status: int) -> Lines:
    """Return the line that answers `status` with an empty body."""
    return ["return Response(%d, {}, b'')" % status]


def build(recipe: Recipe, upstream: str) -> Any:
    """Return the Robyn application of a recipe. Needs Robyn installed."""
    from robyn import Headers, Response, Robyn, StreamingResponse

    code = HandlerCode(recipe, upstream, Awaiting(), refuse, READ_BODY)
    code.names.update(Response=Response, StreamingResponse=StreamingResponse, Headers=Headers)
    if code.streams:
        before = code.pieces()
        end = ["return StreamingResponse(pieces(), 200, Headers(HEADERS), 'text/html')"]
    else:
        before, end = [], ["return Response(200, Headers(HEADERS), BODY)"]
        code.names["BODY"] = filler(code.size)
    code.names["HEADERS"] = {"Content-Type": CONTENT_TYPE}
    lines = [*before, "async def endpoint(request):", *indent([*code.lines, *end])]
    app = Robyn(__file__)
    app.add_route(recipe.method, "/", compile_lines("endpoint", lines, code.names, "robyn " + recipe.name))
    return app


def make_app() -> Any:
    """Return the application of the recipe this process serves."""
    return build(*served_here())


__getattr__ = lazily(globals())
