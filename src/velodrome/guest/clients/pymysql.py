"""PyMySQL: MariaDB's protocol in Python."""

from __future__ import annotations

from typing import Any, NamedTuple, Tuple
from urllib.parse import unquote, urlsplit

from velodrome.guest.client import TIMEOUT_S, Client, Connected
from velodrome.guest.clients import _dbapi

PORT = 3306
PAUSE = "(SELECT SLEEP(%s)) AS pause"
VERSION = "SELECT VERSION()"
PYMYSQL = "pymysql==1.2.4"


class Address(NamedTuple):
    """`mysql://user:password@host:port/database`, percent-escapes resolved."""

    host: str
    port: int
    user: str
    password: str
    database: str


def address(url: str, port: int) -> Address:
    """Return the parts of a URL; `port` is the default."""
    parts = urlsplit(url)
    return Address(
        parts.hostname or "127.0.0.1",
        parts.port or port,
        unquote(parts.username or ""),
        unquote(parts.password or ""),
        unquote(parts.path.lstrip("/")),
    )


def _open(url: str) -> Tuple[_dbapi.Connect, _dbapi.Failures]:
    import pymysql

    at = address(url, PORT)

    def connect() -> Any:
        return pymysql.connect(
            host=at.host,
            port=at.port,
            user=at.user,
            password=at.password,
            database=at.database or None,
            autocommit=True,
            connect_timeout=TIMEOUT_S,
            read_timeout=TIMEOUT_S,
            write_timeout=TIMEOUT_S,
        )

    return connect, (pymysql.MySQLError,)


def connect(url: str) -> Connected:
    """Return what reads and writes."""
    connect, failures = _open(url)
    return _dbapi.Statements("pymysql", connect, failures, PAUSE)


def prepare(url: str) -> str:
    """Make the tables; return the database's version."""
    connect, _ = _open(url)
    return _dbapi.prepare(connect(), VERSION)


client = Client(
    "pymysql",
    "mariadb",
    "PyMySQL: pure Python over a socket, so that under gevent other requests run while it waits.",
    connect,
    requires=(PYMYSQL,),
    default=True,
    pauses=True,
    prepare=prepare,
)
