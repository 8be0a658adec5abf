"""The websockets library on asyncio: a task for each connection.

python -m velodrome.guest.stacks.websockets_asyncio --app MODULE:ATTRIBUTE --port PORT
"""

from __future__ import annotations

import asyncio
import signal
import socket
from typing import Any

from velodrome.guest.stack import Launch, Process, Stack
from velodrome.guest.workers import arguments, listen, load, run

PROGRAM = "velodrome.guest.stacks.websockets_asyncio"
ONLY_CHATS = dict.fromkeys(("body", "stream"), "it holds WebSockets and serves nothing else")


def command(launch: Launch) -> Process:
    """Return the command line: this file is the program."""
    return serve_with(PROGRAM, launch)


def serve_with(program: str, launch: Launch) -> Process:
    """Return the command line of one of the programs over websockets."""
    return Process(
        (
            "-m",
            program,
            "--app=%s" % launch.app,
            "--host=%s" % launch.host,
            "--port=%d" % launch.port,
            "--backlog=%s" % launch.text("backlog"),
        )
    )


stack = Stack(
    name="websockets-asyncio",
    title="websockets · asyncio",
    about="A task for each WebSocket on the standard event loop; the frames are read in Python, masked in C.",
    interface="websockets_asyncio",
    concurrency="tasks",
    command=command,
    knobs={"backlog": 2048},
    cannot=ONLY_CHATS,
    python=(3, 10),
)


async def serve(handler: Any, listener: socket.socket) -> None:
    """Serve until SIGTERM or SIGINT."""
    from websockets.asyncio.server import serve as start

    stopped = asyncio.Event()
    for signum in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(signum, stopped.set)
    # Idle members get no pings and are kept; compression is off here as in the other stacks.
    async with start(handler, sock=listener, compression=None, ping_interval=None, close_timeout=1):
        await stopped.wait()


def main() -> None:
    """Run the program."""
    options = arguments(PROGRAM).parse_args()
    listener = listen(options.host, options.port, options.backlog)
    run(serve(load(options.app), listener), "asyncio")


if __name__ == "__main__":
    main()
