"""websockets on asyncio: a coroutine for each connection, which iterates over its messages."""

from __future__ import annotations

from asyncio import gather
from typing import Any

from velodrome.guest.codegen.idioms import Awaiting
from velodrome.guest.codegen.steps import HandlerCode, Lines, compile_lines, indent
from velodrome.guest.interface import Interface, lazily
from velodrome.guest.recipe import Recipe, served_here

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
    code = HandlerCode(recipe, upstream, Awaiting(), refuse)
    code.names.update(gather=gather, members=set())
    if code.to_room:
        give = "await gather(*[member.send(message) for member in members], return_exceptions=True)"
    else:
        give = "await connection.send(message)"
    lines = [
        "async def converse(connection):",
        "    members.add(connection)",
        "    try:",
        "        async for message in connection:",
        *indent(indent(indent([*code.lines, give]))),
        "    finally:",
        "        members.discard(connection)",
    ]
    return compile_lines("converse", lines, code.names, "websockets " + recipe.name)


def make_app() -> Any:
    """Return the handler of the recipe this process serves."""
    return build(*served_here())


__getattr__ = lazily(globals())
