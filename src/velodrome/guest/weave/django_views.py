"""Django views, plain or async, and the site of one page around them.

The site has no middleware, no database and no sessions: what is compared is servers under one thin view,
and what a site adds to it is the same under all of them.
"""

from __future__ import annotations

from typing import Any

from velodrome.guest.recipe import Recipe, filler
from velodrome.guest.weave.compiled import compiled
from velodrome.guest.weave.steps import CONTENT_TYPE, Idiom, Lines, Weave, indented


def refuse(status: int) -> Lines:
    """Return the line that answers `status` with an empty body."""
    return ["return HttpResponse(status=%d, headers={'Content-Length': '0'})" % status]


def set_up_site(recipe: Recipe, upstream: str, idiom: Idiom, title: str) -> None:
    """Configure Django, once per process, as a site whose one page is the recipe. Needs Django installed."""
    from django.conf import settings
    from django.http import HttpResponse, StreamingHttpResponse
    from django.urls import path

    weave = Weave(recipe, upstream, idiom, refuse, ("body = request.body",))
    weave.names.update(HttpResponse=HttpResponse, StreamingHttpResponse=StreamingHttpResponse)
    headers = {"Content-Type": CONTENT_TYPE}
    if weave.streams:
        before, end = weave.pieces(), "return StreamingHttpResponse(pieces(), headers=%r)" % headers
    else:
        # A site has this from CommonMiddleware; without a length some servers close the connection.
        headers["Content-Length"] = str(weave.size)
        before, end = [], "return HttpResponse(BODY, headers=%r)" % headers
        weave.names["BODY"] = filler(weave.size)
    define = "async def" if idiom.wait else "def"
    lines = [*before, "%s view(request):" % define, *indented([*weave.lines, end])]
    view: Any = compiled("view", lines, weave.names, title)
    settings.configure(
        DEBUG=False,
        ALLOWED_HOSTS=["*"],
        SECRET_KEY="signs nothing: the site has no sessions and no forms",  # noqa: S106
        ROOT_URLCONF=(path("", view),),
        DATA_UPLOAD_MAX_MEMORY_SIZE=None,
    )
