"""aiohttp.web: a handler coroutine, called by aiohttp's own server."""

from __future__ import annotations

from typing import Any, List, Optional

from velodrome.guest.interface import AIOHTTP, Interface, lazily
from velodrome.guest.recipe import Recipe, filler, served_here
from velodrome.guest.weave.compiled import compiled
from velodrome.guest.weave.idioms import Awaiting
from velodrome.guest.weave.steps import CONTENT_TYPE, Lines, Weave, indented

interface = Interface("aiohttp", "an aiohttp.web handler, which awaits", requires=(AIOHTTP,))

LONGEST_UPLOAD = 1 << 30
"""Bytes; aiohttp's own limit, 1 MiB, would refuse recipes that other servers take."""


def refuse(status: int) -> Lines:
    """Return the line that answers `status` with an empty body."""
    return ["return Response(status=%d)" % status]


def build(recipe: Recipe, upstream: str) -> Any:
    """Return the aiohttp.web application of a recipe. Needs aiohttp installed."""
    from aiohttp.web import Application, Response, StreamResponse

    weave = Weave(recipe, upstream, Awaiting(), refuse, ("body = await request.read()",))
    weave.names.update(Response=Response, StreamResponse=StreamResponse)
    headers = {"Content-Type": CONTENT_TYPE}
    if weave.streams:
        end = ["response = StreamResponse(headers=%r)" % headers, "await response.prepare(request)"]
        end += weave.over_time(["await response.write(CHUNK)"])
        end += ["await response.write_eof()", "return response"]
    else:
        end = ["return Response(body=BODY, headers=%r)" % headers]
        weave.names["BODY"] = filler(weave.size)
    lines = ["async def endpoint(request):", *indented([*weave.lines, *end])]
    app = Application(client_max_size=LONGEST_UPLOAD)
    app.router.add_route(
        recipe.method, "/", compiled("endpoint", lines, weave.names, "aiohttp " + recipe.name)
    )
    return app


def make_app(argv: Optional[List[str]] = None) -> Any:
    """Return the application of the recipe this process serves; `python -m aiohttp.web` passes arguments."""
    return build(*served_here())


__getattr__ = lazily(make_app, globals())
