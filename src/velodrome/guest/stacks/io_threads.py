"""Blocking sockets, and a thread for each connection."""

from __future__ import annotations

import socket
import threading
from typing import Callable

from velodrome.guest.raw.process import arguments, command, end_on_sigterm, open_blocking_listener
from velodrome.guest.stack import Launch, Process, Stack
from velodrome.guest.workers import load


def _command(launch: Launch) -> Process:
    return command("velodrome.guest.stacks.io_threads", launch)


stack = Stack(
    name="io-threads",
    title="I/O model · threads",
    about="a thread for each connection, which it keeps (keep-alive); while one waits, the others run; dies "
    "when the system gives no more threads",
    interface="socket_blocking",
    concurrency="threads",
    command=_command,
    knobs={"backlog": 1000},
    python=(3, 10),  # the oldest that the interface's client runs on
)

Converse = Callable[[socket.socket, bool], None]


def attend(connection: socket.socket, converse: Converse) -> None:
    """Serve one connection till it ends."""
    with connection:
        converse(connection, True)


def serve(listener: socket.socket, converse: Converse) -> None:
    """Serve for ever. Raises RuntimeError when there can be no more threads: that is its end."""
    while True:
        connection = listener.accept()[0]
        threading.Thread(target=attend, args=(connection, converse), daemon=True).start()


def main() -> None:
    """Serve till SIGTERM."""
    options = arguments("backlog")
    end_on_sigterm()
    serve(open_blocking_listener(options), load(options.app))


if __name__ == "__main__":
    main()
