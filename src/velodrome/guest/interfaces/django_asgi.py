"""Django: an async view over ASGI."""

from __future__ import annotations

from typing import Any

from velodrome.guest.codegen.idioms import Awaiting
from velodrome.guest.interface import AIOHTTP, Interface, lazily
from velodrome.guest.interfaces.django_wsgi import set_up_site
from velodrome.guest.recipe import Recipe, served_here

interface = Interface(
    "django_asgi",
    "a Django async view, called through ASGI, which awaits",
    requires=("django==5.2.19", AIOHTTP),
    awaits=True,
)


def build(recipe: Recipe, upstream: str) -> Any:
    """Return the Django site of a recipe, an ASGI application. Needs Django installed.

    A process can have one only: Django's settings are global.
    """
    from django.core.asgi import get_asgi_application

    set_up_site(recipe, upstream, Awaiting(), "django_asgi " + recipe.name)
    return get_asgi_application()


def make_app() -> Any:
    """Return the application of the recipe this process serves."""
    return build(*served_here())


__getattr__ = lazily(globals())
