"""Sanic: a handler coroutine, called by Sanic's own server."""

from __future__ import annotations

from typing import Any

from velodrome.guest.codegen.idioms import Awaiting
from velodrome.guest.codegen.steps import CONTENT_TYPE, HandlerCode, Lines, compile_lines, indent
from velodrome.guest.interface import AIOHTTP, Interface, lazily
from velodrome.guest.recipe import Recipe, filler, served_here

SANIC = "sanic==25.12.1"

interface = Interface(
    "sanic", "a Sanic handler, which awaits", requires=(SANIC, AIOHTTP), awaits=True, apps=True
)

LONGEST_UPLOAD = 1 << 30


def refuse(status: int) -> Lines:
    """Return the line that answers `status` with an empty body."""
    return ["return raw(b'', status=%d)" % status]


def build(recipe: Recipe, upstream: str) -> Any:
    """Return the Sanic application of a recipe. Needs Sanic installed."""
    from sanic import Sanic
    from sanic.response import raw

    code = HandlerCode(recipe, upstream, Awaiting(), refuse, ("body = request.body",))
    code.names.update(raw=raw)
    if code.streams:
        end = ["response = await request.respond(content_type=%r)" % CONTENT_TYPE]
        end += [*code.over_time(["await response.send(CHUNK)"]), "await response.eof()"]
    else:
        end = ["return raw(BODY, content_type=%r)" % CONTENT_TYPE]
        code.names["BODY"] = filler(code.size)
    lines = ["async def endpoint(request):", *indent([*code.lines, *end])]
    app = Sanic("velodrome", configure_logging=False)
    app.config.update(REQUEST_MAX_SIZE=LONGEST_UPLOAD, ACCESS_LOG=False)
    endpoint = compile_lines("endpoint", lines, code.names, "sanic " + recipe.name)
    app.add_route(endpoint, "/", methods=[recipe.method])
    return app


def make_app() -> Any:
    """Return the application of the recipe this process serves."""
    return build(*served_here())


__getattr__ = lazily(globals())
