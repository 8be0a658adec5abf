"""A request as people type it: `GET /cart?id=7`, `/cart`, `POST /orders {"id": "{{uuid}}"} -> 201`.

    read('POST /orders {"id": 1} -> 201')
        -> Request('POST /orders', '/orders', 'POST', headers=(('Content-Type', 'application/json'),),
                   body=Content('{"id": 1}'), expect_status=201)

The method may be left out (GET). What stands behind the path is the body, or after `@` the file it is in. Behind an
arrow stands the status of a right answer; without one any 2xx is right.
"""

import re
from pathlib import Path

from velodrome.model.app import Content, Request
from velodrome.model.errors import RequestLineError
from velodrome.plan.asked import faults, file_or_text, methods

_METHOD = re.compile(r"([A-Za-z]+)(?:\s+|$)")
_PATH = re.compile(r"(?:\{\{[^{}]*\}\}|\S)*")
"""Places have blanks in them: `/items/{{random 1..500}}`."""
_ARROW = re.compile(r"\s*->\s*(\S*)\s*$")
_FORM = re.compile(r"[^\s=&]+=[^\s&]*(?:&[^\s=&]+=[^\s&]*)*")


def read(text: str, folder: Path = Path()) -> Request:
    """Return the request that `text` means; the file of a body (`@order.json`) is looked for in `folder`.

    Raises RequestLineError for text that is none, UsageError for a file that cannot be read.
    """
    asked, status = _expected(text)
    method, rest = _method(text, asked)
    path_found = _PATH.match(rest)
    path = path_found[0] if path_found else ""
    said = rest[len(path) :].strip()
    if said.startswith("->"):
        raise RequestLineError(text, "behind -> stands the right status, such as 201, and nothing else")
    if said and method in methods.SAFE:
        raise RequestLineError(
            text,
            f"'{said}' behind the path would be a body, and a {method} carries none (a blank in a path is written %20)",
        )
    body = file_or_text.read(f"--request '{text}'", said, folder) if said else None
    headers = () if body is None else (("Content-Type", kind(body)),)
    found = Request(
        name=f"{method} {path}",
        path=path,
        method=method,
        headers=headers,
        body=None if body is None else Content.of(body),
        expect_status=status,
    )
    if (wrong := next(faults.of(found), None)) is not None:
        raise RequestLineError(text, wrong)
    return found


def kind(body: bytes) -> str:
    """Return the content type that a body without one most likely has: its user would have said any other."""
    text = body.decode(errors="replace").strip()
    if text[:1] in ("{", "[") and not text.startswith("{{"):
        return "application/json"
    if _FORM.fullmatch(text):
        return "application/x-www-form-urlencoded"
    return "application/octet-stream" if "\ufffd" in text else "text/plain; charset=utf-8"


def _expected(text: str) -> tuple[str, int | None]:
    """Return what stands before the arrow, and the status behind it."""
    arrow = _ARROW.search(text)
    # A body may end in an arrow of its own; one that is meant is followed by a number.
    if arrow is None or not re.fullmatch(r"[0-9]{1,9}", arrow[1]):
        return text.strip(), None
    return text[: arrow.start()].strip(), int(arrow[1])


def _method(text: str, asked: str) -> tuple[str, str]:
    """Return the method, and what stands behind it."""
    if asked.startswith("/"):
        return "GET", asked
    if "://" in asked.split("{", 1)[0]:
        raise RequestLineError(
            text, "give the path alone, without host: the app is served on a port of its own"
        )
    found = _METHOD.match(asked)
    if found is None:
        raise RequestLineError(text, "a path begins with /" if asked else "nothing is asked")
    method, rest = found[1].upper(), asked[found.end() :]
    if method not in methods.ALL:
        raise RequestLineError(text, f"'{found[1]}' is no method; there are {', '.join(methods.ALL)}")
    if not rest.startswith("/"):
        raise RequestLineError(text, f"behind {method} stands a path, which begins with /")
    return method, rest
