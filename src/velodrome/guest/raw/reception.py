"""The listening socket of a server that is told of events, and the connections it has taken in.

    reception = Reception(told, load(told.app))
    connection = reception.accept()          None: nobody waits
    reception.dismiss(connection)            closes it

Every stack brings its own way to learn which of these are ready; all else about them is here.
"""

from __future__ import annotations

import argparse
import socket
import time
from typing import Any, Callable, Dict, List, Optional

from velodrome.guest.raw.accepting import open_listener
from velodrome.guest.raw.connection import Connection
from velodrome.guest.raw.dialogue import Handler
from velodrome.guest.raw.process import end_on_sigterm
from velodrome.guest.weave.wire import LINGER_S
from velodrome.guest.workers import load


def open_reception(told: argparse.Namespace) -> Reception:
    """Listen as told, with the handler that is named; from now on SIGTERM ends the process."""
    end_on_sigterm()
    return Reception(open_listener(told), load(told.app))


class Reception:
    """All that is connected, by descriptor."""

    def __init__(
        self,
        listener: socket.socket,
        handler: Handler,
        connected: Callable[[socket.socket, Handler], Any] = Connection,
    ) -> None:
        """`listener` does not block."""
        self.listener = listener
        self.fd = listener.fileno()
        self.handler = handler
        self.connections: Dict[int, Any] = {}
        self._connected = connected
        self._lingering: Dict[int, float] = {}
        """Until when a refused client may go on sending, by descriptor."""

    def accept(self) -> Any:
        """Take one connection in and return it; None if nobody waits."""
        try:
            accepted = self.listener.accept()[0]
        except (BlockingIOError, ConnectionAbortedError):
            return None
        accepted.setblocking(False)
        return self.admit(accepted)

    def admit(self, accepted: socket.socket) -> Any:
        """Take in a socket that was accepted."""
        connection = self._connected(accepted, self.handler)
        self.connections[connection.fd] = connection
        return connection

    def dismiss(self, connection: Any) -> None:
        """Close a connection and forget it."""
        del self.connections[connection.fd]
        self._lingering.pop(connection.fd, None)
        connection.socket.close()

    def linger(self, connection: Any) -> None:
        """Bear with a refused client for a while, from the first time this is called for it."""
        self._lingering.setdefault(connection.fd, time.monotonic() + LINGER_S)

    @property
    def patience(self) -> Optional[float]:
        """Seconds that a loop may wait for events; None: as long as none comes, which is how it mostly is."""
        if not self._lingering:
            return None
        return max(0.0, min(self._lingering.values()) - time.monotonic())

    def overdue(self) -> List[Any]:
        """Return the connections that lingered long enough: they are to be dismissed."""
        if not self._lingering:
            return []
        now = time.monotonic()
        return [self.connections[fd] for fd, until in self._lingering.items() if until <= now]
