"""Blocking sockets and no more: one connection, read and answered till it ends, then the next."""

from __future__ import annotations

import socket
from typing import Callable

from velodrome.guest.raw.process import arguments, command, end_on_sigterm, open_blocking_listener
from velodrome.guest.stack import Launch, Process, Stack, exactly_one
from velodrome.guest.workers import load


def _command(launch: Launch) -> Process:
    return command("velodrome.guest.stacks.io_blocking", launch)


stack = Stack(
    name="io-blocking",
    title="I/O model · blocking",
    about="one thread serves one connection till its client ends it (keep-alive); all others wait that long, "
    "also while it is idle: a single idle connection stalls the server for ever",
    interface="socket_blocking",
    concurrency="sync",
    command=_command,
    knobs={"backlog": 1000},
    slots=exactly_one,
    python=(3, 10),  # the oldest that the interface's client runs on
)


def serve(listener: socket.socket, converse: Callable[[socket.socket, bool], None]) -> None:
    """Serve for ever."""
    while True:
        connection = listener.accept()[0]
        with connection:
            converse(connection, True)


def main() -> None:
    """Serve till SIGTERM."""
    options = arguments("backlog")
    end_on_sigterm()
    serve(open_blocking_listener(options), load(options.app))


if __name__ == "__main__":
    main()
