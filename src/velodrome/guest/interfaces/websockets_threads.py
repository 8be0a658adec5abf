"""websockets on threads: a function for each connection, which blocks on its messages."""

from __future__ import annotations

from threading import Lock
from typing import Any

from velodrome.guest.codegen.idioms import Blocking
from velodrome.guest.codegen.steps import HandlerCode, Lines, compile_lines, indent
from velodrome.guest.interface import Interface, lazily
from velodrome.guest.interfaces.websockets_asyncio import WEBSOCKETS
from velodrome.guest.recipe import Recipe, served_here

interface = Interface(
    "websockets_threads",
    "a function for each WebSocket, which blocks until a message comes",
    requires=(WEBSOCKETS,),
    chats=True,
)


def refuse(status: int) -> Lines:
    """Return the lines that end a WebSocket whose message cannot be answered (RFC 6455, 7.4.1: 1011)."""
    return ["connection.close(1011)", "return"]


def build(recipe: Recipe, upstream: str) -> Any:
    """Return the handler of a recipe that ends in a chat. Needs websockets installed."""
    from websockets.exceptions import ConnectionClosed

    code = HandlerCode(recipe, upstream, Blocking(), refuse)
    code.names.update(lock=Lock(), members=set(), ConnectionClosed=ConnectionClosed)
    if code.to_room:
        give = [
            "with lock:",
            "    present = tuple(members)",
            "for member in present:",
            "    try:",
            "        member.send(message)",
            "    except ConnectionClosed:",
            "        pass",
        ]
    else:
        give = ["connection.send(message)"]
    lines = [
        "def converse(connection):",
        "    with lock:",
        "        members.add(connection)",
        "    try:",
        "        for message in connection:",
        *indent(indent(indent([*code.lines, *give]))),
        "    finally:",
        "        with lock:",
        "            members.discard(connection)",
    ]
    return compile_lines("converse", lines, code.names, "websockets " + recipe.name)


def make_app() -> Any:
    """Return the handler of the recipe this process serves."""
    return build(*served_here())


__getattr__ = lazily(globals())
