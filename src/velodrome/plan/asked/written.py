"""Requests as the text of a file of requests (`file.py` reads it again, and gives the same).

# 1,204 requests in 600 s: 2 a second on average, 31 in the second that has most
[[request]]
name = "GET /items/*"
weight = 812
path = "/items/{{random 1..500}}"
"""

import json
import re
from collections.abc import Iterator, Sequence

from velodrome.model.app import Request

_BARE = re.compile(r"[A-Za-z0-9_-]+")
_LITERAL = re.compile(r"[^'\x00-\x08\x0a-\x1f\x7f]*")


def text(requests: Sequence[Request], told: Sequence[str] = ()) -> str:
    """Return a file, with sentences before it as comments. Bodies have to be text."""
    head = "".join(f"# {_one_line(sentence)}\n" for sentence in told)
    return "\n".join([*([head] if head else []), *("\n".join(_lines(one)) + "\n" for one in requests)])


def _lines(request: Request) -> Iterator[str]:
    yield "[[request]]"
    yield f"name = {_string(request.name)}"
    if request.weight != 1:
        yield f"weight = {request.weight:.17g}"
    if request.method != "GET":
        yield f"method = {_string(request.method)}"
    yield f"path = {_string(request.path)}"
    if request.headers:
        pairs = ", ".join(f"{_key(name)} = {_string(value)}" for name, value in request.headers)
        yield f"headers = {{ {pairs} }}"
    if request.body is not None:
        yield f"body = {_string(request.body.text)}"
    if request.expect_status is not None:
        yield f"expect-status = {request.expect_status}"
    if request.expect_body is not None:
        yield f"expect-body = {_string(request.expect_body.text)}"
    if request.expect_contains is not None:
        yield f"expect-contains = {_string(request.expect_contains)}"


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else _string(name)


def _string(value: str) -> str:
    """Return a string of TOML: as it stands in single quotes where it has double ones in it, else escaped."""
    if '"' in value and _LITERAL.fullmatch(value):
        return f"'{value}'"
    # JSON escapes what TOML wants escaped, but for the one control character above the blank.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _one_line(sentence: str) -> str:
    return " ".join(re.sub(r"[\x00-\x1f\x7f]", " ", sentence).split())
