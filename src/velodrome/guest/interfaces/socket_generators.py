"""A generator over a connection: it yields whenever it waits, and the loop resumes it with what has come."""

from __future__ import annotations

import socket
import time
from typing import Any, Callable

from velodrome.guest.codegen.idioms import Delegating
from velodrome.guest.codegen.wire import CONTINUE, LINGER_S, head_bytes, refusal, responder
from velodrome.guest.interface import Interface, lazily
from velodrome.guest.raw.connection import ANSWER, GO_ON, Hearing
from velodrome.guest.raw.coroutines import Talk, Waiting
from velodrome.guest.recipe import Recipe, served_here

interface = Interface(
    "socket_generators",
    "a generator over a connection, which yields to the loop where it would block",
    head_bytes=head_bytes,
)


def turn_away(talk: Talk, status: int) -> Waiting:
    """Refuse a request that was not read whole, and wait a little for the client to take the answer.

    A close with data unread resets the connection, and the answer that is on its way is lost.
    """
    yield from talk.send(refusal(status, True))
    talk.socket.shutdown(socket.SHUT_WR)
    until = time.monotonic() + LINGER_S
    while time.monotonic() < until and (yield from talk.receive(LINGER_S)):
        pass


def build(recipe: Recipe, upstream: str) -> Callable[[Talk], Waiting]:
    """Return `converse(talk)`, a generator: answer requests till either side ends. Raises OSError."""
    respond = responder(recipe, upstream, Delegating(), "socket_generators")
    method = recipe.method.encode() + b" "

    def converse(talk: Talk) -> Waiting:
        hearing = Hearing(method)
        while True:
            request = hearing.next()
            if request is None:
                data = yield from talk.receive()
                if not data:
                    return
                hearing.hear(data)
                continue
            status, body, closing = request
            if status == ANSWER:
                yield from respond(talk, body, closing)
                if closing:
                    return
            elif status == GO_ON:
                yield from talk.send(CONTINUE)
            else:
                yield from turn_away(talk, status)
                return

    return converse


def make_app() -> Any:
    """Return `converse` for the recipe this process serves."""
    return build(*served_here())


__getattr__ = lazily(globals())
