"""As published: `asyncio.start_server`, one read of 1024 bytes, write, drain, close, wait_closed."""

from __future__ import annotations

import asyncio
from typing import Any, Callable

from velodrome.guest.interfaces.published import CANNOT, READ_AT_MOST
from velodrome.guest.raw.process import arguments, command, end_on_sigterm
from velodrome.guest.stack import Launch, Process, Stack
from velodrome.guest.workers import load


def _command(launch: Launch) -> Process:
    return command("velodrome.guest.stacks.published_asyncio", launch)


stack = Stack(
    name="published-asyncio",
    title="as published · asyncio",
    about="one thread, a task for each connection: it reads at most 1024 bytes, answers without "
    "Content-Length and closes; the listen queue is asyncio's own 100",
    interface="published",
    concurrency="tasks",
    command=_command,
    knobs={"backlog": 100},
    keeps_alive=False,
    cannot=CANNOT,
    python=(3, 7),
)


def handler(answer: Callable[[bytes], bytes]) -> Callable[[asyncio.StreamReader, asyncio.StreamWriter], Any]:
    """Return the coroutine function that is called for each connection: one read, one answer, and it is closed."""

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        request = await reader.read(READ_AT_MOST)
        writer.write(answer(request))
        await writer.drain()
        writer.close()
        await writer.wait_closed()

    return handle


async def serve(answer: Any, host: str, port: int, backlog: int) -> None:
    """Serve for ever."""
    server = await asyncio.start_server(handler(answer), host, port, backlog=backlog)
    async with server:
        await server.serve_forever()


def main() -> None:
    """Serve till SIGTERM."""
    options = arguments("backlog")
    end_on_sigterm()
    asyncio.run(serve(load(options.app), options.host, options.port, options.backlog))


if __name__ == "__main__":
    main()
