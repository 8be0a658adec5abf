"""One connection of a server that is told of events: what it has heard, what it has not yet got rid of.

Who owns the socket tells a dialogue what arrived (`arrived`) and when all of `unsent` went out (`go_on`); the
dialogue answers through `sendall`, which never waits, and says what it wants to be told of next.

A connection is read only when all it asked for was answered and has gone out. So at a client's end nothing
is owed to it, also if it only says no more and still listens: the connection can be closed.
"""

from __future__ import annotations

from typing import Any, Callable, NamedTuple, Union

from velodrome.guest.raw.hearing import ANSWER, GO_ON, Hearing
from velodrome.guest.weave.wire import CONTINUE, refusal

GONE, READ, WRITE, LINGER = range(4)
"""What a connection waits for: nothing any more (close it), something to read, room to write, or only the
client's end, for a while: it was refused. LINGER is told once; what comes then is read and dropped.
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

    A client that does not read its answers is not asked for more: requests that wait behind an answer
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
        return self._state == OPEN and not self.heard

    def _at_the_end(self) -> int:
        """Everything went out. A refused request was not read whole: a close now would reset its answer."""
        if self._state == CLOSING:
            return GONE
        if self._state == REFUSED:
            self.shut()
            self._state = LINGERING
            return LINGER
        return READ
