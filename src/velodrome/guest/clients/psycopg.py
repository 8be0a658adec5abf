"""psycopg 3: PostgreSQL's own client library in C, driven from Python."""

from __future__ import annotations

from typing import Any, Tuple

from velodrome.guest.client import TIMEOUT_S, Client, Connected
from velodrome.guest.clients import _dbapi, _tables

PAUSE = "pg_sleep(%s) AS pause"
VERSION = "SHOW server_version"


def _open(url: str) -> Tuple[_dbapi.Connect, _dbapi.Failures]:
    import psycopg

    def connect() -> Any:
        return psycopg.connect(url, autocommit=True, connect_timeout=TIMEOUT_S)

    return connect, (psycopg.Error,)


def connect(url: str) -> Connected:
    """Return what reads and writes."""
    connect, failures = _open(url)
    return _dbapi.Statements("psycopg", connect, failures, PAUSE, _tables.update_in_order)


def prepare(url: str) -> str:
    """Make the tables; return the database's version."""
    connect, _ = _open(url)
    return _dbapi.prepare(connect(), VERSION)


client = Client(
    "psycopg",
    "postgresql",
    "psycopg 3: it waits by select, in C, or in Python once gevent has patched that: then greenlets run.",
    connect,
    requires=("psycopg==3.3.9", "psycopg-binary==3.3.9"),
    default=True,
    pauses=True,
    prepare=prepare,
)
