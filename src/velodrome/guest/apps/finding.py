"""Finds what a user names (`shop:app`, `shop`, `shop:create_app('test')`, `shop:site.app`), and says what it is.

That is: which interface a server calls it through, and whether it is the application itself or makes one. It is
decided by its classes where a framework calls it, else by its parameters, never by trying a request. Nothing is
imported for it: a class of aiohttp's can only be there if aiohttp is.
"""

from __future__ import annotations

import ast
import asyncio
import os
import sys
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from inspect import (
    Parameter,
    isasyncgenfunction,
    isawaitable,
    isclass,
    iscoroutinefunction,
    isfunction,
    ismethod,
    signature,
)
from typing import Any, Callable, Dict, List, Optional, Tuple

NAMES = (
    "application",
    "app",
    "asgi_app",
    "wsgi_app",
    "api",
    "create_app",
    "create_application",
    "make_app",
    "make_application",
    "get_app",
    "get_application",
    "build_app",
)
"""Looked for in this order where a module alone is named."""


class NotFoundError(Exception):
    """Raised when a module, or `holder` in it, has nothing of that name: `known` are the names it has."""

    def __init__(self, module: str, name: str, known: List[str], holder: str = "") -> None:
        super().__init__(name)
        self.module, self.name, self.known, self.holder = module, name, known, holder


class UnreadableError(Exception):
    """Raised when what stands behind the colon is neither a name nor a call with plain values."""


def split_path(path: str) -> Tuple[str, str]:
    """Return module and attribute; the attribute is empty if none is named."""
    module, _, attribute = path.partition(":")
    return module, attribute


def find(path: str) -> Tuple[str, Any, bool]:
    """Return the whole path, what it names, and whether it was called to get it.

    Raises NotFoundError, UnreadableError, and whatever the module and a call raise.
    """
    module_name, attribute = split_path(path)
    module = import_module(module_name)
    if not attribute:
        attribute = next((name for name in NAMES if hasattr(module, name)), "")
        if not attribute:
            if is_settings(module):
                return path, module, False
            raise NotFoundError(module_name, "", _public(module))
        path = "%s:%s" % (module_name, attribute)
    name, given, named = read(attribute)
    thing: Any = module
    parts = name.split(".")
    for place, part in enumerate(parts):
        if not hasattr(thing, part):
            raise NotFoundError(module_name, part, _public(thing), ".".join(parts[:place]))
        thing = getattr(thing, part)
    if not attribute.endswith(")"):
        return path, thing, False
    return path, thing(*given, **named), True


def read(attribute: str) -> Tuple[str, List[Any], Dict[str, Any]]:
    """Return the dotted name in `create_app('test', debug=False)`, and what it is called with.

    Raises UnreadableError.
    """
    try:
        node: Any = ast.parse(attribute, mode="eval").body
        call = node if isinstance(node, ast.Call) else None
        name = _dotted_name(call.func if call else node)
        given = [ast.literal_eval(argument) for argument in call.args] if call else []
        named = (
            {str(keyword.arg): ast.literal_eval(keyword.value) for keyword in call.keywords} if call else {}
        )
    except (SyntaxError, ValueError):
        raise UnreadableError(attribute) from None
    return name, given, named


def _dotted_name(node: Any) -> str:
    if isinstance(node, ast.Attribute):
        return "%s.%s" % (_dotted_name(node.value), node.attr)
    if isinstance(node, ast.Name):
        return node.id
    raise ValueError(node)


def is_settings(module: Any) -> bool:
    """Return whether a module holds the settings of a Django site."""
    return hasattr(module, "ROOT_URLCONF") or hasattr(module, "INSTALLED_APPS")


def _public(thing: Any) -> List[str]:
    return (
        sorted(name for name in vars(thing) if not name.startswith("_")) if hasattr(thing, "__dict__") else []
    )


