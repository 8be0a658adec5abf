"""A connected socket that switches greenlets where it would block: straight code, one greenlet a connection."""

from __future__ import annotations

from typing import Any

from velodrome.guest.codegen.idioms import Switching
from velodrome.guest.codegen.wire import head_bytes, responder
from velodrome.guest.interface import Interface, lazily
from velodrome.guest.interfaces.socket_blocking import Converse, conversing
from velodrome.guest.recipe import Recipe, served_here

interface = Interface(
    "socket_greenlets",
    "a function over a connected socket, which switches to another greenlet where it would block",
    head_bytes=head_bytes,
)


def build(recipe: Recipe, upstream: str) -> Converse:
    """Return `converse(connection, keep)`, as `socket_blocking` does, for `raw/greenlets.py`'s connections."""
    return conversing(recipe, responder(recipe, upstream, Switching(), "socket_greenlets"))


def make_app() -> Any:
    """Return `converse` for the recipe this process serves."""
    return build(*served_here())


__getattr__ = lazily(globals())
