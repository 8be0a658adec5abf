"""What a thing is to servers: its interface, and whether it is the application itself or makes one.

Told by what it is, never by trying a request: by its classes where a framework calls it, else by how it is called.
Nothing is imported for it: a class of aiohttp's can only be there if aiohttp is.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from inspect import isclass, iscoroutine, iscoroutinefunction, isfunction, ismethod
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
    """`application`, `factory`, `coroutine` (a factory that awaits), `asgi2`, `django` or `servicer`."""
    told: str
    """What it is, for a sentence: `a Flask`, `a function`."""
    adder: str = ""
    """Of a servicer: `module:function` that adds it to a server; the function itself where its user wrote one."""


class UnfitError(Exception):
    """Raised when a thing can be served by nothing: `needs` are the arguments a factory would have to be given."""

    def __init__(self, told: str, needs: List[str]) -> None:
        super().__init__(told)
        self.told, self.needs = told, needs


def kind_of(thing: Any, make: bool = True) -> Kind:
    """Return what a thing is; a factory is called once to see what it makes. Raises UnfitError.

    Also raises whatever the factory does.
    """
    told = name_of(thing)
    for cls in type(thing).__mro__:
        found = CLASSES.get((cls.__module__, cls.__name__))
        if found:
            return Kind(found, "application", told)
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
    if _awaits(factory):
        # Made on the server's own loop; only aiohttp's takes an application that has to be awaited.
        return Kind("aiohttp", "coroutine", told)
    made = factory()
    if iscoroutine(made):
        made.close()
        return Kind("aiohttp", "coroutine", told)
    inner = kind_of(made, make=False)
    if inner.form == "asgi2":
        raise UnfitError("%s, which makes %s of ASGI 2" % (told, inner.told), [])
    return replace(inner, form="factory", told="%s that makes %s" % (told, inner.told))


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
    name = type(thing).__name__
    return "%s %s" % ("an" if name[:1].lower() in "aeiou" else "a", name)