def required_parameters(call: Callable[..., Any]) -> List[str]:
    """Return the parameters a call has to be given, in order; those that are given by name as `debug=`.

    Raises ValueError where it has no signature to read.
    """
    try:
        parameters = signature(call).parameters.values()
    except TypeError as error:
        raise ValueError(str(error)) from error
    kinds = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)
    needed = [
        parameter
        for parameter in parameters
        if parameter.kind in kinds and parameter.default is Parameter.empty
    ]
    if not needed and any(parameter.kind is Parameter.VAR_POSITIONAL for parameter in parameters):
        raise ValueError("it takes whatever it is given")
    return [
        parameter.name + ("=" if parameter.kind is Parameter.KEYWORD_ONLY else "") for parameter in needed
    ]


CLASSES = {
    ("aiohttp.web_app", "Application"): "aiohttp",
    ("tornado.web", "Application"): "tornado",
    ("robyn", "Robyn"): "robyn",
    ("sanic.app", "Sanic"): "asgi",
}
"""Of frameworks that bring their own server."""
FRAMEWORKS = {
    ("django.core.handlers.asgi", "ASGIHandler"): "django",
    ("django.core.handlers.wsgi", "WSGIHandler"): "django",
    ("fastapi.applications", "FastAPI"): "fastapi",
    ("flask.app", "Flask"): "flask",
    ("starlette.applications", "Starlette"): "starlette",
}
"""Of which an empty route can be served in the place of an app (`empty.py`); a class stands before those it extends."""
ALSO = {("sanic.app", "Sanic"): ("sanic",)}
"""Further interfaces that such an application has."""


@dataclass(frozen=True)
class Kind:
    """How a thing is served."""

    interface: str
    form: str
    """`application`, `factory`, `coroutine` (a factory that has to be awaited), `asgi2`, `django` or `servicer`."""
    described: str
    """What it is, for a sentence: `a Flask`, `a function`."""
    also: Tuple[str, ...] = ()
    """Further interfaces it can be called through."""
    adder: str = ""
    """Of a servicer: `module:function` that adds it to a server; the function itself where its user wrote it."""
    framework: str = ""
    """What an application is made with, by its class: `flask`; empty: that cannot be seen."""


AWAITED = ("asgi", "aiohttp")
"""Whose servers run a loop before they ask for the application, so that they can await what makes it."""


class UnfitError(Exception):
    """Raised when a thing can be served by nothing: `needs` are the arguments a factory would have to be given.

    `awaited`: it has to be awaited first, and what comes of that is nothing for servers that do.
    """

    def __init__(self, described: str, needs: List[str], awaited: bool = False) -> None:
        super().__init__(described)
        self.described, self.needs, self.awaited = described, needs, awaited


def kind_of(thing: Any, make: bool = True) -> Kind:
    """Return what a thing is; a factory is called once, and awaited, to see what it makes. Raises UnfitError.

    Also raises whatever the factory does.
    """
    kind = _kind_of(thing, make)
    return replace(kind, framework=kind.framework or framework_of(thing))


def framework_of(thing: Any) -> str:
    """Return the framework of an application, or nothing."""
    classes = ((cls.__module__, cls.__name__) for cls in type(thing).__mro__)
    return next((FRAMEWORKS[cls] for cls in classes if cls in FRAMEWORKS), "")


def _kind_of(thing: Any, make: bool) -> Kind:
    described = name_of(thing)
    for cls in type(thing).__mro__:
        found = CLASSES.get((cls.__module__, cls.__name__))
        if found:
            return Kind(found, "application", described, ALSO.get((cls.__module__, cls.__name__), ()))
    if isawaitable(thing):  # what `create_app('test')` gave
        return _await_factory(thing, described)
    where = adder(thing)
    if where is not None:
        over = "grpc_aio" if awaits(thing) else "grpc"
        return Kind(over, "servicer", "the gRPC servicer %s" % _class_of(thing).__name__, adder=where)
    if hasattr(thing, "__rsgi__") and not isclass(thing):
        return Kind("rsgi", "application", described)
    if not callable(thing):
        raise UnfitError(described, [])
    return _of_call(thing, described, make)


