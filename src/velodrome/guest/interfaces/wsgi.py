"""WSGI (PEP 3333): a function called once per request, on the thread, process or greenlet of that request."""

from __future__ import annotations

from typing import Any

from velodrome.guest.codegen.idioms import Blocking
from velodrome.guest.codegen.steps import CONTENT_TYPE, REASONS, HandlerCode, Lines, compile_lines, indent
from velodrome.guest.interface import URLLIB3, Interface, lazily
from velodrome.guest.recipe import Recipe, filler, served_here

interface = Interface(
    "wsgi", "a function called once per request, which may block", requires=(URLLIB3,), apps=True
)

READ_BODY = (
    'length = environ.get("CONTENT_LENGTH")',
    'ended = length or environ.get("wsgi.input_terminated")',  # else read() would wait for more for ever
    'body = environ["wsgi.input"].read(int(length) if length else -1) if ended else b""',
)


def refuse(status: int) -> Lines:
    """Return the lines that answer `status` with an empty body."""
    return [
        "start_response(%r, [('Content-Length', '0')])" % ("%d %s" % (status, REASONS[status])),
        "return ()",
    ]


def build(recipe: Recipe, upstream: str) -> Any:
    """Return the WSGI application of a recipe."""
    code = HandlerCode(recipe, upstream, Blocking(), refuse, READ_BODY)
    # A new list for every answer: PEP 3333 lets the server change it.
    if code.streams:
        before = code.pieces()
        end = ["start_response('200 OK', [('Content-Type', %r)])" % CONTENT_TYPE, "return pieces()"]
    else:
        before = []
        code.names["BODY"] = filler(code.size)
        headers = [("Content-Type", CONTENT_TYPE), ("Content-Length", str(code.size))]
        end = ["start_response('200 OK', %r)" % headers, "return (BODY,)"]
    lines = [*before, "def app(environ, start_response):", *indent([*code.lines, *end])]
    return compile_lines("app", lines, code.names, "wsgi " + recipe.name)


def make_app() -> Any:
    """Return the application of the recipe this process serves."""
    return build(*served_here())


__getattr__ = lazily(globals())
