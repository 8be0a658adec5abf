"""A connection over a socket that never blocks, for loops that are told when it is ready to be read or written."""

from __future__ import annotations

import socket

from velodrome.guest.raw.dialogue import GONE, READ, WRITE, Dialogue, Handler

PIECE = 64 * 1024
"""Read at once: a request fits many times, an upload of a megabyte takes a few dozen."""


class Connection(Dialogue):
    """`readable` and `writable` do what can be done now, and return what to wait for next."""

    __slots__ = ("fd", "got", "socket")

    def __init__(self, connected: socket.socket, handler: Handler) -> None:
        """Take over a socket that is set not to block."""
        super().__init__(handler)
        self.socket = connected
        self.fd = connected.fileno()
        self.got = 0
        """Bytes the last read gave; -1: there was nothing to read. Under PIECE there is no more for now."""

    def readable(self) -> int:
        """Read once, answer what is whole."""
        try:
            data = self.socket.recv(PIECE)
        except BlockingIOError:  # woken for nothing, or to the end of what there is
            self.got = -1
            return READ
        except OSError:
            self.got = 0
            return GONE  # reset: nobody is left to answer
        self.got = len(data)
        if not data:
            return GONE
        try:
            return self.arrived(data)
        except OSError:
            return GONE

    def read_on(self, to_the_end: bool) -> int:
        """Read till there is no more: for loops that are told once. Return what to wait for.

        A read that gives less than asked for has emptied the connection (epoll(7)), but does not show whether
        the client has ended it too; `to_the_end` reads once more then.
        """
        least = 0 if to_the_end else PIECE
        want = READ
        while want == READ:
            want = self.readable()
            if self.got < least:
                break
        return want

    def writable(self) -> int:
        """Send what waits, and go on with what was asked meanwhile."""
        try:
            self.unsent = self.unsent[self.socket.send(self.unsent) :]
            return self.go_on()
        except BlockingIOError:  # woken for nothing: answers never raise this
            return WRITE
        except OSError:
            return GONE

    def sendall(self, data: bytes) -> None:
        """Send what the kernel takes; keep the rest. Raises OSError if the client is gone."""
        if self.unsent:
            self.unsent = b"".join((self.unsent, data))
            return
        try:
            sent = self.socket.send(data)
        except BlockingIOError:
            sent = 0
        if sent < len(data):
            self.unsent = memoryview(data)[sent:]

    def shut(self) -> None:
        """End our half."""
        self.socket.shutdown(socket.SHUT_WR)
