"""The answer of a publication's servers: ends of line without CR, and nothing that tells how long the body is."""

from __future__ import annotations

from typing import Any, Callable

from velodrome.guest.interface import Interface, lazily
from velodrome.guest.recipe import Recipe, served_here
from velodrome.guest.weave.as_published import head_bytes, whole

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


__getattr__ = lazily(make_app, globals())
