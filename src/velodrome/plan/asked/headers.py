"""Headers that every request of an app has: `Host: shop.example`, `Authorization: Bearer …`.

    read(["Host: shop.example"])                            -> (("Host", "shop.example"),)
    added(requests, (("Host", "shop.example"),))            -> the same requests, each with it

One takes the place of a request's own of the same name.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from velodrome.model.app import Request
from velodrome.model.errors import HeaderError, HeaderFileError
from velodrome.model.secrets import MARK
from velodrome.plan.asked import faults

Header = tuple[str, str]


def read(texts: Sequence[str]) -> tuple[Header, ...]:
    """Return headers told as `Name: value`. Raises HeaderError, which tells no value."""
    found = []
    for text in texts:
        name, colon, value = text.partition(":")
        if not colon:
            raise HeaderError("", "a header has a name and a value; write --header 'Name: value'")
        found.append((name.strip(), value.strip()))
    return checked(found)


def lines_of(path: Path) -> tuple[str, ...]:
    """Return the headers in a file, a line each as `Name: value`; blank lines and those that begin with # are none.

    Raises HeaderFileError, which tells no value.
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


def checked(headers: Sequence[Header] | Mapping[str, str]) -> tuple[Header, ...]:
    """Return headers that can be sent. Raises HeaderError."""
    found = tuple(headers.items() if isinstance(headers, Mapping) else headers)
    for name, value in found:
        if value == MARK:
            raise HeaderError(name, "here stands what was not written down; give the value itself")
        if not value.isascii():
            raise HeaderError(
                name, "its value has a letter that is not of ASCII; write it as the server wants it"
            )
        if wrong := next(faults.of(Request("", headers=((name, value),))), None):
            raise HeaderError(name, wrong.removeprefix("headers: "))
    return found


def added(requests: Sequence[Request], headers: Sequence[Header]) -> tuple[Request, ...]:
    """Return requests that all have these headers."""
    names = {name.lower() for name, _ in headers}
    return tuple(
        replace(one, headers=(*(own for own in one.headers if own[0].lower() not in names), *headers))
        for one in requests
    )
