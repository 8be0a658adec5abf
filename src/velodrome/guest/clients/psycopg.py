"""psycopg 3: PostgreSQL's own client library in C, driven from Python."""

from __future__ import annotations

from typing import Any, Tuple

from velodrome.guest.client import TIMEOUT_S, Client, Connected
from velodrome.guest.clients import _dbapi

PAUSE = "pg_sleep(%s) AS pause"


def _open(url: str) -> Tuple[_dbapi.Connect, _dbapi.Failures]:
    import psycopg

    def connect() -> Any:
        return psycopg.connect(url, autocommit=True, connect_timeout=TIMEOUT_S)

    return connect, (psycopg.Error,)


def connect(url: str) -> Connected:
    """Return what reads and writes."""
    connect, failures = _open(url)
    return _dbapi.Statements("psycopg", connect, failures, PAUSE)


def prepare(url: str) -> None:
    """Make the tables."""
    connect, _ = _open(url)
    _dbapi.prepare(connect())


client = Client(
    "psycopg",
    "postgresql",
    "psycopg 3: it waits by select, in C, or in Python once gevent has patched that: then greenlets run.",
    connect,
    requires=("psycopg[binary]==3.3.9",),
    default=True,
    pauses=True,
    prepare=prepare,
)
