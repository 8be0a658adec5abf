"""A gRPC servicer: what adds it to a server, found beside the class that was generated for it.

`app` is a function that adds the servicer this process serves to a `grpc.Server` or `grpc.aio.Server`.
"""

from __future__ import annotations

import os
import sys
from inspect import isasyncgenfunction, isclass, iscoroutinefunction
from typing import Any, Callable, Optional

from velodrome.guest.apps.finding import found
from velodrome.guest.apps.made import APP_VARIABLE
from velodrome.guest.interface import lazily


def adder(thing: Any) -> Optional[str]:
    """Return `module:function` of the generated `add_…_to_server` of a servicer or its class; None: it is none."""
    cls = thing if isclass(thing) else type(thing)
    for base in cls.__mro__:
        name = "add_%s_to_server" % base.__name__
        if base.__name__.endswith("Servicer") and hasattr(sys.modules.get(base.__module__), name):
            return "%s:%s" % (base.__module__, name)
    return None


def awaits(thing: Any) -> bool:
    """Return whether a servicer's own methods are coroutines, or generators that await."""
    cls = thing if isclass(thing) else type(thing)
    methods = [value for name, value in vars(cls).items() if not name.startswith("_") and callable(value)]
    return any(iscoroutinefunction(one) or isasyncgenfunction(one) for one in methods)


def make_app() -> Callable[[Any], Any]:
    """Return what adds the servicer to a server."""
    _, thing, _ = found(os.environ[APP_VARIABLE])
    where = adder(thing)
    if where is None:  # a function that adds, written by the user
        add: Callable[[Any], Any] = thing
        return add
    module, _, name = where.partition(":")
    servicer = thing() if isclass(thing) else thing
    return lambda server: getattr(sys.modules[module], name)(servicer, server)


__getattr__ = lazily(make_app, globals())
