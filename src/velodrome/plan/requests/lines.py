"""Requests and headers as people type them, and what is wrong with a request before a server is started for it.

    read_line('POST /orders {"id": 1} -> 201')
        -> Request('POST /orders', '/orders', 'POST', headers=(('Content-Type', 'application/json'),),
                   body=Content('{"id": 1}'), expect_status=201)
    read_headers(["Host: shop.example"])  ->  (("Host", "shop.example"),)

The method may be left out (GET). What stands behind the path is the body, or after `@` the file it is in. Behind an
arrow stands the status of a right answer; without an arrow any 2xx is right.

Double braces hold what differs between requests, as the engine reads it (`crates/engine/src/template`). They are only
recognised here, so that a fault is reported before any server is started; the engine fills them in.
"""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import quote

from velodrome.model.app import Content, Request
from velodrome.model.errors import HeaderError, HeaderFileError, RequestLineError
from velodrome.model.secrets import MARK
from velodrome.plan import option_text

_METHOD = re.compile(r"([A-Za-z]+)(?:\s+|$)")
_PATH = re.compile(r"(?:\{\{[^{}]*\}\}|\S)*")
"""Places have blanks in them: `/items/{{random 1..500}}`."""
_ARROW = re.compile(r"\s*->\s*(\S*)\s*$")
_FORM = re.compile(r"[^\s=&]+=[^\s&]*(?:&[^\s=&]+=[^\s&]*)*")


def read_line(text: str, folder: Path = Path()) -> Request:
    """Return the request that `text` means; the file of a body (`@order.json`) is looked for in `folder`.

    Raises RequestLineError for text that is none, UsageError for a file that cannot be read.
    """
    request, status = _split_expected(text)
    method, rest = _method(text, request)
    path_found = _PATH.match(rest)
    path = path_found[0] if path_found else ""
    content = rest[len(path) :].strip()
    if content.startswith("->"):
        raise RequestLineError(text, "behind -> stands the right status, such as 201, and nothing else")
    if content and method in SAFE:
        raise RequestLineError(
            text,
            f"'{content}' behind the path would be a body, and a {method} has none (a blank in a path is written %20)",
        )
    body = option_text.read_content(f"--request '{text}'", content, folder) if content else None
    headers = () if body is None else (("Content-Type", kind(body)),)
    found = Request(
        name=f"{method} {path}",
        path=path,
        method=method,
        headers=headers,
        body=None if body is None else Content.of(body),
        expect_status=status,
    )
    if (wrong := next(faults_of(found), None)) is not None:
        raise RequestLineError(text, wrong)
    return found


def kind(body: bytes) -> str:
    """Return the content type that a body most likely has where its user names none."""
    text = body.decode(errors="replace").strip()
    if text[:1] in ("{", "[") and not text.startswith("{{"):
        return "application/json"
    if _FORM.fullmatch(text):
        return "application/x-www-form-urlencoded"
    return "application/octet-stream" if "\ufffd" in text else "text/plain; charset=utf-8"


def _split_expected(text: str) -> tuple[str, int | None]:
    """Return what stands before the arrow, and the status behind it."""
    arrow = _ARROW.search(text)
    # A body may end in an arrow of its own; the arrow that is meant is followed by a number.
    if arrow is None or not re.fullmatch(r"[0-9]{1,9}", arrow[1]):
        return text.strip(), None
    return text[: arrow.start()].strip(), int(arrow[1])


def _method(text: str, request: str) -> tuple[str, str]:
    """Return the method, and what stands behind it."""
    if request.startswith("/"):
        return "GET", request
    if "://" in request.split("{", 1)[0]:
        raise RequestLineError(
            text, "give the path alone, without host: the app is served on a port of its own"
        )
    found = _METHOD.match(request)
    if found is None:
        raise RequestLineError(text, "a path begins with /" if request else "it is empty")
    method, rest = found[1].upper(), request[found.end() :]
    if method not in ALL:
        raise RequestLineError(text, f"'{found[1]}' is no method; there are {', '.join(ALL)}")
    if not rest.startswith("/"):
        raise RequestLineError(text, f"behind {method} stands a path, which begins with /")
    return method, rest


Header = tuple[str, str]


def read_headers(texts: Sequence[str]) -> tuple[Header, ...]:
    """Return headers written as `Name: value`. Raises HeaderError, which shows no value."""
    found = []
    for text in texts:
        name, colon, value = text.partition(":")
        if not colon:
            raise HeaderError("", "a header has a name and a value; write --header 'Name: value'")
        found.append((name.strip(), value.strip()))
    return check_headers(found)


