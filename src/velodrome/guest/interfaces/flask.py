"""Flask: a view function over WSGI, on the thread, process or greenlet of its request."""

from __future__ import annotations

from typing import Any

from velodrome.guest.codegen.idioms import Blocking
from velodrome.guest.codegen.steps import CONTENT_TYPE, HandlerCode, Lines, compile_lines, indent
from velodrome.guest.interface import URLLIB3, Interface, lazily
from velodrome.guest.recipe import Recipe, filler, served_here

interface = Interface(
    "flask", "a Flask view, called through WSGI, which may block", requires=("flask==3.1.3", URLLIB3)
)


def refuse(status: int) -> Lines:
    """Return the line that answers `status` with an empty body."""
    return ["return Response(status=%d)" % status]


def build(recipe: Recipe, upstream: str) -> Any:
    """Return the Flask application of a recipe, a WSGI application. Needs Flask installed."""
    from flask import Flask, Response, request

    code = HandlerCode(recipe, upstream, Blocking(), refuse, ("body = request.get_data()",))
    code.names.update(Response=Response, request=request)
    if code.streams:
        before, answer = code.pieces(), "pieces()"
    else:
        before, answer = [], "BODY"
        code.names["BODY"] = filler(code.size)
    end = "return Response(%s, content_type=%r)" % (answer, CONTENT_TYPE)
    lines = [*before, "def view():", *indent([*code.lines, end])]
    app = Flask(__name__, static_folder=None)
    app.add_url_rule(
        "/", "view", compile_lines("view", lines, code.names, "flask " + recipe.name), methods=[recipe.method]
    )
    return app


def make_app() -> Any:
    """Return the application of the recipe this process serves."""
    return build(*served_here())


__getattr__ = lazily(globals())
