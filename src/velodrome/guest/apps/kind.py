"""What a thing is to servers: its interface, and whether it is the application itself or makes one.

Told by what it is, never by trying a request: by its classes where a framework calls it, else by how it is called.
Nothing is imported for it: a class of aiohttp's can only be there if aiohttp is.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from functools import partial
from inspect import isawaitable, isclass, iscoroutinefunction, isfunction, ismethod
from typing import Any, Callable, List

from velodrome.guest.apps import servicers
from velodrome.guest.apps.finding import required

CLASSES = {
    ("aiohttp.web_app", "Application"): "aiohttp",
    ("tornado.web", "Application"): "tornado",
}
"""Of frameworks that bring their own server."""


@dataclass(frozen=True)
class Kind:
    """How a thing is served."""

    interface: str
    form: str
    """`application`, `factory`, `coroutine` (a factory that has to be awaited), `asgi2`, `django` or `servicer`."""
    told: str
    """What it is, for a sentence: `a Flask`, `a function`."""
    adder: str = ""
    """Of a servicer: `module:function` that adds it to a server; the function itself where its user wrote one."""


AWAITED = ("asgi", "aiohttp")
"""Whose servers run a loop before they ask for the application, so that they can await what makes it."""


class UnfitError(Exception):
    """Raised when a thing can be served by nothing: `needs` are the arguments a factory would have to be given.

    `awaited`: it has to be awaited first, and what comes of that is nothing for servers that do.
    """

    def __init__(self, told: str, needs: List[str], awaited: bool = False) -> None:
        super().__init__(told)
        self.told, self.needs, self.awaited = told, needs, awaited


def kind_of(thing: Any, make: bool = True) -> Kind:
    """Return what a thing is; a factory is called once, and awaited, to see what it makes. Raises UnfitError.

    Also raises whatever the factory does.
    """
    told = name_of(thing)
    for cls in type(thing).__mro__:
        found = CLASSES.get((cls.__module__, cls.__name__))
        if found:
            return Kind(found, "application", told)
    if isawaitable(thing):  # what `create_app('test')` gave
        return _awaited(thing, told)
    where = servicers.adder(thing)
    if where is not None:
        over = "grpc_aio" if servicers.awaits(thing) else "grpc"
        return Kind(over, "servicer", "the gRPC servicer %s" % _class_of(thing).__name__, where)
    if hasattr(thing, "__rsgi__") and not isclass(thing):
        return Kind("rsgi", "application", told)
    if not callable(thing):
        raise UnfitError(told, [])
    return _of_call(thing, told, make)


def _of_call(thing: Callable[..., Any], told: str, make: bool) -> Kind:
    try:
        needs = required(thing)
    except ValueError:
        raise UnfitError(told, []) from None
    if any(one.endswith("=") for one in needs) or _makes(thing, needs):
        raise UnfitError(told, needs)
    awaits = _awaits(thing)
    if len(needs) == 3 and (awaits or needs[0] == "scope"):
        return Kind("asgi", "application", told)
    if len(needs) == 2 and awaits:
        return Kind("rsgi", "application", told)
    if len(needs) == 2:
        return Kind("wsgi", "application", told)
    if len(needs) == 1 and not awaits and (needs[0] == "scope" or _is_asgi2_class(thing)):
        return Kind("asgi", "asgi2", told)
    if needs == ["server"]:
        return Kind("grpc_aio" if awaits else "grpc", "servicer", "%s that adds to a gRPC server" % told)
    if not needs and make:
        return _made(thing, told)
    raise UnfitError(told, needs)


def _makes(thing: Any, needs: List[str]) -> bool:
    """Return whether a function is by its name a factory, though it takes two arguments as an application does."""
    name = getattr(thing, "__name__", "") if isfunction(thing) else ""
    environ = any("env" in one for one in needs)
    return len(needs) == 2 and not environ and name.partition("_")[0] in ("create", "make", "build", "get")


def _made(factory: Callable[[], Any], told: str) -> Kind:
    """Return what a factory makes, as something that it makes."""
    made = factory()
    if isawaitable(made):
        return _awaited(made, told)
    return _as_made(kind_of(made, make=False), told, "factory")


def _awaited(made: Any, told: str) -> Kind:
    """Return what comes of waiting for it; the loop is left open, and what waits on it ends with the process."""

    async def wait() -> Any:
        return await made

    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)  # before Python 3.10 what is made may ask for it
    thing = loop.run_until_complete(wait())
    try:
        inner = kind_of(thing, make=False)
    except UnfitError as error:
        raise UnfitError("%s that makes %s" % (told, error.told), [], awaited=True) from None
    if inner.interface not in AWAITED:
        raise UnfitError("%s that makes %s" % (told, inner.told), [], awaited=True)
    return _as_made(inner, told, "coroutine")


def _as_made(inner: Kind, told: str, form: str) -> Kind:
    if inner.form == "asgi2":
        raise UnfitError("%s, which makes %s of ASGI 2" % (told, inner.told), [])
    return replace(inner, form=form, told="%s that makes %s" % (told, inner.told))


def is_factory(thing: Any) -> bool:
    """Return whether a thing is called without arguments, as no application is."""
    try:
        return callable(thing) and not required(thing)
    except ValueError:
        return False


def _awaits(thing: Any) -> bool:
    """Return whether calling a thing gives something to be awaited."""
    while isinstance(thing, partial):
        thing = thing.func
    if isclass(thing):
        return False
    if isfunction(thing) or ismethod(thing):
        return iscoroutinefunction(thing)
    return iscoroutinefunction(thing) or iscoroutinefunction(type(thing).__call__)


def _is_asgi2_class(thing: Any) -> bool:
    """Return whether instances, made for one scope each, are called with receive and send, and awaited."""
    if not isclass(thing) or not iscoroutinefunction(thing.__call__):
        return False
    try:
        return len(required(thing.__call__)) == 3  # self counts
    except ValueError:
        return False


def _class_of(thing: Any) -> type:
    return thing if isclass(thing) else type(thing)


def name_of(thing: Any) -> str:
    """Return what a thing is, in words."""
    if isclass(thing):
        return "the class %s" % thing.__name__
    if isfunction(thing) or ismethod(thing):
        return "the function %s" % thing.__name__
    if thing is None:
        return "None"
    if isawaitable(thing) and hasattr(thing, "__name__"):
        return "the coroutine %s" % thing.__name__
    name = type(thing).__name__
    return "%s %s" % ("an" if name[:1].lower() in "aeiou" else "a", name)
