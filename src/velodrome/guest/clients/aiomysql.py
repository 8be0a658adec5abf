"""aiomysql: MariaDB's protocol in Python over asyncio streams."""

from __future__ import annotations

from velodrome.guest.client import Client, Connected
from velodrome.guest.clients._awaited_mysql import Statements
from velodrome.guest.clients.pymysql import PYMYSQL


def connect(url: str) -> Connected:
    """Return what reads and writes."""
    import aiomysql
    import pymysql

    return Statements("aiomysql", aiomysql, (pymysql.MySQLError,), url)


client = Client(
    "aiomysql",
    "mariadb",
    "aiomysql: PyMySQL over asyncio streams; other tasks run while it waits.",
    connect,
    awaits=True,
    requires=("aiomysql==0.3.2", PYMYSQL),
    default=True,
    pauses=True,
)
