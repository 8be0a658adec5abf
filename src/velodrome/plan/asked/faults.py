"""What is wrong with requests, as the engine will tell it: told before any server is started for them."""

import math
import re
from collections.abc import Iterator, Sequence
from urllib.parse import quote

from velodrome.model.app import Request
from velodrome.model.secrets import MARK
from velodrome.plan.asked import places

MOST = 500
"""Each is told by itself in results, with two histograms of its own."""
GRAPHIC = "".join(chr(code) for code in range(33, 127))
FRAMING = ("content-length", "transfer-encoding", "connection", "expect", "upgrade")
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
"""RFC 9110, section 5.6.2."""
_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")


def of_all(requests: Sequence[Request], *, templates: bool = True) -> Iterator[str]:
    """Yield what is wrong, as `request 2, path: …`; without templates, braces stand for themselves."""
    if len(requests) > MOST:
        yield f"{len(requests)} requests are too many, each is told by itself; give at most {MOST}"
    seen: set[str] = set()
    for number, request in enumerate(requests, 1):
        if not request.name.strip():
            yield f"request {number}, name: it is empty"
        if request.name in seen:
            yield f"request {number}, name: another one is called '{request.name}'"
        seen.add(request.name)
        for fault in of(request, templates=templates):
            yield f"request {number}, {fault}"


def of(request: Request, *, templates: bool = True) -> Iterator[str]:
    """Yield what is wrong with one, as `path: …`."""
    if not (math.isfinite(request.weight) and request.weight > 0):
        yield f"weight: {request.weight:g} is no weight; give a number above 0"
    if not _TOKEN.fullmatch(request.method):
        yield f"method: '{request.method}' is no HTTP method"
    elif request.method == "CONNECT":
        yield "method: CONNECT makes a tunnel, and a tunnel has no answer to measure"
    yield from _of_path(places.without(request.path))
    for name, value in request.headers:
        if not _TOKEN.fullmatch(name):
            yield f"headers: '{name}' is no name of a header"
        elif name.lower() in FRAMING:
            yield f"headers: {name} is written by the generator itself; leave it out"
        if _CONTROL.search(value):
            yield f"headers: the value of {name} has a control character in it"
    if request.expect_status is not None and not 200 <= request.expect_status <= 599:
        yield f"expect-status: {request.expect_status} is no status of an answer; there are 200 to 599"
    if request.expect_body is not None and request.expect_contains is not None:
        yield "expect-body is the whole body, so expect-contains has nothing to say; give one of them"
    if templates:
        yield from _of_places(request)


def _of_path(plain: str) -> Iterator[str]:
    if plain and not plain.startswith("/"):
        yield f"path: '{plain}' does not begin with /"
    elif MARK in plain:
        yield f"path: {MARK} stands for a secret that was not written down; give the value itself"
    elif (written := quote(plain, safe=GRAPHIC)) != plain:
        yield f"path: it is of ASCII letters without blanks; write this one {written}"
    elif "#" in plain:
        yield "path: what follows # is for the browser and never sent; leave it out"


def _of_places(request: Request) -> Iterator[str]:
    texts = {"path": request.path, **{f"header {name}": value for name, value in request.headers}}
    if request.body is not None:
        texts["body"] = request.body.data.decode(errors="replace")
    for field, text in texts.items():
        if (wrong := places.unknown(text)) is not None:
            yield f"{field}: {wrong} stands for nothing; there are {places.KNOWN}"
