"""The standard library's `socketserver.TCPServer`: one thread, one connection at a time."""

from __future__ import annotations

import socketserver

from velodrome.guest.raw.process import arguments, command, end_on_sigterm
from velodrome.guest.stack import Launch, Process, Stack, exactly_one
from velodrome.guest.stacks._socketserver import endpoint, server
from velodrome.guest.workers import load


def _command(launch: Launch) -> Process:
    return command("velodrome.guest.stacks.socketserver_single", launch)


stack = Stack(
    name="socketserver-single",
    title="socketserver · one thread",
    about="one thread answers one request, closes the connection and takes the next; while it waits, all "
    "wait (a connection kept open but idle would stall it for ever, so it keeps none)",
    interface="socket_blocking",
    concurrency="sync",
    command=_command,
    knobs={"backlog": 1000},
    keeps_alive=False,
    slots=exactly_one,
    python=(3, 10),  # the oldest that the interface's client runs on
)


def main() -> None:
    """Serve till SIGTERM."""
    options = arguments("backlog")
    end_on_sigterm()
    server(socketserver.TCPServer, options, endpoint(load(options.app), keep=False)).serve_forever()


if __name__ == "__main__":
    main()
