"""asyncmy: aiomysql's interface, its protocol compiled by Cython."""

from __future__ import annotations

from velodrome.guest.client import Client, Connected
from velodrome.guest.clients.aiomysql import Statements


def connect(url: str) -> Connected:
    """Return what reads and writes."""
    import asyncmy

    return Statements("asyncmy", asyncmy, (asyncmy.errors.MySQLError,), url)


client = Client(
    "asyncmy",
    "mariadb",
    "asyncmy: aiomysql with the protocol compiled by Cython; other tasks run while it waits.",
    connect,
    awaits=True,
    requires=("asyncmy==0.2.18",),
    pauses=True,
)
