"""A simulated third party as people type it: where the app finds it, and how it answers.

    read("PAYMENTS_URL=latency:lognormal(50ms,0.4),errors:1%,body:@charge.json")
    read('PAYMENTS_URL=50ms,body:{"ok":true}')

Parts stand in any order behind commas: `latency`, `errors`, `stall`, `type`, `body`. A body is text, `@file`, or its
size in bytes; what type it is follows from what it looks like, unless it is told.
"""

import json
import re
from pathlib import Path

from velodrome.model import amounts
from velodrome.model.app import Content, Stall, ThirdParty
from velodrome.model.errors import BadOptionError, UsageError
from velodrome.plan.asked import file_or_text

OPTION = "--upstream"
PARTS = ("latency", "errors", "stall", "type", "body")
LARGEST_BODY = 1_000_000
"""Bytes: it stands in every line of the results."""
_BETWEEN = re.compile(rf",(?=(?:{'|'.join(PARTS)}):)")
"""Commas stand in distributions and in bodies too; before the name of a part and a colon they divide."""
_TYPE = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+/[!#$%&'*+.^_`|~0-9A-Za-z-]+(\s*;[\x20-\x7e]*)?")
"""RFC 9110, section 8.3.1."""


def read(text: str, folder: Path = Path()) -> ThirdParty:
    """Return the third party that `text` means; files of bodies are looked for in `folder`. Raises BadOptionError."""
    variable, equals, told = text.partition("=")
    if not variable or not equals or not told:
        raise BadOptionError(
            OPTION, text, "write VARIABLE=latency:50ms, the variable in which the app finds its URL"
        )
    try:
        parts = _parts(told)
        size, body = content(parts["body"], folder) if "body" in parts else (ThirdParty.size, None)
        return ThirdParty(
            variable,
            parts.get("latency", "0ms"),
            share(parts.get("errors", "0")),
            stall(parts["stall"]) if "stall" in parts else None,
            body,
            size,
            content_type(parts.get("type"), body),
        )
    except (ValueError, UsageError) as error:
        raise BadOptionError(OPTION, text, str(error)) from error


def _parts(told: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for part in _BETWEEN.split(told):
        name, colon, value = part.partition(":")
        if not colon or name not in PARTS:  # a latency may stand alone
            name, value = "latency", part
        if name in found:
            raise ValueError(f"its {name} is told twice; leave one out")
        found[name] = value
    return found


def share(text: str) -> float:
    """Read `1%` or `0.01`. Raises ValueError."""
    try:
        value = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 1:
        raise ValueError(f"'{text}' is not a share of answers; write 1% or 0.01")
    return value


def stall(text: str) -> Stall:
    """Read `1s/10s`: for one second in every ten. Raises ValueError."""
    lasting, slash, every = text.partition("/")
    try:
        if not slash:
            raise ValueError("no '/'")
        return Stall(amounts.seconds(lasting), amounts.seconds(every))
    except ValueError as error:
        raise ValueError(f"'{text}' ({error}); write 1s/10s, one second in every ten") from error


def content(text: str, folder: Path = Path()) -> tuple[int, Content | None]:
    """Return the size of a body, and the body where it is more than that. Raises ValueError, UsageError for a file."""
    if text.isascii() and text.isdigit():
        return int(text), None
    data = file_or_text.read("body", text, folder) or b""
    if len(data) > LARGEST_BODY:
        raise ValueError(
            f"its body is of {len(data):,} bytes, and it may have {LARGEST_BODY:,}; a size alone may be more: "
            "body:5000000"
        )
    return len(data), Content.of(data)


def content_type(told: str | None, body: Content | None) -> str:
    """Return the content type: what is told, or what a body looks like. Raises ValueError."""
    if told is not None:
        if not _TYPE.fullmatch(told):
            raise ValueError(f"'{told}' is no content type; write application/json")
        return told
    if body is None:
        return ThirdParty.content_type
    if body.base64:
        return "application/octet-stream"
    try:
        json.loads(body.text)
    except ValueError:
        return "text/html" if body.text.lstrip().startswith("<") else "text/plain"
    return "application/json"
