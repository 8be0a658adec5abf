"""Connections of a server driven by events: what was heard, what is owed, and the socket they came in by.

    reception = open_reception(arguments)       listens
    connection = reception.accept()             None: nobody waits
    connection.readable()                       reads once, answers what is whole, returns what to wait for
    reception.dismiss(connection)               closes it

Every stack brings its own way to learn which of these are ready; all else about them is here. `Hearing` turns bytes
into requests, where a loop cannot read on where it stands; `Dialogue` answers them without a socket; `Connection` has
one that never blocks; `Reception` is the listening socket and all that is connected.

A connection is read only when all its requests were answered and all answers have gone out. So at a client's end
nothing is owed to it, also if it only says no more and still listens: the connection can be closed.
"""

from __future__ import annotations

import argparse
import socket
import time
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple, Union

from velodrome.guest.codegen.wire import BLANK_LINE, CONTINUE, LINGER_S, LONGEST_HEAD, parse_head, refusal
from velodrome.guest.raw.process import end_on_sigterm, open_listener
from velodrome.guest.workers import load

Request = Tuple[int, bytes, bool]
"""What to do, the body of the request, and whether the connection ends behind the answer."""

ANSWER = 0
"""To do: answer. Any other number is the status to send instead: 100 and go on, or a refusal and end."""

GO_ON = 100

_CONTINUE: Request = (GO_ON, b"", False)
_ENDLESS: Request = (431, b"", True)


class Hearing:
    r"""The requests of one connection, in order, each as soon as it is whole: bytes in, requests out.

    hearing.hear(b"GET / HTTP/1.1\r\nHost: a\r\n")     hearing.next() is None: more must come
    hearing.hear(b"\r\nGET /")                         hearing.next() == (ANSWER, b"", False)
    """

    __slots__ = ("_closing", "_had", "_method", "_missing", "_pieces", "_received")

    def __init__(self, method: bytes) -> None:
        """`method` is the one that is served, with the blank behind it."""
        self._method = method
        self._received = b""
        self._missing = -1
        """Length of the body that is awaited; -1: a head is."""
        self._pieces: List[bytes] = []
        self._had = 0
        self._closing = False

    def hear(self, data: bytes) -> None:
        """Take in what has arrived."""
        if self._missing < 0:
            self._received = self._received + data if self._received else data
        else:  # pieces, because a body of a megabyte must not be copied with each of them
            self._pieces.append(data)
            self._had += len(data)

    @property
    def in_body(self) -> bool:
        """Whether the rest of a body is awaited, so that much may come at once."""
        return self._missing >= 0

    @property
    def pending(self) -> bool:
        """Whether anything was received behind the last request that was returned."""
        return bool(self._received) or self._missing >= 0

    def next(self) -> Optional[Request]:
        """Return the next whole request, or None: more must be heard. After a refusal, ask no more."""
        if self._missing >= 0:
            return self._body()
        received = self._received
        end = received.find(BLANK_LINE)
        if end < 0:
            return _ENDLESS if len(received) > LONGEST_HEAD else None
        length, closing, waits, refused = parse_head(received[:end], self._method)
        if refused:
            return (refused, b"", True)
        self._received = received[end + 4 :]
        if not length and not waits:
            return (ANSWER, b"", closing)
        self._missing, self._closing = length, closing
        self._pieces, self._had = [self._received], len(self._received)
        self._received = b""
        return _CONTINUE if waits else self._body()

    def _body(self) -> Optional[Request]:
        missing = self._missing
        if self._had < missing:
            return None
        whole = b"".join(self._pieces)
        self._pieces, self._missing = [], -1
        self._received = whole[missing:]
        return (ANSWER, whole[:missing], self._closing)


GONE, READ, WRITE, LINGER = range(4)
"""What a connection waits for: nothing any more (close it), something to read, room to write, or only the
client's end, for a while: it was refused. LINGER is set once; what comes then is read and dropped.
"""

OPEN, CLOSING, REFUSED, LINGERING = range(4)


class Handler(NamedTuple):
    """How requests are answered: what interfaces for events build."""

    respond: Callable[[Any, bytes, bool], None]
    """Called with the dialogue, the request's body, and whether the connection ends behind the answer."""
    method: bytes
    """The method that is served, with the blank behind it."""
    in_pieces: bool
    """Whether an answer is sent in pieces, over time."""


class Dialogue(Hearing):
    """A connection without its socket.

    Who owns the socket says what arrived (`arrived`) and when all of `unsent` went out (`go_on`); the dialogue answers
    through `sendall`, which never waits, and returns what to wait for next.

    Nothing more is read from a client that does not read its answers: requests that wait behind an answer
    which does not go out wait in memory, at most what was read at once, and nothing is read meanwhile.
    """

    __slots__ = ("_respond", "_state", "in_pieces", "unsent")

    def __init__(self, handler: Handler) -> None:
        """Open, with nothing heard."""
        super().__init__(handler.method)
        self._respond = handler.respond
        self.in_pieces = handler.in_pieces
        self._state = OPEN
        self.unsent: Union[bytes, memoryview] = b""
        """What must go out before anything else is done."""

    def sendall(self, data: bytes) -> None:
        """Send what goes out at once and keep the rest in `unsent`. For `respond`; it must not wait."""
        raise NotImplementedError

    def shut(self) -> None:
        """Tell the client that nothing more comes. Called once, when a refusal has gone out."""
        raise NotImplementedError

    def arrived(self, data: bytes) -> int:
        """Hear `data`, answer what is whole by it, and return what to wait for."""
        if self._state == LINGERING:
            return READ
        self.hear(data)
        return self.go_on()

    def go_on(self) -> int:
        """Answer till an answer does not go out whole or more must be heard; return what to wait for."""
        while not self.unsent:
            if self._state != OPEN:
                return self._at_the_end()
            request = self.next()
            if request is None:
                return READ
            status, body, closing = request
            if status == ANSWER:
                self._respond(self, body, closing)
                if closing:
                    self._state = CLOSING
            elif status == GO_ON:
                self.sendall(CONTINUE)
            else:
                self.sendall(refusal(status, True))
                self._state = REFUSED
        return WRITE

    @property
    def hears_next(self) -> bool:
        """Whether, once `unsent` is gone, there is nothing to do before more is heard."""
        return self._state == OPEN and not self.pending

    def _at_the_end(self) -> int:
        """Everything went out. A refused request was not read whole: a close now would reset its answer."""
        if self._state == CLOSING:
            return GONE
        if self._state == REFUSED:
            self.shut()
            self._state = LINGERING
            return LINGER
        return READ


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
        """Read till there is no more: for loops that are notified once. Return what to wait for.

        A read that gives less than its size has emptied the connection (epoll(7)), but does not show whether
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
        """Send what waits, and go on with requests that came meanwhile."""
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


def open_reception(options: argparse.Namespace) -> Reception:
    """Listen as the arguments say, with the handler that is named; from now on SIGTERM ends the process."""
    end_on_sigterm()
    return Reception(open_listener(options), load(options.app))


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
