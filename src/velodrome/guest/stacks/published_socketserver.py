"""As published: `socketserver.TCPServer`, one thread; 1024 bytes are read, the answer sent, the connection closed."""

from __future__ import annotations

import socketserver
from typing import Callable, Type

from velodrome.guest.interfaces.published import CANNOT, READ_AT_MOST
from velodrome.guest.raw.process import arguments, command, end_on_sigterm, family
from velodrome.guest.stack import Launch, Process, Stack, exactly_one
from velodrome.guest.workers import load


def _command(launch: Launch) -> Process:
    return command("velodrome.guest.stacks.published_socketserver", launch)


stack = Stack(
    name="published-socketserver",
    title="as published · socketserver",
    about="one thread reads at most 1024 bytes, answers without Content-Length, closes, and takes the next; "
    "`backlog` is 5 unless it is set, which a burst overflows",
    interface="published",
    concurrency="sync",
    command=_command,
    knobs={"backlog": 1000},
    keeps_alive=False,
    slots=exactly_one,
    cannot=CANNOT,
    python=(3, 7),
)


def endpoint(answer: Callable[[bytes], bytes]) -> Type[socketserver.BaseRequestHandler]:
    """Return the class of handlers."""

    class Endpoint(socketserver.BaseRequestHandler):
        """One connection."""

        def handle(self) -> None:
            """Read once, answer once; the server closes."""
            self.request.sendall(answer(self.request.recv(READ_AT_MOST)))

    return Endpoint


def main() -> None:
    """Serve till SIGTERM."""
    options = arguments("backlog")
    end_on_sigterm()

    class Server(socketserver.TCPServer):
        """With a longer queue, and an address that can be had again at once."""

        allow_reuse_address = True
        address_family = family(options.host)
        request_queue_size = options.backlog

    Server((options.host, options.port), endpoint(load(options.app))).serve_forever()


if __name__ == "__main__":
    main()
