"""aiohttp.web: a handler coroutine, called by aiohttp's own server."""

from __future__ import annotations

from asyncio import gather
from typing import Any, List, Optional

from velodrome.guest.codegen.idioms import Awaiting
from velodrome.guest.codegen.steps import CONTENT_TYPE, HandlerCode, Lines, compile_lines, indent
from velodrome.guest.interface import AIOHTTP, Interface, lazily
from velodrome.guest.recipe import Recipe, filler, served_here

interface = Interface(
    "aiohttp", "an aiohttp.web handler, which awaits", requires=(AIOHTTP,), chats=True, awaits=True, apps=True
)

LONGEST_UPLOAD = 1 << 30
"""Bytes; aiohttp's own limit, 1 MiB, would refuse recipes that other servers take."""


def refuse(status: int) -> Lines:
    """Return the line that answers `status` with an empty body."""
    return ["return Response(status=%d)" % status]


def build(recipe: Recipe, upstream: str) -> Any:
    """Return the aiohttp.web application of a recipe. Needs aiohttp installed."""
    from aiohttp.web import Response, StreamResponse

    code = HandlerCode(recipe, upstream, Awaiting(), refuse, ("body = await request.read()",))
    code.names.update(Response=Response, StreamResponse=StreamResponse)
    if code.chats:
        return _application(recipe, _chat(code), code)
    headers = {"Content-Type": CONTENT_TYPE}
    if code.streams:
        end = ["response = StreamResponse(headers=%r)" % headers, "await response.prepare(request)"]
        end += code.over_time(["await response.write(CHUNK)"])
        end += ["await response.write_eof()", "return response"]
    else:
        end = ["return Response(body=BODY, headers=%r)" % headers]
        code.names["BODY"] = filler(code.size)
    lines = ["async def endpoint(request):", *indent([*code.lines, *end])]
    return _application(recipe, lines, code)


def _chat(code: HandlerCode) -> Lines:
    """Return the lines of a handler that holds a WebSocket."""
    from aiohttp.web import WebSocketResponse

    code.names.update(gather=gather, members=set(), WebSocketResponse=WebSocketResponse)
    if code.to_room:
        text = "await gather(*[member.send_str(data) for member in members], return_exceptions=True)"
        binary = "await gather(*[member.send_bytes(data) for member in members], return_exceptions=True)"
    else:
        text, binary = "await socket.send_str(data)", "await socket.send_bytes(data)"
    turn = [
        "data = message.data",
        *code.lines,
        "if isinstance(data, str):",
        "    " + text,
        "else:",
        "    " + binary,
    ]
    return [
        "async def endpoint(request):",
        # A message compressed by deflate costs more than it saves on this machine, and others do not offer it.
        "    socket = WebSocketResponse(compress=False)",
        "    await socket.prepare(request)",
        "    members.add(socket)",
        "    try:",
        "        async for message in socket:",
        *indent(indent(indent(turn))),
        "    finally:",
        "        members.discard(socket)",
        "    return socket",
    ]


def _application(recipe: Recipe, lines: Lines, code: HandlerCode) -> Any:
    from aiohttp.web import Application

    app = Application(client_max_size=LONGEST_UPLOAD)
    app.router.add_route(
        recipe.method, "/", compile_lines("endpoint", lines, code.names, "aiohttp " + recipe.name)
    )
    return app


def make_app(argv: Optional[List[str]] = None) -> Any:
    """Return the application of the recipe this process serves; `python -m aiohttp.web` passes arguments."""
    return build(*served_here())


__getattr__ = lazily(globals())