def lines_of(path: Path) -> tuple[str, ...]:
    """Return the headers in a file, a line each as `Name: value`; blank lines and those that begin with # are none.

    Raises HeaderFileError, which shows no value.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else "it is not text (UTF-8)"
        raise HeaderFileError(str(path), 0, why) from error
    found = []
    for number, line in enumerate(text.split("\n"), 1):
        plain = line.strip()
        if not plain or plain.startswith("#"):
            continue
        if not plain.partition(":")[1]:
            raise HeaderFileError(str(path), number, "a header has a name and a value")
        found.append(plain)
    return tuple(found)


def check_headers(headers: Sequence[Header] | Mapping[str, str]) -> tuple[Header, ...]:
    """Return headers that can be sent. Raises HeaderError."""
    found = tuple(headers.items() if isinstance(headers, Mapping) else headers)
    for name, value in found:
        if value == MARK:
            raise HeaderError(name, "here stands what was not written down; give the value itself")
        if not value.isascii():
            raise HeaderError(
                name, "its value has a letter that is not of ASCII; write it as the server wants it"
            )
        if wrong := next(faults_of(Request("", headers=((name, value),))), None):
            raise HeaderError(name, wrong.removeprefix("headers: "))
    return found


def with_headers(requests: Sequence[Request], headers: Sequence[Header]) -> tuple[Request, ...]:
    """Return requests that all have these headers."""
    names = {name.lower() for name, _ in headers}
    return tuple(
        replace(request, headers=(*(own for own in request.headers if own[0].lower() not in names), *headers))
        for request in requests
    )


MOST = 500
"""Each is shown by itself in results, with two histograms of its own."""
GRAPHIC = "".join(chr(code) for code in range(33, 127))
FRAMING = ("content-length", "transfer-encoding", "connection", "expect", "upgrade")
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
"""RFC 9110, section 5.6.2."""
_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")


def faults_of_all(requests: Sequence[Request], *, templates: bool = True) -> Iterator[str]:
    """Yield what is wrong, as `request 2, path: …`; without templates, braces stand for themselves."""
    if len(requests) > MOST:
        yield f"{len(requests)} requests are too many, each is given by itself; give at most {MOST}"
    seen: set[str] = set()
    for number, request in enumerate(requests, 1):
        if not request.name.strip():
            yield f"request {number}, name: it is empty"
        if request.name in seen:
            yield f"request {number}, name: another one is called '{request.name}'"
        seen.add(request.name)
        for fault in faults_of(request, templates=templates):
            yield f"request {number}, {fault}"


def faults_of(request: Request, *, templates: bool = True) -> Iterator[str]:
    """Yield what is wrong with a request, as `path: …`."""
    if not (math.isfinite(request.weight) and request.weight > 0):
        yield f"weight: {request.weight:g} is no weight; give a number above 0"
    if not _TOKEN.fullmatch(request.method):
        yield f"method: '{request.method}' is no HTTP method"
    elif request.method == "CONNECT":
        yield "method: CONNECT makes a tunnel, and a tunnel has no answer to measure"
    yield from _of_path(without_places(request.path))
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
        texts["body"] = request.body.text
    for field, text in texts.items():
        if (wrong := unknown_places(text)) is not None:
            yield f"{field}: {wrong} stands for nothing; there are {KNOWN}"


KNOWN = "{{n}}, {{random}}, {{random 1..500}}, {{hex 16}}, {{uuid}} and {{pick red|green}}"
MOST_DIGITS = 65_536
_WORD = re.compile(r"(n|i|random|uuid)")
_RANGE = re.compile(r"random\s+\+?([0-9]{1,20})\s*\.\.\s*\+?([0-9]{1,20})")
_HEX = re.compile(r"hex\s+\+?([0-9]{1,20})")
_PICK = re.compile(r"pick\s+\S.*", re.DOTALL)


def unknown_places(text: str) -> str | None:
    """Return the first place that stands for nothing, with its braces; None: all are right."""
    found = (text[start:end] for start, end in _places(text))
    return next((place for place in found if not _is_known(place[2:-2].strip())), None)


def without_places(text: str) -> str:
    """Return what stands around the places."""
    around, at = [], 0
    for start, end in _places(text):
        around.append(text[at:start])
        at = end
    return "".join((*around, text[at:]))


def _places(text: str) -> Iterator[tuple[int, int]]:
    """Yield where places begin and end. Not by a pattern: it would try each `{{` up to the end of the text."""
    at = 0
    while (start := text.find("{{", at)) >= 0 and (inside := text.find("}}", start + 2)) >= 0:
        at = inside + 2
        yield start, at


def _is_known(place: str) -> bool:
    if (bounds := _RANGE.fullmatch(place)) is not None:
        return int(bounds[1]) <= int(bounds[2]) < 1 << 64
    if (digits := _HEX.fullmatch(place)) is not None:
        return 1 <= int(digits[1]) <= MOST_DIGITS
    return bool(_WORD.fullmatch(place) or _PICK.fullmatch(place))


SAFE = ("GET", "HEAD", "OPTIONS")
"""They change nothing and have no body (RFC 9110, section 9.2.1): what is taken from logs and documents unless more are
wanted.
"""
ALL = (*SAFE, "POST", "PUT", "PATCH", "DELETE")


@dataclass(frozen=True)
class LeftOut:
    """Requests that are not in the mix, and why."""

    what: str
    """`POST /orders`, `answers of status 404`."""
    requests: int
    """How many of a log; each operation of a document counts once."""
    why: str
    """And what can be done, if anything."""


MOST_SHOWN = 5


def left_out_sentence(left_out: Sequence[LeftOut], most: int = MOST_SHOWN) -> str:
    """Return the greatest of them in one line, for an error."""
    greatest = sorted(left_out, key=lambda omission: -omission.requests)
    more = f"; and {len(greatest) - most} more" if len(greatest) > most else ""
    return "; ".join(f"{omission.what} ({omission.why})" for omission in greatest[:most]) + more
