"""The generated part of handlers on a bare connection: `respond(connection, body, closing)`.

`connection` is a socket, an asyncio `StreamWriter`, or what generators, greenlets and events have for one;
`body` is the request's, read whole; with `closing` the answer says that the connection ends behind it.
"""

from __future__ import annotations

from typing import Any, Callable

from velodrome.guest.recipe import Recipe
from velodrome.guest.weave.compiled import compiled
from velodrome.guest.weave.steps import BAD_GATEWAY, BAD_REQUEST, SERVER_ERROR, Idiom, Lines, Weave, indented
from velodrome.guest.weave.wire import answers, head, refusal


def responder(recipe: Recipe, upstream: str, idiom: Idiom, title: str) -> Any:
    """Return `respond` for a recipe, a coroutine function if the idiom awaits, a generator if it delegates."""
    awaits = idiom.wait == "await "

    def send(data: str) -> Lines:
        if awaits:
            return ["connection.write(%s)" % data, "await connection.drain()"]
        return ["%s(%s)" % ("yield from connection.send" if idiom.wait else "connection.sendall", data)]

    def refuse(status: int) -> Lines:
        return [*send("CLOSING_%d if closing else KEPT_%d" % (status, status)), "return"]

    weave = Weave(recipe, upstream, idiom, refuse)  # the body is read whoever wants it: no lines for that
    for status in (BAD_REQUEST, SERVER_ERROR, BAD_GATEWAY):
        weave.names["KEPT_%d" % status] = refusal(status, False)
        weave.names["CLOSING_%d" % status] = refusal(status, True)
    if weave.streams:
        end = _streamed(weave, send)
    else:
        weave.names["KEPT"], weave.names["CLOSING"] = answers(recipe)
        end = send("CLOSING if closing else KEPT")
    define = "async def" if awaits else "def"
    lines = ["%s respond(connection, body, closing):" % define, *indented([*weave.lines, *end])]
    return compiled("respond", lines, weave.names, "%s %s" % (title, recipe.name))


def _streamed(weave: Weave, send: Callable[[str], Lines]) -> Lines:
    """Return the lines of a stream: chunked where the connection is kept, else ended by its close."""
    plain = weave.over_time(send("CHUNK"))
    chunked = weave.over_time(send("FRAMED"))
    chunk = weave.names["CHUNK"]
    weave.names["FRAMED"] = (
        b"%x\r\n%s\r\n" % (len(chunk), chunk) if chunk else b""
    )  # an empty chunk would end it
    weave.names["CLOSING_HEAD"] = head(200, b"", True)
    weave.names["KEPT_HEAD"] = head(200, b"Transfer-Encoding: chunked\r\n", False)
    return [
        "if closing:",
        *indented([*send("CLOSING_HEAD"), *plain]),
        "else:",
        *indented([*send("KEPT_HEAD"), *chunked, *send("b'0\\r\\n\\r\\n'")]),
    ]
