"""The standard library's `socketserver.ThreadingTCPServer`: a thread for each connection."""

from __future__ import annotations

import socketserver

from velodrome.guest.raw.process import arguments, command, end_on_sigterm
from velodrome.guest.stack import Launch, Process, Stack
from velodrome.guest.stacks._socketserver import endpoint, server
from velodrome.guest.workers import load


def _command(launch: Launch) -> Process:
    return command("velodrome.guest.stacks.socketserver_threading", launch)


stack = Stack(
    name="socketserver-threading",
    title="socketserver · threads",
    about="a new thread for each connection, which it keeps (keep-alive); while one waits, the others run",
    interface="socket_blocking",
    concurrency="threads",
    command=_command,
    knobs={"backlog": 1000},
    python=(3, 10),  # the oldest that the interface's client runs on
)


class Threading(socketserver.ThreadingTCPServer):
    """Threads that nobody waits for: a client may keep its connection as long as it likes."""

    daemon_threads = True
    block_on_close = False


def main() -> None:
    """Serve till SIGTERM."""
    options = arguments("backlog")
    end_on_sigterm()
    server(Threading, options, endpoint(load(options.app), keep=True)).serve_forever()


if __name__ == "__main__":
    main()
