"""A client for coroutines switched by hand: asks the third party over connections that it keeps.

As much of HTTP/1.1 as the simulated third party needs: an answer has a Content-Length.
"""

from __future__ import annotations

import socket
from contextlib import suppress
from typing import List, Tuple
from urllib.parse import urlsplit

from velodrome.guest.raw.generators import Talk, Waiting
from velodrome.guest.raw.switchboard import WRITE
from velodrome.guest.weave.wire import BLANK_LINE, LONGEST_HEAD, field


class Asker:
    """The client of a process: any number of questions at once, each on a connection of its own meanwhile."""

    def __init__(self, upstream: str, timeout_s: float) -> None:
        """`upstream` is the third party's base URL; open nothing yet."""
        parts = urlsplit(upstream)
        self._address = (parts.hostname or "", parts.port or 80)
        self._host = parts.netloc.encode()
        self._timeout_s = timeout_s
        self._idle: List[Talk] = []

    def ask(self, url: str) -> Waiting:
        """Fetch a URL of the third party whole and return its status; 0 if there was no answer."""
        parts = urlsplit(url)
        target = "%s?%s" % (parts.path or "/", parts.query)
        request = b"GET %s HTTP/1.1\r\nHost: %s\r\n\r\n" % (target.encode(), self._host)
        while True:
            kept = bool(self._idle)
            try:
                talk = self._idle.pop() if kept else (yield from self._connected())
            except OSError:
                return 0
            try:
                status, keep = yield from self._asked(talk, request)
            except OSError:
                yield from talk.close()
                if kept:  # it may have been closed as it lay idle
                    continue
                return 0
            if keep:
                self._idle.append(talk)
            else:
                yield from talk.close()
            return status

    def _connected(self) -> Waiting:
        """Return a new connection. Raises OSError."""
        family = socket.AF_INET6 if ":" in self._address[0] else socket.AF_INET
        connecting = socket.socket(family, socket.SOCK_STREAM)
        connecting.setblocking(False)
        with suppress(BlockingIOError):
            connecting.connect(self._address)
        talk = Talk(connecting)
        ready = yield (WRITE, talk.fd, self._timeout_s)
        error = connecting.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if error or not ready:
            yield from talk.close()
            raise OSError(error, "no connection")
        return talk

    def _asked(self, talk: Talk, request: bytes) -> Waiting:
        """Send a request and return the status of the answer, and whether the connection can be kept."""
        yield from talk.send(request, self._timeout_s)
        received = b""
        while BLANK_LINE not in received:
            received += yield from self._more(talk, len(received))
        head, _, body = received.partition(BLANK_LINE)
        status, length, keep = read_head(head)
        had = len(body)
        while had < length:
            had += len((yield from self._more(talk, 0)))
        return status, keep and had == length

    def _more(self, talk: Talk, had: int) -> Waiting:
        data = yield from talk.receive(self._timeout_s)
        if not data or had > LONGEST_HEAD:
            raise OSError("the answer breaks off")
        return data


def read_head(head: bytes) -> Tuple[int, int, bool]:
    """Return status, length of the body, and whether the connection is kept. Raises OSError if it tells none."""
    lowered = head.lower()
    words = lowered.split(None, 2)
    length = field(lowered, b"\r\ncontent-length:")
    if (
        len(words) < 2
        or not words[0].startswith(b"http/1.")
        or not words[1].isdigit()
        or not length.isdigit()
    ):
        raise OSError("not an answer of known length")
    keep = words[0] != b"http/1.0" and b"close" not in field(lowered, b"\r\nconnection:")
    return int(words[1]), int(length), keep
