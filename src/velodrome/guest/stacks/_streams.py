"""What the servers over asyncio streams share: serving on a socket till SIGTERM."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from typing import Any, Optional


async def serve(converse: Any, listener: socket.socket, backlog: int, life: Optional[int] = None) -> None:
    """Serve a listening socket till SIGTERM, or till the pipe end `life` is closed: then the parent is gone.

    Connections that are open then are cancelled with the loop; nobody waits for idle connections.
    """
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, ended.set)
    if life is not None:
        loop.add_reader(life, ended.set)
    server = await asyncio.start_server(converse, sock=listener, backlog=backlog)
    await ended.wait()
    if life is not None:
        loop.remove_reader(life)
    server.close()


def life_line() -> int:
    """Return the reading end of a pipe whose other end this process keeps for its whole life.

    Children watch the reading end. They must close their copy of the other end (`let_go`), or it never ends.
    """
    reading, writing = os.pipe()
    _kept.append(writing)
    return reading


def let_go() -> None:
    """In a child: close the copies of the parent's ends."""
    while _kept:
        os.close(_kept.pop())


_kept: "list[int]" = []
