"""ASGI 3: a coroutine function called once per request; it awaits, so one thread serves many requests."""

from __future__ import annotations

from asyncio import gather
from typing import Any, Awaitable, Callable, Optional

from velodrome.guest.codegen.idioms import Awaiting
from velodrome.guest.codegen.steps import (
    CONTENT_TYPE,
    UPGRADE_REQUIRED,
    HandlerCode,
    Idiom,
    Lines,
    compile_lines,
    indent,
)
from velodrome.guest.interface import AIOHTTP, Interface, lazily
from velodrome.guest.recipe import Recipe, filler, served_here

interface = Interface(
    "asgi",
    "a coroutine function called once per request, which awaits",
    requires=(AIOHTTP,),
    chats=True,
    awaits=True,
    apps=True,
)

READ_BODY = (
    "pieces, more = [], True",
    "while more:",
    "    message = await receive()",
    '    if message["type"] == "http.disconnect":',
    "        return",
    '    pieces.append(message.get("body", b""))',
    '    more = message.get("more_body", False)',
    'body = b"".join(pieces)',
)


async def lifespan(receive: Callable[[], Awaitable[Any]], send: Callable[[Any], Awaitable[None]]) -> None:
    """Say yes to the server's start and stop; there is nothing to prepare."""
    while True:
        kind = (await receive())["type"]
        await send({"type": kind + ".complete"})
        if kind == "lifespan.shutdown":
            return


def start(status: int, headers: str) -> str:
    """Return the line that sends the head of an answer; `headers` is an expression."""
    return "await send({'type': 'http.response.start', 'status': %d, 'headers': %s})" % (status, headers)


def refuse(status: int) -> Lines:
    """Return the lines that answer `status` with an empty body."""
    return [
        start(status, "[(b'content-length', b'0')]"),
        "await send({'type': 'http.response.body', 'body': b''})",
        "return",
    ]


def build(recipe: Recipe, upstream: str, idiom: Optional[Idiom] = None) -> Any:
    """Return the ASGI application of a recipe; `idiom` is how it awaits, on asyncio unless another one is chosen."""
    code = HandlerCode(recipe, upstream, idiom or Awaiting(), refuse, READ_BODY)
    code.names["lifespan"] = lifespan
    if code.chats:
        return _chat(code)
    headers = [(b"content-type", CONTENT_TYPE.encode())]
    if code.streams:
        emit = ["await send({'type': 'http.response.body', 'body': CHUNK, 'more_body': True})"]
        end = [
            start(200, repr(headers)),
            *code.over_time(emit),
            "await send({'type': 'http.response.body', 'body': b''})",
        ]
    else:
        headers.append((b"content-length", str(code.size).encode()))
        code.names["BODY"] = filler(code.size)
        end = [start(200, repr(headers)), "await send({'type': 'http.response.body', 'body': BODY})"]
    route = ["if scope['type'] != 'http':", "    return await lifespan(receive, send)"]
    lines = ["async def app(scope, receive, send):", *indent([*route, *code.lines, *end])]
    return compile_lines("app", lines, code.names, "asgi " + recipe.name)


def _chat(code: HandlerCode) -> Any:
    """Return an application that holds WebSockets; the answer to plain HTTP is that it shall upgrade."""
    code.names.update(gather=gather, members=set())
    if code.to_room:
        give = ["await gather(*[member(answer) for member in members], return_exceptions=True)"]
    else:
        give = ["await send(answer)"]
    turn = [
        "while True:",
        "    message = await receive()",
        "    if message['type'] == 'websocket.disconnect':",
        "        return",
        "    text = message.get('text')",
        *indent(code.lines),
        "    if text is None:",
        "        answer = {'type': 'websocket.send', 'bytes': message['bytes']}",
        "    else:",
        "        answer = {'type': 'websocket.send', 'text': text}",
        *indent(give),
    ]
    lines = [
        "async def app(scope, receive, send):",
        "    if scope['type'] == 'lifespan':",
        "        return await lifespan(receive, send)",
        "    if scope['type'] == 'http':",
        *indent(indent(refuse(UPGRADE_REQUIRED))),
        "    await receive()",
        "    await send({'type': 'websocket.accept'})",
        "    members.add(send)",
        "    try:",
        *indent(indent(turn)),
        "    finally:",
        "        members.discard(send)",
    ]
    return compile_lines("app", lines, code.names, "asgi " + code.recipe.name)


def make_app() -> Any:
    """Return the application of the recipe this process serves."""
    return build(*served_here())


__getattr__ = lazily(globals())
