"""A Django site, told by its settings module: which applications it has, or can be given."""

from __future__ import annotations

import os
from importlib import import_module
from typing import Any, Dict

SETTINGS = "DJANGO_SETTINGS_MODULE"
MADE = {"wsgi": "velodrome.guest.apps.django_wsgi:app", "asgi": "velodrome.guest.apps.django_asgi:app"}
"""Where a site brings none of its own."""


def applications(path: str, settings: Any) -> Dict[str, str]:
    """Return `module:attribute` of the site's application for each interface it can be served through.

    Its own come first: those its settings name, then `wsgi.py` and `asgi.py` beside them. They are imported; what
    the WSGI one raises is the caller's, a site whose ASGI one does not import is one without.
    """
    os.environ[SETTINGS] = path
    found = {"wsgi": _application(path, settings, "wsgi")}
    load(found["wsgi"])
    try:
        import_module("django.core.asgi")  # since 3.0
        asgi = _application(path, settings, "asgi")
        load(asgi)
    except Exception:
        return found
    return {**found, "asgi": asgi}


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
