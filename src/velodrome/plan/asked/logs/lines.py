"""One line of an access log, in whichever of the usual forms it is.

127.0.0.1 - frank [10/Oct/2000:13:55:36 -0700] "GET /cart?id=7 HTTP/1.1" 200 2326 "referer" "agent"
INFO:     127.0.0.1:54321 - "GET /cart?id=7 HTTP/1.1" 200 OK
{"ts": 1646861401.52, "request": {"method": "GET", "uri": "/cart?id=7"}, "status": 200}

The first is the common and the combined log format, which Apache, nginx and gunicorn write unless told otherwise; the
second uvicorn's, which says no time; the third is JSON, whose names of fields differ (`_NAMES`).
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from velodrome.plan.asked.logs import times


@dataclass(frozen=True, slots=True)
class Line:
    """What was asked, and how it was answered."""

    method: str
    target: str
    """Path and query as they stand, escaped as the log does it."""
    status: int
    second: int | None
    """Of the epoch; None: the line says no time."""


_REQUEST = (
    r'"(?P<method>[A-Z]{1,20}) (?P<target>(?:[^"\\\s]|\\.)+)(?: HTTP/[0-9.]+)?" (?P<status>[1-9][0-9][0-9])\b'
)
_COMMON = re.compile(r"\[(?P<time>[^\]\[]{1,64})\] " + _REQUEST)
_UVICORN = re.compile(r"[A-Z]+: +\S+ - " + _REQUEST)
_REQUEST_LINE = re.compile(r"(?P<method>[A-Z]{1,20}) (?P<target>\S+)(?: HTTP/[0-9.]+)?")
_METHOD = re.compile(r"[A-Z]{1,20}")

_NAMES: Mapping[str, tuple[str, ...]] = {
    "line": ("request", "request_line", "r"),
    "method": ("method", "request_method", "http_method", "requestMethod", "verb", "m"),
    "target": ("uri", "request_uri", "url", "requestUrl", "path", "request_path", "url_path", "U"),
    "query": ("query", "query_string", "request_querystring", "args", "q"),
    "status": ("status", "status_code", "response_code", "response_status", "s"),
    "time": ("ts", "time", "timestamp", "@timestamp", "time_local", "time_iso8601", "msec", "asctime", "t"),
}
"""Where JSON has what: Caddy, nginx ($names), gunicorn (its atoms, and the format most handed around), uvicorn under
structlog, Google's httpRequest.
"""
_WITHIN = ("request", "http", "httpRequest", "response", "scope")
"""Objects in which a line may have them too."""


def read(text: str) -> Line | None:
    """Return what the line says, or None when it is of no form that is known."""
    if text.startswith("{"):
        return _of_json(text)
    found = _COMMON.search(text) or _UVICORN.match(text)
    if found is None:
        return None
    given = found.groupdict()
    return Line(given["method"], given["target"], int(given["status"]), times.of(given.get("time")))


def _of_json(text: str) -> Line | None:
    try:
        whole = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(whole, dict):
        return None
    places = [whole, *(whole[name] for name in _WITHIN if isinstance(whole.get(name), dict))]
    line = _REQUEST_LINE.fullmatch(_text(_first(places, "line")))
    method, target = line.groups() if line else (_text(_first(places, "method")), _target(places))
    status = _status(_first(places, "status"))
    if not _METHOD.fullmatch(method) or not target or status is None:
        return None
    return Line(method, target, status, times.of(_first(places, "time")))


def _target(places: list[dict[str, Any]]) -> str:
    target, query = _text(_first(places, "target")), _text(_first(places, "query"))
    return target if "?" in target or not query else f"{target}?{query.removeprefix('?')}"


def _first(places: list[dict[str, Any]], what: str) -> object:
    """Return the first plain value under one of the names."""
    values = (place.get(name) for place in places for name in _NAMES[what])
    return next((value for value in values if isinstance(value, str | int | float)), None)


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _status(value: object) -> int | None:
    if isinstance(value, str) and re.fullmatch(r"[0-9]{3}( .*)?", value):
        value = int(value[:3])
    is_one = isinstance(value, int) and not isinstance(value, bool) and 100 <= value <= 999
    return int(value) if is_one and isinstance(value, int) else None
