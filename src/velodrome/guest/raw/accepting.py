"""Listening sockets of the servers that accept by themselves."""

from __future__ import annotations

import argparse
import socket
from typing import Iterator

from velodrome.guest.workers import listen


def open_listener(told: argparse.Namespace) -> socket.socket:
    """Return a listening socket that does not block.

    What it accepts inherits TCP_NODELAY: else a chunk waits for the last one's ACK (40 ms).
    """
    listener = listen(told.host, told.port, told.backlog)
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener


def open_blocking_listener(told: argparse.Namespace) -> socket.socket:
    """Return one whose `accept` waits for the next connection."""
    listener = open_listener(told)
    listener.setblocking(True)
    return listener


def accepted_now(listener: socket.socket) -> Iterator[socket.socket]:
    """Yield all connections that wait to be accepted, set not to block."""
    while True:
        try:
            connected = listener.accept()[0]
        except (BlockingIOError, ConnectionAbortedError):
            return
        connected.setblocking(False)
        yield connected
