"""A dialogue driven by events: the handler answers at once, and what it waits for, everybody waits for."""

from __future__ import annotations

from typing import Any

from velodrome.guest.codegen.idioms import Blocking
from velodrome.guest.codegen.wire import head_bytes, responder
from velodrome.guest.interface import URLLIB3, Interface, lazily
from velodrome.guest.raw.connection import Handler
from velodrome.guest.recipe import Recipe, Stream, served_here

interface = Interface(
    "socket_events",
    "a function called for each whole request by a loop of events, which blocks the loop where it waits",
    requires=(URLLIB3,),
    head_bytes=head_bytes,
)


def build(recipe: Recipe, upstream: str) -> Handler:
    """Return the handler that dialogues (`raw/dialogue.py`) are made with."""
    respond = responder(recipe, upstream, Blocking(), "socket_events")
    return Handler(respond, recipe.method.encode() + b" ", isinstance(recipe.steps[-1], Stream))


def make_app() -> Any:
    """Return the handler of the recipe this process serves."""
    return build(*served_here())


__getattr__ = lazily(globals())
