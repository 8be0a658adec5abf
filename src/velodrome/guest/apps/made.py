"""The application that a user's factory makes, or one of ASGI 2 as one of ASGI 3: made when a server asks for it.

    VELODROME_APP=shop:create_app VELODROME_APP_FORM=factory python -m gunicorn velodrome.guest.apps.made:app

So every server can serve it, whether or not it has a switch for factories.
"""

from __future__ import annotations

import os
from typing import Any, Awaitable, Callable

from velodrome.guest.apps.finding import found
from velodrome.guest.interface import lazily

APP_VARIABLE = "VELODROME_APP"
"""What the user named, as `finding.found` takes it."""
FORM_VARIABLE = "VELODROME_APP_FORM"
"""What it is: see `kind.Kind.form`."""


def make_app() -> Any:
    """Return what is served in this process; of a `coroutine` factory what is to be awaited."""
    _, thing, called = found(os.environ[APP_VARIABLE])
    form = os.environ[FORM_VARIABLE]
    if form == "asgi2":
        return as_asgi3(thing)
    return thing if called or form == "application" else thing()


def as_asgi3(app: Callable[[Any], Callable[[Any, Any], Awaitable[None]]]) -> Any:
    """Return an application of ASGI 2, which is called twice, as one of ASGI 3."""

    async def once(scope: Any, receive: Any, send: Any) -> None:
        # ASGI 2 knows no life of the process; servers take the refusal as an app without one.
        if scope["type"] == "lifespan":
            raise RuntimeError("applications of ASGI 2 have no lifespan")
        await app(scope)(receive, send)

    return once


__getattr__ = lazily(make_app, globals())
