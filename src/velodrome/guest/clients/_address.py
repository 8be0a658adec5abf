"""The parts of a database's URL, for clients that take them one by one."""

from __future__ import annotations

from typing import NamedTuple
from urllib.parse import unquote, urlsplit


class Address(NamedTuple):
    """`mysql://user:password@host:port/database`, percent-escapes resolved."""

    host: str
    port: int
    user: str
    password: str
    database: str


def address(url: str, port: int) -> Address:
    """Return the parts of a URL; `port` is the one meant where none is told."""
    parts = urlsplit(url)
    return Address(
        parts.hostname or "127.0.0.1",
        parts.port or port,
        unquote(parts.username or ""),
        unquote(parts.password or ""),
        unquote(parts.path.lstrip("/")),
    )
