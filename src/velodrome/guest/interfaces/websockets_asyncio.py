"""websockets on asyncio: a coroutine for each connection, which iterates over its messages."""

from __future__ import annotations

from asyncio import gather
from typing import Any

from velodrome.guest.interface import Interface, lazily
from velodrome.guest.recipe import Recipe, served_here
from velodrome.guest.weave.compiled import compiled
from velodrome.guest.weave.idioms import Awaiting
from velodrome.guest.weave.steps import Lines, Weave, indented

WEBSOCKETS = "websockets==17.4"

interface = Interface(
    "websockets_asyncio",
    "a coroutine for each WebSocket, which awaits its messages",
    requires=(WEBSOCKETS,),
    chats=True,
    awaits=True,
)


def refuse(status: int) -> Lines:
    """Return the lines that end a WebSocket whose message cannot be answered (RFC 6455, 7.4.1: 1011)."""
    return ["await connection.close(1011)", "return"]


def build(recipe: Recipe, upstream: str) -> Any:
    """Return the handler coroutine of a recipe that ends in a chat."""
    weave = Weave(recipe, upstream, Awaiting(), refuse)
    weave.names.update(gather=gather, members=set())
    if weave.to_room:
        give = "await gather(*[member.send(message) for member in members], return_exceptions=True)"
    else:
        give = "await connection.send(message)"
    lines = [
        "async def converse(connection):",
        "    members.add(connection)",
        "    try:",
        "        async for message in connection:",
        *indented(indented(indented([*weave.lines, give]))),
        "    finally:",
        "        members.discard(connection)",
    ]
    return compiled("converse", lines, weave.names, "websockets " + recipe.name)


def make_app() -> Any:
    """Return the handler of the recipe this process serves."""
    return build(*served_here())


__getattr__ = lazily(make_app, globals())
