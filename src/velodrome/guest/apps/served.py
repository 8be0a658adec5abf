"""What a server loads where it cannot load a user's app by itself; made when the server first reads it.

`app` is what a factory makes, or an application of ASGI 2 as an application of ASGI 3. A factory that has to be awaited
is, over ASGI, awaited on the server's own loop, when it calls for the first time. `django_wsgi` and `django_asgi` are
the applications of a Django site without `wsgi.py` or `asgi.py`; its settings are named in the environment. `servicer`
is a function that adds a gRPC servicer to a `grpc.Server` or `grpc.aio.Server`.

    VELODROME_APP=shop:create_app VELODROME_APP_FORM=factory python -m gunicorn velodrome.guest.apps.served:app

So every server can serve it, whether or not it has a switch for factories.
"""

from __future__ import annotations

import asyncio
import os
import sys
from inspect import isclass
from typing import Any, Awaitable, Callable, List

from velodrome.guest.apps.finding import adder, find
from velodrome.guest.interface import lazily

APP_VARIABLE = "VELODROME_APP"
"""What the user named, as `finding.find` takes it."""
FORM_VARIABLE = "VELODROME_APP_FORM"
"""What it is: see `finding.Kind.form`; or AWAITED."""
AWAITED = "awaited"
"""A `coroutine` factory that is served over ASGI."""


def make_app() -> Any:
    """Return what is served in this process; of a `coroutine` factory what is to be awaited, which aiohttp does."""
    _, thing, called = find(os.environ[APP_VARIABLE])
    form = os.environ[FORM_VARIABLE]
    if form == "asgi2":
        return as_asgi3(thing)
    made = thing if called or form == "application" else thing()
    return as_awaiting(made) if form == AWAITED else made


def as_asgi3(app: Callable[[Any], Callable[[Any, Any], Awaitable[None]]]) -> Any:
    """Return an application of ASGI 2, which is called twice, as an application of ASGI 3."""

    async def once(scope: Any, receive: Any, send: Any) -> None:
        # ASGI 2 knows no life of the process; servers take the refusal as an app without lifespan.
        if scope["type"] == "lifespan":
            raise RuntimeError("applications of ASGI 2 have no lifespan")
        await app(scope)(receive, send)

    return once


def as_awaiting(coming: Awaitable[Any]) -> Any:
    """Return an application that awaits another, once, before it calls it."""
    waiting: List[Any] = []

    async def later(scope: Any, receive: Any, send: Any) -> None:
        if not waiting:
            waiting.append(asyncio.ensure_future(coming))
        # Shielded, as a client that goes meanwhile must not take the others' application with it.
        app = await asyncio.shield(waiting[0])
        await app(scope, receive, send)

    return later


def make_django_wsgi() -> Any:
    """Return the application. Needs Django installed."""
    from django.core.wsgi import get_wsgi_application

    return get_wsgi_application()


def make_django_asgi() -> Any:
    """Return the application. Needs Django 3.0 or newer installed."""
    from django.core.asgi import get_asgi_application

    return get_asgi_application()


def make_servicer() -> Callable[[Any], Any]:
    """Return what adds the servicer to a server."""
    _, thing, _ = find(os.environ[APP_VARIABLE])
    where = adder(thing)
    if where is None:  # a function that adds, written by the user
        add: Callable[[Any], Any] = thing
        return add
    module, _, name = where.partition(":")
    servicer = thing() if isclass(thing) else thing
    return lambda server: getattr(sys.modules[module], name)(servicer, server)


__getattr__ = lazily(globals())
