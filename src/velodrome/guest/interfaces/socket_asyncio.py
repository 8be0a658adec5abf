"""asyncio streams: a coroutine function called once per connection with a reader and a writer."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any, Awaitable, Callable

from velodrome.guest.codegen.idioms import Awaiting
from velodrome.guest.codegen.wire import (
    BLANK_LINE,
    CONTINUE,
    LINGER_S,
    LONGEST_HEAD,
    head_bytes,
    parse_head,
    refusal,
    responder,
)
from velodrome.guest.interface import AIOHTTP, Interface, lazily
from velodrome.guest.recipe import Recipe, served_here

interface = Interface(
    "socket_asyncio",
    "a coroutine function over the reader and writer of a connection, which awaits",
    requires=(AIOHTTP,),
    awaits=True,
    head_bytes=head_bytes,
)

Converse = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


async def turn_away(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, status: int) -> None:
    """Refuse a request that was not read whole, and wait a little for the client to take the answer.

    A close with data unread resets the connection, and the answer that is on its way is lost.
    """

    async def read_on() -> None:
        while await reader.read(LONGEST_HEAD):
            pass

    writer.write(refusal(status, True))
    writer.write_eof()
    with suppress(asyncio.TimeoutError):
        await asyncio.wait_for(read_on(), LINGER_S)


def build(recipe: Recipe, upstream: str) -> Converse:
    """Return `converse(reader, writer)`: answer requests till either side closes.

    Made for `asyncio.start_server`. A request is read whole before it is answered, so no close resets.
    """
    respond = responder(recipe, upstream, Awaiting(), "socket_asyncio")
    method = recipe.method.encode() + b" "

    async def answer_all(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            try:
                head = await reader.readuntil(BLANK_LINE)
            except asyncio.LimitOverrunError:
                return await turn_away(reader, writer, 431)
            length, closing, waits, refused = parse_head(head, method)
            if refused:
                return await turn_away(reader, writer, refused)
            if waits:
                writer.write(CONTINUE)
            body = await reader.readexactly(length) if length else b""
            await respond(writer, body, closing)
            if closing:
                return None

    async def converse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await answer_all(reader, writer)
        except (asyncio.IncompleteReadError, OSError):
            pass  # the other side is gone: nobody is left to answer
        except asyncio.CancelledError:
            # The server ends, nothing else cancels. Python before 3.12 logs a cancelled handler as a fault.
            pass
        finally:
            writer.close()

    return converse


def make_app() -> Any:
    """Return `converse` for the recipe this process serves."""
    return build(*served_here())


__getattr__ = lazily(globals())
