"""A burst: many new connections at the same moment, each with one request, and what became of each."""

import selectors
import socket
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass

PIECE = 65_536
LATE_S = 0.9
"""An answer that took this long had something tried again: the first SYN is repeated after 1 s (RFC 6298)."""


@dataclass
class Knock:
    """One connection of a burst."""

    outcome: str = "silent"
    """`answered`, `reset`, `refused`, or `silent`: no end within the patience."""
    connected_s: float | None = None
    """Till the handshake was done, seconds from the beginning of the burst."""
    ended_s: float | None = None

    @property
    def late(self) -> bool:
        """Whether it had to try again before it was answered, or was not."""
        return self.outcome != "answered" or self.ended_s is None or self.ended_s >= LATE_S


def burst(address: tuple[str, int], count: int, request: bytes, patience_s: float) -> Sequence[Knock]:
    """Connect `count` times at once, send `request` on each, read to the end of each connection."""
    began = time.monotonic()
    knocks = [Knock() for _ in range(count)]
    with ExitStack() as opened, selectors.DefaultSelector() as selector:
        for knock in knocks:
            connecting = opened.enter_context(
                socket.socket(socket.AF_INET6 if ":" in address[0] else socket.AF_INET)
            )
            connecting.setblocking(False)
            connecting.connect_ex(address)
            selector.register(connecting, selectors.EVENT_WRITE, knock)
        while selector.get_map() and (left := began + patience_s - time.monotonic()) > 0:
            for key, _ in selector.select(left):
                connection = key.fileobj
                assert isinstance(connection, socket.socket)
                if _step(connection, key.data, request, time.monotonic() - began):
                    selector.unregister(connection)
                else:
                    selector.modify(connection, selectors.EVENT_READ, key.data)
    return knocks


def _step(connection: socket.socket, knock: Knock, request: bytes, now_s: float) -> bool:
    """Go on with a connection that is ready; return whether it has ended."""
    try:
        if knock.connected_s is None:
            if connection.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
                knock.outcome, knock.ended_s = "refused", now_s
                return True
            knock.connected_s = now_s
            connection.sendall(request)  # short: it fits into an empty send buffer
            return False
        if connection.recv(PIECE):
            knock.outcome = "answered"
            return False
    except ConnectionError:
        knock.outcome = "reset"
    knock.ended_s = now_s
    return True
