"""How a server writes the head of an answer: what a library that reads it forgives and does not tell."""

import socket
from urllib.parse import urlsplit

from velodrome.model.measurement import AnswerForm
from velodrome.run.drivers.driver import Target

MOST_BYTES = 65_536
"""Of a head; a longer one has been refused as an answer before."""


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
            while connection.recv(MOST_BYTES):  # to its end: a close with data unread would reset it
                pass
    except OSError:  # reset behind its head, perhaps: what was seen was seen
        pass
    head = head_of(received)
    return form_of(head) if head is not None else None


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
