"""The WSGI application of a Django site that has no `wsgi.py`; its settings are named in the environment."""

from __future__ import annotations

from typing import Any

from velodrome.guest.interface import lazily


def make_app() -> Any:
    """Return the application. Needs Django installed."""
    from django.core.wsgi import get_wsgi_application

    return get_wsgi_application()


__getattr__ = lazily(make_app, globals())
