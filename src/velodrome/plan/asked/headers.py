"""Headers that every request of an app has: `Host: shop.example`, `Authorization: Bearer …`.

    read(["Host: shop.example"])                            -> (("Host", "shop.example"),)
    added(requests, (("Host", "shop.example"),))            -> the same requests, each with it

One takes the place of a request's own of the same name.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from velodrome.model.errors import HeaderError
from velodrome.model.request import Request
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
