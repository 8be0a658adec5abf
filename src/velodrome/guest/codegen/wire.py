"""HTTP/1.1 for interfaces that are given a bare connection: heads of answers, what a request's head says, handlers.

    HTTP/1.1 200 OK
    Content-Length: 26
    Connection: close           or   Server: velodrome

The two last lines are equally long: an answer is as long on a connection that is kept as on one that is
closed, so «84 bytes on the wire» holds for both, whichever a stack does.
"""

from __future__ import annotations

from typing import Any, Callable, Tuple

from velodrome.guest.codegen.steps import (
    BAD_GATEWAY,
    BAD_REQUEST,
    SERVER_ERROR,
    HandlerCode,
    Idiom,
    Lines,
    compile_lines,
    indent,
)
from velodrome.guest.recipe import Body, Recipe, filler

BLANK_LINE = b"\r\n\r\n"
LONGEST_HEAD = 64 * 1024
LONGEST_BODY = 1 << 30

LINGER_S = 1.0
"""Seconds for which a refused client may go on sending what nobody reads."""

CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"

KEPT, CLOSED = b"Server: velodrome\r\n", b"Connection: close\r\n"

REASONS = {
    200: b"OK",
    400: b"Bad Request",
    405: b"Method Not Allowed",
    411: b"Length Required",
    413: b"Content Too Large",
    431: b"Request Header Fields Too Large",
    500: b"Internal Server Error",
    502: b"Bad Gateway",
}


def head(status: int, framing: bytes, closing: bool) -> bytes:
    """Return the head of an answer; `framing` is the line that tells where its body ends, if any line does."""
    last = CLOSED if closing else KEPT
    return b"HTTP/1.1 %d %s\r\n%s%s\r\n" % (status, REASONS[status], framing, last)


def content_length_line(length: int, width: int = 1) -> bytes:
    """Return the Content-Length line; `width` pads the number with blanks, which HTTP allows before it."""
    return b"Content-Length: %*d\r\n" % (width, length)


def split_size(size: int) -> Tuple[int, int]:
    """Split `size` bytes on the wire into body and digits of its length; ValueError if the head is longer.

    The head's length depends on the digits of the body's; where no number of digits comes out even
    (a body of 99 would make one byte less, a body of 100 one more), a blank more does.
    """
    bare = len(head(200, content_length_line(0), False)) - 1
    for digits in range(1, 20):
        body = size - bare - digits
        if body < 0:
            break
        if len(str(body)) <= digits:
            return body, digits
    raise ValueError("body: %d bytes on the wire; the head alone takes %d" % (size, bare + 1))


def head_bytes(size: int) -> int:
    """Return how many of `size` bytes on the wire are head (`Interface.head_bytes`)."""
    return size - split_size(size)[0]


def answers(recipe: Recipe) -> Tuple[bytes, bytes]:
    """Return the whole right answer, twice: for a connection that is kept, and for one that closes."""
    last = recipe.steps[-1]
    if not isinstance(last, Body):
        raise TypeError("recipe %r does not end in a body" % recipe.name)
    body, width = split_size(last.size) if last.on_wire else (last.size, 1)
    kept, closing = (
        head(200, content_length_line(body, width), close) + filler(body) for close in (False, True)
    )
    return kept, closing


def refusal(status: int, closing: bool) -> bytes:
    """Return a whole answer of that status with an empty body."""
    return head(status, content_length_line(0), closing)


def parse_head(request_head: bytes, method: bytes) -> Tuple[int, bool, bool, int]:
    """Return what a request's head says: length of the body, whether to close, whether it waits for a 100.

    Last comes the status to refuse it with, 0 for none: a refused request's body is not read, so the
    connection has to be closed. `method` is that which is served, with the blank behind it.
    """
    if not request_head.startswith(method):
        return 0, True, False, 405
    lowered = request_head.lower()
    closing = lowered.partition(b"\r\n")[0].endswith(b" http/1.0")
    if b"\r\nconnection:" in lowered:
        closing = closing or b"close" in field(lowered, b"\r\nconnection:")
    if b"\r\ntransfer-encoding:" in lowered:
        return 0, True, False, 411
    if b"\r\ncontent-length:" not in lowered:
        return 0, closing, False, 0
    length = field(lowered, b"\r\ncontent-length:")
    if not length.isdigit():
        return 0, True, False, 400
    if int(length) > LONGEST_BODY:
        return 0, True, False, 413
    return int(length), closing, b"100-continue" in field(lowered, b"\r\nexpect:"), 0


def field(lowered: bytes, name: bytes) -> bytes:
    """Return the value of a header field, empty if there is none; `name` is `CRLF name colon`, lower case."""
    at = lowered.find(name)
    if at < 0:
        return b""
    at += len(name)
    end = lowered.find(b"\r\n", at)
    return (lowered[at:] if end < 0 else lowered[at:end]).strip()


def responder(recipe: Recipe, upstream: str, idiom: Idiom, title: str) -> Any:
    """Return `respond` for a recipe, a coroutine function if the idiom awaits, a generator if it delegates.

    `respond(connection, body, closing)`: the connection is a socket, an asyncio `StreamWriter`, or what generators,
    greenlets and events have for a lock; `body` is the request's, read whole; with `closing` the answer says that the
    connection ends behind it.
    """
    awaits = idiom.wait == "await "

    def send(data: str) -> Lines:
        if awaits:
            return ["connection.write(%s)" % data, "await connection.drain()"]
        return ["%s(%s)" % ("yield from connection.send" if idiom.wait else "connection.sendall", data)]

    def refuse(status: int) -> Lines:
        return [*send("CLOSING_%d if closing else KEPT_%d" % (status, status)), "return"]

    code = HandlerCode(
        recipe, upstream, idiom, refuse
    )  # the body is read whoever wants it: no lines for that
    for status in (BAD_REQUEST, SERVER_ERROR, BAD_GATEWAY):
        code.names["KEPT_%d" % status] = refusal(status, False)
        code.names["CLOSING_%d" % status] = refusal(status, True)
    if code.streams:
        end = _stream_lines(code, send)
    else:
        code.names["KEPT"], code.names["CLOSING"] = answers(recipe)
        end = send("CLOSING if closing else KEPT")
    define = "async def" if awaits else "def"
    lines = ["%s respond(connection, body, closing):" % define, *indent([*code.lines, *end])]
    return compile_lines("respond", lines, code.names, "%s %s" % (title, recipe.name))


def _stream_lines(code: HandlerCode, send: Callable[[str], Lines]) -> Lines:
    """Return the lines of a stream: chunked where the connection is kept, else ended by its close."""
    plain = code.over_time(send("CHUNK"))
    chunked = code.over_time(send("FRAMED"))
    chunk = code.names["CHUNK"]
    code.names["FRAMED"] = (
        b"%x\r\n%s\r\n" % (len(chunk), chunk) if chunk else b""
    )  # an empty chunk would end it
    code.names["CLOSING_HEAD"] = head(200, b"", True)
    code.names["KEPT_HEAD"] = head(200, b"Transfer-Encoding: chunked\r\n", False)
    return [
        "if closing:",
        *indent([*send("CLOSING_HEAD"), *plain]),
        "else:",
        *indent([*send("KEPT_HEAD"), *chunked, *send("b'0\\r\\n\\r\\n'")]),
    ]
