"""mysqlclient: MariaDB's own client library in C."""

from __future__ import annotations

from typing import Any

from velodrome.guest.client import TIMEOUT_S, Client, Connected
from velodrome.guest.clients import _dbapi
from velodrome.guest.clients.pymysql import PAUSE, PORT, address


def connect(url: str) -> Connected:
    """Return what reads and writes."""
    import MySQLdb

    at = address(url, PORT)

    def connect() -> Any:
        return MySQLdb.connect(
            host=at.host,
            port=at.port,
            user=at.user,
            password=at.password,
            database=at.database,
            autocommit=True,
            connect_timeout=TIMEOUT_S,
            read_timeout=TIMEOUT_S,
            write_timeout=TIMEOUT_S,
        )

    return _dbapi.Statements("mysqlclient", connect, (MySQLdb.MySQLError,), PAUSE)


client = Client(
    "mysqlclient",
    "mariadb",
    "mysqlclient: the C library waits inside itself; other threads run meanwhile, greenlets do not.",
    connect,
    requires=("mysqlclient==2.3.1",),
    pauses=True,
)
