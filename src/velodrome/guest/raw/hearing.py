"""What a client says on one connection: bytes in, whole requests out. Nothing is read or written here.

    hearing.hear(b"GET / HTTP/1.1\\r\\nHost: a\\r\\n")     hearing.next() is None: more must come
    hearing.hear(b"\\r\\nGET /")                         hearing.next() == (ANSWER, b"", False)

For servers that are told of bytes when they come, and so cannot read on where they stand.
"""

from __future__ import annotations

from typing import List, Optional, Tuple

from velodrome.guest.weave.wire import BLANK_LINE, LONGEST_HEAD, told

Request = Tuple[int, bytes, bool]
"""What to do, the body of the request, and whether the connection ends behind the answer."""

ANSWER = 0
"""To do: answer. Any other number is the status to send instead: 100 and go on, or a refusal and end."""

GO_ON = 100

_CONTINUE: Request = (GO_ON, b"", False)
_ENDLESS: Request = (431, b"", True)


class Hearing:
    """The requests of one connection, in order, each as soon as it is whole."""

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
    def heard(self) -> bool:
        """Whether anything was heard behind the last request that was returned."""
        return bool(self._received) or self._missing >= 0

    def next(self) -> Optional[Request]:
        """Return the next whole request, or None: more must be heard. After a refusal, ask no more."""
        if self._missing >= 0:
            return self._body()
        received = self._received
        end = received.find(BLANK_LINE)
        if end < 0:
            return _ENDLESS if len(received) > LONGEST_HEAD else None
        length, closing, waits, refused = told(received[:end], self._method)
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
