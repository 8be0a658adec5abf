"""How a server writes the head of an answer: what a library that reads it forgives and does not tell."""

import re
import socket
from urllib.parse import urlsplit

from velodrome.model.measurement import AnswerForm
from velodrome.run.drivers.driver import Target

MOST_BYTES = 65_536
"""Of a head; a longer one has been refused as an answer before."""
QUIET_S = 1.0
"""Nothing more comes from a server that has said nothing for so long behind its head."""
_LENGTH = re.compile(rb"^content-length:[ \t]*(\d{1,15})[ \t]*\r?$", re.IGNORECASE | re.MULTILINE)


def seen(target: Target, patience_s: float) -> AnswerForm | None:
    """Ask once over HTTP/1.1 and look at the head as it is; None if none came in time."""
    parts = urlsplit(target.url)
    lines = [f"{target.method} {target.path} HTTP/1.1", f"Host: {parts.netloc}", "Connection: close"]
    lines += [f"{name}: {value}" for name, value in target.headers]
    lines += [f"Content-Length: {len(target.body)}"] if target.body else []
    request = "\r\n".join([*lines, "", ""]).encode() + target.body
    received = b""
    try:
        with socket.create_connection((parts.hostname or "", parts.port or 80), patience_s) as connection:
            connection.sendall(request)
            while head_of(received) is None and len(received) < MOST_BYTES:
                piece = connection.recv(MOST_BYTES)
                if not piece:
                    return None
                received += piece
            _read_to_its_end(connection, received)
    except OSError:  # reset behind its head, perhaps: what was seen was seen
        pass
    head = head_of(received)
    return form_of(head) if head is not None else None


def _read_to_its_end(connection: socket.socket, received: bytes) -> None:
    """Read the rest of an answer, because a close with data unread would reset the connection.

    The end is where the head says it is, or the server's close; one that keeps the connection against our asking is not
    waited for long.
    """
    head = head_of(received) or received
    told = _LENGTH.search(head)
    behind = received[len(head) :]
    blank = 2 if behind.startswith(b"\r\n") else 1
    left = int(told[1]) - (len(behind) - blank) if told else None
    connection.settimeout(QUIET_S)
    while left is None or left > 0:
        piece = connection.recv(MOST_BYTES)
        if not piece:
            return
        left = None if left is None else left - len(piece)


def head_of(received: bytes) -> bytes | None:
    """Return the lines of a head with their ends, without the blank one, or None if it is not whole."""
    ends = [at + 1 for mark in (b"\n\r\n", b"\n\n") if (at := received.find(mark)) >= 0]
    return received[: min(ends)] if ends else None


def form_of(head: bytes) -> AnswerForm:
    """Return what a whole head shows."""
    lines = head.split(b"\n")[:-1]
    names = {line.partition(b":")[0].strip().lower() for line in lines[1:]}
    return AnswerForm(
        length_told=bool(names & {b"content-length", b"transfer-encoding"}),
        line_ends="CRLF" if all(line.endswith(b"\r") for line in lines) else "LF",
    )
