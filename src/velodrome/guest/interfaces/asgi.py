"""ASGI 3: a coroutine function called once per request; it awaits, so one thread serves many requests."""

from __future__ import annotations

from asyncio import gather
from typing import Any, Awaitable, Callable

from velodrome.guest.interface import AIOHTTP, Interface, lazily
from velodrome.guest.recipe import Recipe, filler, served_here
from velodrome.guest.weave.compiled import compiled
from velodrome.guest.weave.idioms import Awaiting
from velodrome.guest.weave.steps import CONTENT_TYPE, UPGRADE_REQUIRED, Lines, Weave, indented

interface = Interface(
    "asgi",
    "a coroutine function called once per request, which awaits",
    requires=(AIOHTTP,),
    chats=True,
    awaits=True,
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


def build(recipe: Recipe, upstream: str) -> Any:
    """Return the ASGI application of a recipe."""
    weave = Weave(recipe, upstream, Awaiting(), refuse, READ_BODY)
    weave.names["lifespan"] = lifespan
    if weave.chats:
        return _chat(weave)
    headers = [(b"content-type", CONTENT_TYPE.encode())]
    if weave.streams:
        emit = ["await send({'type': 'http.response.body', 'body': CHUNK, 'more_body': True})"]
        end = [
            start(200, repr(headers)),
            *weave.over_time(emit),
            "await send({'type': 'http.response.body', 'body': b''})",
        ]
    else:
        headers.append((b"content-length", str(weave.size).encode()))
        weave.names["BODY"] = filler(weave.size)
        end = [start(200, repr(headers)), "await send({'type': 'http.response.body', 'body': BODY})"]
    route = ["if scope['type'] != 'http':", "    return await lifespan(receive, send)"]
    lines = ["async def app(scope, receive, send):", *indented([*route, *weave.lines, *end])]
    return compiled("app", lines, weave.names, "asgi " + recipe.name)


def _chat(weave: Weave) -> Any:
    """Return an application that holds WebSockets; whoever asks by plain HTTP is told to upgrade."""
    weave.names.update(gather=gather, members=set())
    if weave.to_room:
        give = ["await gather(*[member(answer) for member in members], return_exceptions=True)"]
    else:
        give = ["await send(answer)"]
    each = [
        "while True:",
        "    message = await receive()",
        "    if message['type'] == 'websocket.disconnect':",
        "        return",
        "    text = message.get('text')",
        *indented(weave.lines),
        "    if text is None:",
        "        answer = {'type': 'websocket.send', 'bytes': message['bytes']}",
        "    else:",
        "        answer = {'type': 'websocket.send', 'text': text}",
        *indented(give),
    ]
    lines = [
        "async def app(scope, receive, send):",
        "    if scope['type'] == 'lifespan':",
        "        return await lifespan(receive, send)",
        "    if scope['type'] == 'http':",
        *indented(indented(refuse(UPGRADE_REQUIRED))),
        "    await receive()",
        "    await send({'type': 'websocket.accept'})",
        "    members.add(send)",
        "    try:",
        *indented(indented(each)),
        "    finally:",
        "        members.discard(send)",
    ]
    return compiled("app", lines, weave.names, "asgi " + weave.recipe.name)


def make_app() -> Any:
    """Return the application of the recipe this process serves."""
    return build(*served_here())


__getattr__ = lazily(make_app, globals())
