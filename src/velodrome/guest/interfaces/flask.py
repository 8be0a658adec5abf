"""Flask: a view function over WSGI, on the thread, process or greenlet of its request."""

from __future__ import annotations

from typing import Any

from velodrome.guest.interface import URLLIB3, Interface, lazily
from velodrome.guest.recipe import Recipe, filler, served_here
from velodrome.guest.weave.compiled import compiled
from velodrome.guest.weave.idioms import Blocking
from velodrome.guest.weave.steps import CONTENT_TYPE, Lines, Weave, indented

interface = Interface(
    "flask", "a Flask view, called through WSGI, which may block", requires=("flask==3.1.3", URLLIB3)
)


def refuse(status: int) -> Lines:
    """Return the line that answers `status` with an empty body."""
    return ["return Response(status=%d)" % status]


def build(recipe: Recipe, upstream: str) -> Any:
    """Return the Flask application of a recipe, a WSGI application. Needs Flask installed."""
    from flask import Flask, Response, request

    weave = Weave(recipe, upstream, Blocking(), refuse, ("body = request.get_data()",))
    weave.names.update(Response=Response, request=request)
    if weave.streams:
        before, answer = weave.pieces(), "pieces()"
    else:
        before, answer = [], "BODY"
        weave.names["BODY"] = filler(weave.size)
    end = "return Response(%s, content_type=%r)" % (answer, CONTENT_TYPE)
    lines = [*before, "def view():", *indented([*weave.lines, end])]
    app = Flask(__name__, static_folder=None)
    app.add_url_rule(
        "/", "view", compiled("view", lines, weave.names, "flask " + recipe.name), methods=[recipe.method]
    )
    return app


def make_app() -> Any:
    """Return the application of the recipe this process serves."""
    return build(*served_here())


__getattr__ = lazily(make_app, globals())
