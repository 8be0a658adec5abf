r"""What surrounds a server, as people type it: the link to it, a third party it calls, its environment variables.

    read_link("rtt=160ms,rate=100mbit")            ->  Link(rtt_ms=160, rate_mbit=100)
    link_of({"rtt": "160ms", "rate": "100mbit"})   ->  the same
    read_third_party("PAYMENTS_URL=latency:lognormal(50ms,0.4),errors:1%,body:@charge.json")
    read_third_party('PAYMENTS_URL=50ms,body:{"ok":true}')
    read_env_file(Path(".env"))                    ->  ("SHOP_NAME=corner shop", "HOME")

Units of a link must be written, because a bare `160` is milliseconds to one reader and seconds to another. The parts of
a third party stand in any order behind commas: `latency`, `errors`, `stall`, `type`, `body`. A body is text, `@file`,
or its size in bytes; its type follows from what it looks like unless the text names a type.

An environment file is read as dotenv reads it, but nothing is put in the place of `$NAME`:

    # comment
    SHOP_NAME=corner shop          # the rest of the line, without what follows ` #`
    export PASSWORD='as it $tands' # in single quotes as it stands
    KEY="line\nline"              # in double quotes with \n, \t, \r, \", \\ and \$; may go over several lines
    HOME                           # a name alone passes our own value on
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from velodrome.model import amounts
from velodrome.model.amounts import seconds
from velodrome.model.app import Content, Stall, ThirdParty
from velodrome.model.errors import BadOptionError, EnvFileError, UsageError
from velodrome.model.load import CONGESTION, Link
from velodrome.plan import option_text

EXAMPLE = "rtt=160ms,jitter=2ms,rate=100mbit,loss=1%,queue=500,congestion=cubic"
LONGEST_RTT_S = 60.0
"""No path on Earth is longer: TCP itself gives up a connection that takes minutes to open."""
LOWEST_RATE_MBIT, HIGHEST_RATE_MBIT = 0.001, 100_000.0
"""A packet of 1,500 bytes takes 12 s at the slow end and 120 ns at the fast end."""
LONGEST_QUEUE = 1_000_000
"""Packets; 1.5 GB of them."""
_RATE = re.compile(r"(\d+(?:\.\d+)?|\.\d+)\s*(k|m|g)bit(?:/s|ps)?", re.ASCII)
_RATE_UNITS = {"k": 1e-3, "m": 1.0, "g": 1e3}
_SPAN = re.compile(r"(\d+(?:\.\d+)?|\.\d+)\s*(us|ms|s)", re.ASCII)
_SHARE = re.compile(r"(\d+(?:\.\d+)?|\.\d+)\s*(%?)", re.ASCII)


def read_link(text: str) -> Link:
    """Return the link that `text` means. Raises ValueError with a sentence that says what is wrong."""
    parts: dict[str, object] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        key, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals:
            raise ValueError(f"'{part}' in a link has no value; write one such as {EXAMPLE}")
        if key in parts:
            raise ValueError(f"a link has one {key}, and here it is given twice; leave one out")
        parts[key] = value
    return link_of(parts)


def link_of(parts: Mapping[str, object]) -> Link:
    """Return the link of a table whose values are texts (`loss` and `queue` may be numbers).

    Raises ValueError with a sentence that says what is wrong.
    """
    if not parts:
        raise ValueError(f"a link that is empty is no link; write one such as {EXAMPLE}")
    if unknown := [key for key in parts if key not in _KEYS]:
        raise ValueError(f"a link has no '{unknown[0]}'; it has {', '.join(_KEYS)}, as in {EXAMPLE}")
    values = {_KEYS[key][0]: _KEYS[key][1](value) for key, value in parts.items()}
    link = Link(**values)
    if link.jitter_ms > link.rtt_ms / 2:
        raise ValueError(
            f"a jitter of {link.jitter_ms:g} ms is more than the delay of each way, {link.rtt_ms / 2:g} ms (half the "
            "rtt), and no packet arrives before it is sent; lower the jitter or raise the rtt"
        )
    return link


def _milliseconds(name: str) -> Callable[[object], float]:
    def milliseconds(value: object) -> float:
        if not isinstance(value, str) or _SPAN.fullmatch(value) is None:
            raise ValueError(
                f"the {name} of a link, {_show_value(value)}, is not a span of time; write 160ms, 1.5ms or 1s"
            )
        if seconds(value) > LONGEST_RTT_S:
            raise ValueError(
                f"the {name} of a link, {value}, is over {LONGEST_RTT_S:g} s; no path on Earth takes that"
            )
        return seconds(value) * 1000

    return milliseconds


def _rate(value: object) -> float:
    match = _RATE.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        raise ValueError(
            f"the rate of a link, {_show_value(value)}, is not a rate; write 100mbit, 512kbit or 1gbit"
        )
    rate = float(match[1]) * _RATE_UNITS[match[2]]
    if not LOWEST_RATE_MBIT <= rate <= HIGHEST_RATE_MBIT:
        raise ValueError(f"the rate of a link, {value}, must be from 1kbit to 100gbit")
    return rate


def _loss(value: object) -> float:
    match = _SHARE.fullmatch(value) if isinstance(value, str) else None
    if match is not None:
        share = float(match[1]) / (100 if match[2] else 1)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        share = float(value)
    else:
        raise ValueError(
            f"the loss of a link, {_show_value(value)}, is not a share of packets; write 1% or 0.01"
        )
    if not 0 <= share < 1:
        raise ValueError(
            f"the loss of a link, {_show_value(value)}, must be from 0 to below 1 (100%): something must arrive"
        )
    return share


def _queue(value: object) -> int:
    if isinstance(value, str) and value.isascii() and value.isdigit():
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= LONGEST_QUEUE:
        raise ValueError(
            f"the queue of a link, {_show_value(value)}, is not a number of packets; write 1 to {LONGEST_QUEUE}"
        )
    return value


def _congestion(value: object) -> str:
    if value not in CONGESTION:
        raise ValueError(
            f"the congestion control of a link, {_show_value(value)}, is none of {', '.join(CONGESTION)}"
        )
    return str(value)


def _show_value(value: object) -> str:
    return f"'{value}'" if isinstance(value, str) else f"{value!r}"


_KEYS: Mapping[str, tuple[str, Callable[[object], Any]]] = {
    "rtt": ("rtt_ms", _milliseconds("rtt")),
    "jitter": ("jitter_ms", _milliseconds("jitter")),
    "rate": ("rate_mbit", _rate),
    "loss": ("loss", _loss),
    "queue": ("queue_packets", _queue),
    "congestion": ("congestion", _congestion),
}
"""Key of the text to field of a Link, and how its value is read."""


OPTION = "--upstream"
PARTS = ("latency", "errors", "stall", "type", "body")
LARGEST_BODY = 1_000_000
"""Bytes: it stands in every line of the results."""
_BETWEEN = re.compile(rf",(?=(?:{'|'.join(PARTS)}):)")
"""Commas stand in distributions and in bodies too; before the name of a part and a colon they divide."""
_TYPE = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+/[!#$%&'*+.^_`|~0-9A-Za-z-]+(\s*;[\x20-\x7e]*)?")
"""RFC 9110, section 8.3.1."""


def read_third_party(text: str, folder: Path = Path()) -> ThirdParty:
    """Return the third party that `text` means; files of bodies are looked for in `folder`. Raises BadOptionError."""
    variable, equals, text_of_parts = text.partition("=")
    if not variable or not equals or not text_of_parts:
        raise BadOptionError(
            OPTION, text, "write VARIABLE=latency:50ms, the variable in which the app finds its URL"
        )
    try:
        parts = _parts(text_of_parts)
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


def _parts(text_of_parts: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for part in _BETWEEN.split(text_of_parts):
        name, colon, value = part.partition(":")
        if not colon or name not in PARTS:  # a latency may stand alone
            name, value = "latency", part
        if name in found:
            raise ValueError(f"its {name} is given twice; leave one out")
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
    data = option_text.read_content("body", text, folder) or b""
    if len(data) > LARGEST_BODY:
        raise ValueError(
            f"its body is of {len(data):,} bytes, and it may have {LARGEST_BODY:,}; a size alone may be more: "
            "body:5000000"
        )
    return len(data), Content.of(data)


def content_type(given: str | None, body: Content | None) -> str:
    """Return the content type: what is given, or what a body looks like. Raises ValueError."""
    if given is not None:
        if not _TYPE.fullmatch(given):
            raise ValueError(f"'{given}' is no content type; write application/json")
        return given
    if body is None:
        return ThirdParty.content_type
    if body.base64:
        return "application/octet-stream"
    try:
        json.loads(body.text)
    except ValueError:
        return "text/html" if body.text.lstrip().startswith("<") else "text/plain"
    return "application/json"


_NAME = re.compile(r"(?:export[ \t]+)?([A-Za-z_][A-Za-z0-9_.-]*)[ \t]*(=?)[ \t]*")
_SINGLE = re.compile(r"'([^']*)'")
_DOUBLE = re.compile(r'"((?:[^"\\]|\\.)*)"', re.DOTALL)
_BARE = re.compile(r"[^\n]*")
_REST = re.compile(r"[ \t]*(?:#[^\n]*)?(?:\n|$)")
_BLANK = re.compile(r"(?:[ \t\r]*(?:#[^\n]*)?\n)*[ \t\r]*(?:#[^\n]*$)?")
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_LETTERS = {"n": "\n", "t": "\t", "r": "\r"}


def read_env_file(path: Path) -> tuple[str, ...]:
    """Return the variables of a file as `NAME=VALUE`, or `NAME`. Raises EnvFileError, which tells no value."""
    try:
        text = path.read_text(encoding="utf-8-sig").replace("\r\n", "\n")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else "it is not text (UTF-8)"
        raise EnvFileError(str(path), 0, why) from error
    return tuple(_variables(str(path), text))


def _variables(path: str, text: str) -> Iterator[str]:
    at = 0
    while (at := _end(_BLANK, text, at)) < len(text):
        line = text.count("\n", 0, at) + 1
        named = _NAME.match(text, at)
        if named is None:
            raise EnvFileError(path, line, "it does not begin with the name of a variable")
        at = named.end()
        value = ""
        if named[2]:
            value, at = _value(path, line, text, at)
        if "\0" in value:
            raise EnvFileError(path, line, f"the value of {named[1]} has a NUL in it")
        rest = _REST.match(text, at)
        if rest is None:
            what = "has something behind its closing quote" if named[2] else "has no = behind it"
            raise EnvFileError(path, line, f"{named[1]} {what}")
        at = rest.end()
        yield f"{named[1]}={value}" if named[2] else named[1]


def _value(path: str, line: int, text: str, at: int) -> tuple[str, int]:
    """Return a value, and where it ends."""
    quote = text[at : at + 1]
    if quote and quote in "'\"":
        found = (_SINGLE if quote == "'" else _DOUBLE).match(text, at)
        if found is None:
            raise EnvFileError(path, line, f"its {quote} is not closed")
        value = found[1]
        if quote == '"':
            value = _ESCAPED.sub(lambda escape: _LETTERS.get(escape[1], escape[1]), value)
        return value, found.end()
    end = _end(_BARE, text, at)
    value = re.split(r"(?:^|[ \t])#", text[at:end], maxsplit=1)[0]
    return value.strip(), end


def _end(pattern: re.Pattern[str], text: str, at: int) -> int:
    found = pattern.match(text, at)
    return at if found is None else found.end()