def _of_call(thing: Callable[..., Any], described: str, make: bool) -> Kind:
    try:
        needs = required_parameters(thing)
    except ValueError:
        raise UnfitError(described, []) from None
    if any(need.endswith("=") for need in needs) or _makes(thing, needs):
        raise UnfitError(described, needs)
    awaits = _awaits(thing)
    if len(needs) == 3 and (awaits or needs[0] == "scope"):
        return Kind("asgi", "application", described)
    if len(needs) == 2 and awaits:
        return Kind("rsgi", "application", described)
    if len(needs) == 2:
        return Kind("wsgi", "application", described)
    if len(needs) == 1 and not awaits and (needs[0] == "scope" or _is_asgi2_class(thing)):
        return Kind("asgi", "asgi2", described)
    if needs == ["server"]:
        return Kind("grpc_aio" if awaits else "grpc", "servicer", "%s that adds to a gRPC server" % described)
    if not needs and make:
        return _call_factory(thing, described)
    raise UnfitError(described, needs)


def _makes(thing: Any, needs: List[str]) -> bool:
    """Return whether a function is by its name a factory, though it takes two arguments as an application does."""
    name = getattr(thing, "__name__", "") if isfunction(thing) else ""
    environ = any("env" in need for need in needs)
    return len(needs) == 2 and not environ and name.partition("_")[0] in ("create", "make", "build", "get")


def _call_factory(factory: Callable[[], Any], described: str) -> Kind:
    """Return what a factory makes, as something that it makes."""
    made = factory()
    if isawaitable(made):
        return _await_factory(made, described)
    return _as_made(kind_of(made, make=False), described, "factory")


def _await_factory(made: Any, described: str) -> Kind:
    """Return what comes of waiting for it; the loop is left open, and what waits on it ends with the process."""

    async def wait() -> Any:
        return await made

    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)  # before Python 3.10 what is made may ask for it
    thing = loop.run_until_complete(wait())
    try:
        inner = kind_of(thing, make=False)
    except UnfitError as error:
        raise UnfitError("%s that makes %s" % (described, error.described), [], awaited=True) from None
    if inner.interface not in AWAITED:
        raise UnfitError("%s that makes %s" % (described, inner.described), [], awaited=True)
    return _as_made(inner, described, "coroutine")


def _as_made(inner: Kind, described: str, form: str) -> Kind:
    if inner.form == "asgi2":
        raise UnfitError("%s, which makes %s of ASGI 2" % (described, inner.described), [])
    return replace(inner, form=form, described="%s that makes %s" % (described, inner.described))


def is_factory(thing: Any) -> bool:
    """Return whether a thing is called without arguments, as no application is."""
    try:
        return callable(thing) and not required_parameters(thing)
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
        return len(required_parameters(thing.__call__)) == 3  # self counts
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
    return any(iscoroutinefunction(method) or isasyncgenfunction(method) for method in methods)


SETTINGS = "DJANGO_SETTINGS_MODULE"
MADE = {"wsgi": "velodrome.guest.apps.served:django_wsgi", "asgi": "velodrome.guest.apps.served:django_asgi"}
"""Where a site brings none of its own."""


def applications(path: str, settings: Any) -> Dict[str, str]:
    """Return `module:attribute` of the site's application for each interface it can be served through.

    Its own come first: those its settings name, then `wsgi.py` and `asgi.py` beside them. They are imported; what
    the WSGI application raises is the caller's, a site whose ASGI application does not import is a site without it.
    """
    os.environ[SETTINGS] = path
    served = {"wsgi": _application(path, settings, "wsgi")}
    load(served["wsgi"])
    try:
        import_module("django.core.asgi")  # since 3.0
        asgi = _application(path, settings, "asgi")
        load(asgi)
    except Exception:
        return served
    return {**served, "asgi": asgi}


def _application(path: str, settings: Any, interface: str) -> str:
    named = getattr(settings, interface.upper() + "_APPLICATION", None)
    if named:
        module, _, attribute = str(named).rpartition(".")
        return "%s:%s" % (module, attribute)
    package = path.rpartition(".")[0]
    # Settings are often a package: shop.settings.production.
    for above in (package, package.rpartition(".")[0]):
        if above and _has(above + "." + interface):
            return "%s.%s:application" % (above, interface)
    return MADE[interface]


def _has(module: str) -> bool:
    try:
        return hasattr(import_module(module), "application")
    except ModuleNotFoundError as error:
        if error.name == module:
            return False
        raise


def load(path: str) -> Any:
    """Return what `module:attribute` names."""
    module, _, attribute = path.partition(":")
    return getattr(import_module(module), attribute)
