"""RSGI (granian's own): a coroutine function called with the request and what to answer through."""

from __future__ import annotations

from typing import Any

from velodrome.guest.interface import AIOHTTP, Interface, lazily
from velodrome.guest.recipe import Recipe, filler, served_here
from velodrome.guest.weave.compiled import compiled
from velodrome.guest.weave.idioms import Awaiting
from velodrome.guest.weave.steps import CONTENT_TYPE, Lines, Weave, indented

interface = Interface(
    "rsgi",
    "a coroutine function called once per request, which answers by calls into the server",
    requires=(AIOHTTP,),
    awaits=True,
)


def refuse(status: int) -> Lines:
    """Return the lines that answer `status` with an empty body."""
    return ["protocol.response_empty(%d, [('content-length', '0')])" % status, "return"]


def build(recipe: Recipe, upstream: str) -> Any:
    """Return the RSGI application of a recipe."""
    weave = Weave(recipe, upstream, Awaiting(), refuse, ("body = await protocol()",))
    headers = [("content-type", CONTENT_TYPE)]
    if weave.streams:
        open_stream = "transport = protocol.response_stream(200, %r)" % headers
        end = [open_stream, *weave.over_time(["await transport.send_bytes(CHUNK)"])]
    else:
        headers.append(("content-length", str(weave.size)))
        weave.names["BODY"] = filler(weave.size)
        end = ["protocol.response_bytes(200, %r, BODY)" % headers]
    lines = ["async def app(scope, protocol):", *indented([*weave.lines, *end])]
    return compiled("app", lines, weave.names, "rsgi " + recipe.name)


def make_app() -> Any:
    """Return the application of the recipe this process serves."""
    return build(*served_here())


__getattr__ = lazily(make_app, globals())
