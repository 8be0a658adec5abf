"""An interface: one way in which servers call Python, and what a recipe's handler in that idiom needs.

    interface = Interface("wsgi", "a function called once per request, which may block", requires=(URLLIB3,))

A file in `guest/interfaces/` has `interface`, `build(recipe, upstream)` which returns the handler, and
`app`: the handler of the recipe this process serves, built when a server first asks for it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable, Dict, Optional, Tuple

from velodrome.guest.recipe import Body, Recipe

URLLIB3 = "urllib3==2.8.0"
"""The client of handlers that block. Imported only if the recipe calls a third party."""

AIOHTTP = "aiohttp==3.14.5"
"""The client of handlers that await. Imported only if the recipe calls a third party."""

GRPCIO = ("grpcio==1.85.1", "protobuf==7.36.2")
"""gRPC over its core in C, and its messages: server, and client of recipes that call over gRPC."""

GRPCLIB = ("betterproto==2.0.0b7", "grpclib==0.4.9")
"""gRPC in pure Python on asyncio, and messages that are dataclasses: server and client.

Of betterproto the pre-release is what is deployed and what was measured in publications: 1.2.5 makes no
server classes, and betterproto2, which continues it, is another package with other messages.
"""


@dataclass(frozen=True)
class Interface:
    """How Python is called. The stack brings the server; the interface, framework and client."""

    name: str
    """As stacks write it, e.g. `wsgi`; the file is `wsgi.py`."""
    about: str
    """One sentence: what is called, and how it waits."""
    requires: Tuple[str, ...] = ()
    """Pinned requirements of the handlers, beside those of the server."""
    chats: bool = False
    """Whether its handlers can hold a WebSocket or, over gRPC, a call with a stream in each direction."""
    awaits: bool = False
    """Whether its handlers are coroutines; they then get clients that await (`guest/client.py`)."""
    head_bytes: Optional[Callable[[int], int]] = None
    """Given head and body together in bytes, the part that is head; None where the server writes the head."""
    protocol: str = "http"
    """What clients speak to its servers: `http` (HTTP/1.1) or `grpc`."""
    apps: bool = False
    """Whether an app of a user's own can be called through it (`--interface`); the others are of recipes alone."""

    def answer(self, recipe: Recipe) -> bytes:
        """Return the body of a right answer. Raises ValueError if the recipe cannot be served."""
        last = recipe.steps[-1] if recipe.steps else None
        if self.head_bytes is None or not isinstance(last, Body) or not last.on_wire:
            return recipe.answer()
        return recipe.answer(self.head_bytes(last.size))


def lazily(namespace: Dict[str, Any]) -> Callable[[str], Any]:
    """Return a module's `__getattr__` (PEP 562): `app` is what `make_app()` returns, made on first use and kept.

    Likewise every other name for which the module has a `make_…`. Importing an interface must not start anything,
    yet servers load `module:app`. A server that looks into `vars(module)` instead of reading the attribute loads
    `module:make_app()`.
    """

    def __getattr__(name: str) -> Any:  # noqa: N807 - the name PEP 562 gives it
        make = namespace.get("make_" + name)
        if make is None:
            raise AttributeError("module %r has no attribute %r" % (namespace["__name__"], name))
        return namespace.setdefault(name, make())

    return __getattr__
