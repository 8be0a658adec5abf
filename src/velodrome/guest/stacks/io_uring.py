"""io_uring: operations are handed to the kernel in a queue, and it tells in another which of them are done."""

from __future__ import annotations

import errno
import os
import socket
from functools import partial
from typing import Any

from velodrome.guest.raw.accepting import open_listener
from velodrome.guest.raw.dialogue import GONE, LINGER, WRITE, Dialogue, Handler
from velodrome.guest.raw.process import arguments, command, end_on_sigterm
from velodrome.guest.raw.reception import Reception
from velodrome.guest.raw.uring import ACCEPT, RECEIVE, SEND, Ring
from velodrome.guest.stack import Launch, Process, Stack, exactly_one
from velodrome.guest.workers import load


def _command(launch: Launch) -> Process:
    return command("velodrome.guest.stacks.io_uring", launch)


stack = Stack(
    name="io-uring",
    title="I/O model · io_uring",
    about="one thread hands sends and receives to the kernel and is told when they are done, many with one "
    "system call; each answer and the next receive are one chain; while a request waits, all wait",
    interface="socket_events",
    concurrency="events",
    command=_command,
    requires=("liburing==2026.3.30",),
    knobs={"backlog": 1000},
    slots=exactly_one,
    python=(3, 10),  # the oldest that the interface's client and liburing run on
    systems=("linux",),
)

SMALL, LARGE = 4 * 1024, 256 * 1024
"""A buffer is held by each connection, an idle one too; in the midst of an upload it may be larger."""


class Pending(Dialogue):
    """A connection of which at any time one thing is pending: a receive, a send, or a send and then a receive."""

    __slots__ = ("_buffer", "_going", "_ring", "fd", "socket")

    def __init__(self, ring: Ring, connected: socket.socket, handler: Handler) -> None:
        super().__init__(handler)
        self.socket = connected
        self.fd = connected.fileno()
        self._ring = ring
        self._buffer = bytearray(SMALL)
        self._going = b""
        """What the kernel reads from: it must not be freed before it is told that it has gone."""

    def sendall(self, data: bytes) -> None:
        """Gather what is to be sent; a piece of a stream goes out at once, and whoever sends it waits."""
        if self.in_pieces:
            self._ring.send_now(self.fd, data)
        else:
            self.unsent = b"".join((self.unsent, data)) if self.unsent else data

    def shut(self) -> None:
        """End our half."""
        self.socket.shutdown(socket.SHUT_WR)

    def received(self, length: int) -> int:
        """So much is in the buffer; also, what was to be sent before has been. Return what to wait for."""
        self.unsent = b""
        try:
            return self.arrived(bytes(memoryview(self._buffer)[:length])) if length > 0 else GONE
        except OSError:
            return GONE

    def sent(self, length: int) -> int:
        """So much went out; return what to wait for."""
        if length <= 0:
            return GONE
        self.unsent = self.unsent[length:]
        return self.go_on()

    def ask(self, want: int) -> None:
        """Hand the kernel what this waits for."""
        size = LARGE if self.in_body else SMALL
        if len(self._buffer) != size:
            self._buffer = bytearray(size)
        if want != WRITE:
            self._ring.receive(self.fd, self._buffer)
            return
        self._going = bytes(self.unsent)
        if self.hears_next:
            self._ring.send_then_receive(self.fd, self._going, self._buffer)
        else:
            self._ring.send(self.fd, self._going)


def serve(ring: Ring, reception: Reception) -> None:
    """Serve for ever. Raises OSError when connections cannot be accepted any more."""
    connections = reception.connections

    def follow(connection: Pending, want: int) -> None:
        if want == GONE:
            reception.dismiss(connection)
            return
        if want == LINGER:
            reception.linger(connection)
        connection.ask(want)

    def accepted(fd: int, more: bool) -> None:
        if not more:
            ring.accept(reception.fd)
        if fd >= 0:
            connected = socket.socket(reception.listener.family, socket.SOCK_STREAM, fileno=fd)
            connected.setblocking(False)
            reception.admit(connected).ask(LINGER)
        elif -fd != errno.ECONNABORTED:
            raise OSError(-fd, os.strerror(-fd))

    ring.accept(reception.fd)
    while True:
        for operation, fd, result, more in ring.completed(reception.patience):
            if operation == RECEIVE:
                follow(connections[fd], connections[fd].received(result))
            elif operation == SEND:
                follow(connections[fd], connections[fd].sent(result))
            elif operation == ACCEPT:
                accepted(result, more)
            # else a send in a chain that failed: the receive behind it fails too and is told next
        for connection in reception.overdue():
            connection.socket.shutdown(socket.SHUT_RDWR)  # its pending receive ends by that


def main() -> None:
    """Serve till SIGTERM."""
    told = arguments("backlog")
    end_on_sigterm()
    ring = Ring()
    connected: Any = partial(Pending, ring)
    serve(ring, Reception(open_listener(told), load(told.app), connected))


if __name__ == "__main__":
    main()
