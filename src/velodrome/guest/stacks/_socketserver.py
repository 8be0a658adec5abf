"""What the three servers over the standard library's `socketserver` share."""

from __future__ import annotations

import argparse
import socket
import socketserver
from typing import Any, Callable, Type

from velodrome.guest.raw.process import family


def endpoint(
    converse: Callable[[socket.socket, bool], None], keep: bool
) -> Type[socketserver.BaseRequestHandler]:
    """Return a handler class whose connections are given to `converse`."""

    class Endpoint(socketserver.BaseRequestHandler):
        """One connection."""

        def handle(self) -> None:
            """Answer its requests."""
            converse(self.request, keep)

    return Endpoint


def server(
    base: Type[socketserver.TCPServer],
    options: argparse.Namespace,
    handler: Type[socketserver.BaseRequestHandler],
) -> Any:
    """Return a bound, listening server of class `base`. Raises OSError if the port is taken."""

    class Server(base):  # type: ignore[valid-type, misc]
        """With a queue as long as the burst (it is 5 otherwise, and the rest of a burst is reset)."""

        request_queue_size = options.backlog
        address_family = family(options.host)
        allow_reuse_address = True

        def server_bind(self) -> None:
            """Bind; connections inherit TCP_NODELAY: else a chunk waits for the ACK of the chunk before (40 ms)."""
            self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            super().server_bind()

    return Server((options.host, options.port), handler)
