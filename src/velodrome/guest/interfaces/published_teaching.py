"""The answer of the publication's teaching server: it takes the request line apart, and says that it will close."""

from __future__ import annotations

from typing import Any, Callable

from velodrome.guest.interface import Interface, lazily
from velodrome.guest.interfaces.published import head_bytes, whole
from velodrome.guest.recipe import Recipe, served_here

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close\r\n\r\n"

interface = Interface(
    "published_teaching",
    "a function from what was read of a request to the answer, which splits the request line",
    head_bytes=head_bytes(HEAD),
)


def build(recipe: Recipe, upstream: str) -> Callable[[bytes], bytes]:
    """Return `answer(request)`. Raises ValueError for a recipe that is more than a body.

    What it is called with must be a request line of three words, or it raises ValueError, as published.
    """
    ready = whole(HEAD, recipe)

    def answer(request: bytes) -> bytes:
        line = request.decode().split("\r\n", 1)[0]
        _method, _target, _version = line.split(" ")
        return ready

    return answer


def make_app() -> Any:
    """Return `answer` for the recipe this process serves."""
    return build(*served_here())


__getattr__ = lazily(globals())
