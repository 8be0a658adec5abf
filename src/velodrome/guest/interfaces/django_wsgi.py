"""Django: a view function over WSGI, on the thread, process or greenlet of its request."""

from __future__ import annotations

from typing import Any

from velodrome.guest.codegen.idioms import Blocking
from velodrome.guest.codegen.steps import CONTENT_TYPE, HandlerCode, Idiom, Lines, compile_lines, indent
from velodrome.guest.interface import URLLIB3, Interface, lazily
from velodrome.guest.recipe import Recipe, filler, served_here


def refuse(status: int) -> Lines:
    """Return the line that answers `status` with an empty body."""
    return ["return HttpResponse(status=%d, headers={'Content-Length': '0'})" % status]


def set_up_site(recipe: Recipe, upstream: str, idiom: Idiom, title: str) -> None:
    """Configure Django, once per process, as a site whose one page is the recipe. Needs Django installed."""
    from django.conf import settings
    from django.http import HttpResponse, StreamingHttpResponse
    from django.urls import path

    code = HandlerCode(recipe, upstream, idiom, refuse, ("body = request.body",))
    code.names.update(HttpResponse=HttpResponse, StreamingHttpResponse=StreamingHttpResponse)
    headers = {"Content-Type": CONTENT_TYPE}
    if code.streams:
        before, end = code.pieces(), "return StreamingHttpResponse(pieces(), headers=%r)" % headers
    else:
        # A site has this from CommonMiddleware; without a length some servers close the connection.
        headers["Content-Length"] = str(code.size)
        before, end = [], "return HttpResponse(BODY, headers=%r)" % headers
        code.names["BODY"] = filler(code.size)
    define = "async def" if idiom.wait else "def"
    lines = [*before, "%s view(request):" % define, *indent([*code.lines, end])]
    view: Any = compile_lines("view", lines, code.names, title)
    settings.configure(
        DEBUG=False,
        ALLOWED_HOSTS=["*"],
        SECRET_KEY="signs nothing: the site has no sessions and no forms",  # noqa: S106
        ROOT_URLCONF=(path("", view),),
        DATA_UPLOAD_MAX_MEMORY_SIZE=None,
    )


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


__getattr__ = lazily(globals())
