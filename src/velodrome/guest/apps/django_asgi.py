"""The ASGI application of a Django site that has no `asgi.py`; its settings are named in the environment."""

from __future__ import annotations

from typing import Any

from velodrome.guest.interface import lazily


def make_app() -> Any:
    """Return the application. Needs Django 3.0 or newer installed."""
    from django.core.asgi import get_asgi_application

    return get_asgi_application()


__getattr__ = lazily(make_app, globals())
