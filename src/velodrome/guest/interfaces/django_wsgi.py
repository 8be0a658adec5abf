"""Django: a view function over WSGI, on the thread, process or greenlet of its request."""

from __future__ import annotations

from typing import Any

from velodrome.guest.interface import URLLIB3, Interface, lazily
from velodrome.guest.recipe import Recipe, served_here
from velodrome.guest.weave.django_views import set_up_site
from velodrome.guest.weave.idioms import Blocking

interface = Interface(
    "django_wsgi", "a Django view, called through WSGI, which may block", requires=("django==5.2.19", URLLIB3)
)


def build(recipe: Recipe, upstream: str) -> Any:
    """Return the Django site of a recipe, a WSGI application. Needs Django installed.

    A process can have one only: Django's settings are global.
    """
    from django.core.wsgi import get_wsgi_application

    set_up_site(recipe, upstream, Blocking(), "django_wsgi " + recipe.name)
    return get_wsgi_application()


def make_app() -> Any:
    """Return the application of the recipe this process serves."""
    return build(*served_here())


__getattr__ = lazily(make_app, globals())
