"""Servers of a few lines, whose bytes a test writes itself."""

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Handler = Callable[[socket.socket, bytes], None]


@contextmanager
def listening(handler: Handler) -> Iterator[str]:
    """Serve each connection with `handler(connection, request head)`, one after the other."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                with connection:
                    try:
                        handler(connection, connection.recv(65536))
                        hang_up(connection)
                    except OSError:
                        continue

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}/"
        server.shutdown(socket.SHUT_RDWR)
    thread.join(5)


def hang_up(connection: socket.socket) -> None:
    """Say that no more comes, and hear the other side out.

    Closing with bytes unread resets the connection, and what was sent before may be lost with it.
    """
    connection.shutdown(socket.SHUT_WR)
    connection.settimeout(1)
    while connection.recv(65536):
        pass


def says(*pieces: bytes, pause_s: float = 0.0) -> Handler:
    def handler(connection: socket.socket, head: bytes) -> None:
        for piece in pieces:
            connection.sendall(piece)
            time.sleep(pause_s)

    return handler
