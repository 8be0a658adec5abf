"""Places in which a marker of a request is kept while the request lasts, as libraries keep «the current request»."""

from __future__ import annotations

import sys
import threading
from contextvars import ContextVar
from typing import Any, Callable, Tuple

from velodrome.guest.recipe import PLACES

Place = Tuple[Callable[[bytes], object], Callable[[], bytes]]
"""How to put a marker in, and how to read it back."""


class Global:
    """One place for all: the marker of whoever came last."""


def place(name: str) -> Place:
    """Return a place by its name. Raises ValueError for one that there is not, or not in this process."""
    if name == "global":
        return _attribute_of(Global())
    if name == "thread-local":
        return _attribute_of(threading.local())
    if name == "context-local":
        variable: ContextVar[bytes] = ContextVar("marker", default=b"")
        return variable.set, variable.get
    if name not in PLACES:
        raise ValueError("no place is called %r; there are: %s" % (name, ", ".join(PLACES)))
    monkey = sys.modules.get("gevent.monkey")
    if monkey is None or not monkey.is_module_patched("threading"):
        raise ValueError("%s is a place where gevent has patched the standard library" % name)
    if name == "greenlet-local":
        from gevent.local import local

        return _attribute_of(local())
    # What a library has that took it before the patching, or that keeps its own in C.
    return _attribute_of(monkey.get_original("threading", "local")())


def _attribute_of(holder: Any) -> Place:
    def get() -> bytes:
        marker: bytes = getattr(holder, "marker", b"")
        return marker

    return (lambda marker: setattr(holder, "marker", marker)), get
