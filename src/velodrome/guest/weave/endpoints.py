"""The endpoint coroutine that Starlette and FastAPI share; they differ in how they come to call it."""

from __future__ import annotations

from typing import Any

from velodrome.guest.recipe import Recipe, filler
from velodrome.guest.weave.compiled import compiled
from velodrome.guest.weave.steps import Idiom, Lines, Weave, indented


def refuse(status: int) -> Lines:
    """Return the line that answers `status` with an empty body."""
    return ["return Response(status_code=%d)" % status]


def endpoint(recipe: Recipe, upstream: str, idiom: Idiom, parameter: str, title: str) -> Any:
    """Return a coroutine function from request to response. Needs Starlette installed.

    `parameter` is how the function writes its parameter: FastAPI reads the annotation.
    """
    from starlette.requests import Request
    from starlette.responses import HTMLResponse, Response, StreamingResponse

    weave = Weave(recipe, upstream, idiom, refuse, ("body = await request.body()",))
    weave.names.update(Request=Request, Response=Response)
    weave.names.update(HTMLResponse=HTMLResponse, StreamingResponse=StreamingResponse)
    if weave.streams:
        before, end = weave.pieces(), "return StreamingResponse(pieces(), media_type='text/html')"
    else:
        before, end = [], "return HTMLResponse(BODY)"
        weave.names["BODY"] = filler(weave.size)
    lines = [*before, "async def endpoint(%s):" % parameter, *indented([*weave.lines, end])]
    return compiled("endpoint", lines, weave.names, title)
