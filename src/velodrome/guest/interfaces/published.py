"""The answer of a publication's servers: ends of line without CR, and nothing that says how long the body is.

The publication: «asyncio HTTP servers, single thread, prefork» (studies/articles/asyncio-http.toml). Its servers answer
with bytes that are ready when they start, whatever the request is.
"""

from __future__ import annotations

from typing import Any, Callable

from velodrome.guest.interface import Interface, lazily
from velodrome.guest.recipe import Body, Recipe, served_here

READ_AT_MOST = 1024
"""Bytes of a request that these servers read, once; the rest stays unread when they close the connection.

In the kernel, where `recv` leaves it: the close resets the connection, and a large answer is lost. asyncio's
transport reads up to 256 KiB whatever a handler asks for, so that only a larger request is left there.
"""

CANNOT = dict.fromkeys(
    ("cpu", "sleep", "call", "query", "write", "together", "stream", "chat"),
    "the published server answers every request with the same bytes and does nothing else",
)
"""For `Stack.cannot` of these servers."""
CANNOT["read_body"] = (
    "the published server reads at most 1024 bytes of a request; closed with the rest unread, the connection is reset"
)


def whole(head: bytes, recipe: Recipe) -> bytes:
    """Return head and body together. Raises ValueError for a recipe that is more than a body."""
    if len(recipe.steps) != 1 or not isinstance(recipe.steps[0], Body):
        raise ValueError(
            "recipe %r cannot be served: the published servers answer a body and no more" % recipe.name
        )
    return head + recipe.answer(len(head))


def head_bytes(head: bytes) -> Callable[[int], int]:
    """Return what `Interface.head_bytes` asks for, for a head that is always the same."""

    def of(size: int) -> int:
        if size < len(head):
            raise ValueError("body: %d bytes on the wire; the head alone takes %d" % (size, len(head)))
        return len(head)

    return of


HEAD = b"HTTP/1.1 200 OK\nContent-Type: text/html\n\n"

interface = Interface(
    "published",
    "a function from what was read of a request to the answer, which does not look at it",
    head_bytes=head_bytes(HEAD),
)


def build(recipe: Recipe, upstream: str) -> Callable[[bytes], bytes]:
    """Return `answer(request)`. Raises ValueError for a recipe that is more than a body."""
    ready = whole(HEAD, recipe)

    def answer(request: bytes) -> bytes:
        return ready

    return answer


def make_app() -> Any:
    """Return `answer` for the recipe this process serves."""
    return build(*served_here())


__getattr__ = lazily(globals())
