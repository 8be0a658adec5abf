"""A connected socket: the handler reads requests from it and writes answers, on its own thread or process."""

from __future__ import annotations

import socket
import time
from typing import Any, Callable, Tuple

from velodrome.guest.codegen.idioms import Blocking
from velodrome.guest.codegen.wire import (
    BLANK_LINE,
    CONTINUE,
    LINGER_S,
    LONGEST_HEAD,
    head_bytes,
    parse_head,
    refusal,
    responder,
)
from velodrome.guest.interface import URLLIB3, Interface, lazily
from velodrome.guest.recipe import Recipe, served_here

interface = Interface(
    "socket_blocking",
    "a function over a connected socket, which blocks",
    requires=(URLLIB3,),
    head_bytes=head_bytes,
)

Converse = Callable[[socket.socket, bool], None]

PIECE = 64 * 1024


class PeerLeftError(Exception):
    """Raised when the other side closes, within a request or between two: nobody is to be answered."""


class TooLongError(Exception):
    """Raised when a request's head has no end: it would fill the memory."""


def receive_head(connection: socket.socket, received: bytes) -> Tuple[bytes, bytes]:
    """Read until a blank line; return the head without it and what came behind it.

    Raises PeerLeftError at the end of the connection, TooLongError for a head beyond bounds.
    """
    end = received.find(BLANK_LINE)
    while end < 0:
        if len(received) > LONGEST_HEAD:
            raise TooLongError
        piece = connection.recv(PIECE)
        if not piece:
            raise PeerLeftError
        received += piece
        end = received.find(BLANK_LINE)
    return received[:end], received[end + 4 :]


def receive_body(connection: socket.socket, received: bytes, length: int) -> Tuple[bytes, bytes]:
    """Return a body of that length and what came behind it. Raises PeerLeftError if it ends early."""
    if len(received) >= length:
        return received[:length], received[length:]
    pieces, missing = [received], length - len(received)
    while missing:
        piece = connection.recv(min(missing, 1 << 20))
        if not piece:
            raise PeerLeftError
        pieces.append(piece)
        missing -= len(piece)
    return b"".join(pieces), b""


def turn_away(connection: socket.socket, status: int) -> None:
    """Refuse a request that was not read whole, and wait a little for the client to take the answer.

    A close with data unread resets the connection, and the answer that is on its way is lost.
    """
    connection.sendall(refusal(status, True))
    connection.shutdown(socket.SHUT_WR)
    connection.settimeout(LINGER_S)
    until = time.monotonic() + LINGER_S
    while time.monotonic() < until and connection.recv(PIECE):
        pass


def build(recipe: Recipe, upstream: str) -> Converse:
    """Return `converse(connection, keep)`: answer requests till one side closes, or with `keep` false once.

    A request is read whole before it is answered: a socket closed with unread data resets the
    connection, and the client would lose an answer that was sent.
    """
    return conversing(recipe, responder(recipe, upstream, Blocking(), "socket_blocking"))


def conversing(recipe: Recipe, respond: Callable[[Any, bytes, bool], None]) -> Converse:
    """Return `converse` which has each request answered by `respond`."""
    method = recipe.method.encode() + b" "

    def answer_all(connection: socket.socket, keep: bool) -> None:
        received = b""
        while True:
            try:
                head, received = receive_head(connection, received)
            except TooLongError:
                return turn_away(connection, 431)
            length, closing, waits, refused = parse_head(head, method)
            if refused:
                return turn_away(connection, refused)
            if waits:
                connection.sendall(CONTINUE)
            body = b""
            if length:
                body, received = receive_body(connection, received, length)
            closing = closing or not keep
            respond(connection, body, closing)
            if closing:
                return None

    def converse(connection: socket.socket, keep: bool) -> None:
        try:  # noqa: SIM105 - `suppress` costs more, and this is once per request where none is kept
            answer_all(connection, keep)
        except (PeerLeftError, OSError):
            pass

    return converse


def make_app() -> Any:
    """Return `converse` for the recipe this process serves."""
    return build(*served_here())


__getattr__ = lazily(globals())
