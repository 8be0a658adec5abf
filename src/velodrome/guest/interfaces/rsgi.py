"""RSGI (granian's own): a coroutine function called with the request and what to answer through."""

from __future__ import annotations

from typing import Any

from velodrome.guest.codegen.idioms import Awaiting
from velodrome.guest.codegen.steps import CONTENT_TYPE, HandlerCode, Lines, compile_lines, indent
from velodrome.guest.interface import AIOHTTP, Interface, lazily
from velodrome.guest.recipe import Recipe, filler, served_here

interface = Interface(
    "rsgi",
    "a coroutine function called once per request, which answers by calls into the server",
    requires=(AIOHTTP,),
    awaits=True,
    apps=True,
)


def refuse(status: int) -> Lines:
    """Return the lines that answer `status` with an empty body."""
    return ["protocol.response_empty(%d, [('content-length', '0')])" % status, "return"]


def build(recipe: Recipe, upstream: str) -> Any:
    """Return the RSGI application of a recipe."""
    code = HandlerCode(recipe, upstream, Awaiting(), refuse, ("body = await protocol()",))
    headers = [("content-type", CONTENT_TYPE)]
    if code.streams:
        open_stream = "transport = protocol.response_stream(200, %r)" % headers
        end = [open_stream, *code.over_time(["await transport.send_bytes(CHUNK)"])]
    else:
        headers.append(("content-length", str(code.size)))
        code.names["BODY"] = filler(code.size)
        end = ["protocol.response_bytes(200, %r, BODY)" % headers]
    lines = ["async def app(scope, protocol):", *indent([*code.lines, *end])]
    return compile_lines("app", lines, code.names, "rsgi " + recipe.name)


def make_app() -> Any:
    """Return the application of the recipe this process serves."""
    return build(*served_here())


__getattr__ = lazily(globals())
