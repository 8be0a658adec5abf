"""The application that a user's factory makes, or one of ASGI 2 as one of ASGI 3: made when a server asks for it.

A factory that has to be awaited is, over ASGI, awaited on the server's own loop, when it calls for the first time.

    VELODROME_APP=shop:create_app VELODROME_APP_FORM=factory python -m gunicorn velodrome.guest.apps.made:app

So every server can serve it, whether or not it has a switch for factories.
"""

from __future__ import annotations

import asyncio
import os
from typing import Any, Awaitable, Callable, List

from velodrome.guest.apps.finding import found
from velodrome.guest.interface import lazily

APP_VARIABLE = "VELODROME_APP"
"""What the user named, as `finding.found` takes it."""
FORM_VARIABLE = "VELODROME_APP_FORM"
"""What it is: see `kind.Kind.form`; or AWAITED."""
AWAITED = "awaited"
"""A `coroutine` factory that is served over ASGI."""


def make_app() -> Any:
    """Return what is served in this process; of a `coroutine` factory what is to be awaited, which aiohttp does."""
    _, thing, called = found(os.environ[APP_VARIABLE])
    form = os.environ[FORM_VARIABLE]
    if form == "asgi2":
        return as_asgi3(thing)
    made = thing if called or form == "application" else thing()
    return as_awaiting(made) if form == AWAITED else made


def as_asgi3(app: Callable[[Any], Callable[[Any, Any], Awaitable[None]]]) -> Any:
    """Return an application of ASGI 2, which is called twice, as one of ASGI 3."""

    async def once(scope: Any, receive: Any, send: Any) -> None:
        # ASGI 2 knows no life of the process; servers take the refusal as an app without one.
        if scope["type"] == "lifespan":
            raise RuntimeError("applications of ASGI 2 have no lifespan")
        await app(scope)(receive, send)

    return once


def as_awaiting(coming: Awaitable[Any]) -> Any:
    """Return an application that awaits another one, once, before it calls it."""
    waiting: List[Any] = []

    async def later(scope: Any, receive: Any, send: Any) -> None:
        if not waiting:
            waiting.append(asyncio.ensure_future(coming))
        # Shielded, as a client that goes meanwhile must not take the others' application with it.
        app = await asyncio.shield(waiting[0])
        await app(scope, receive, send)

    return later


__getattr__ = lazily(make_app, globals())
