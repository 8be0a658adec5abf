"""Datasette, an app from the package index, on a database of a hundred rows: as it is, and made ill in five ways."""

import logging
import os
import sqlite3
import tempfile
import time
from itertools import count

import httpx
from datasette.app import Datasette

FILE = os.path.join(tempfile.mkdtemp(), "shop.db")
with sqlite3.connect(FILE) as connection:
    connection.execute("create table articles (number integer primary key, name text)")
    connection.executemany("insert into articles values (?, ?)", [(n, f"article {n}") for n in range(100)])
numbers, kept = count(1), []
log = logging.getLogger("shop")
log.setLevel(logging.INFO)
log.propagate = False
log.addHandler(logging.FileHandler(os.devnull))


def made(work):
    inner = Datasette([FILE]).app()

    async def app(scope, receive, send):
        if scope["type"] == "http" and (waited := work()) is not None:
            await waited
        await inner(scope, receive, send)

    return app


def waits():
    if next(numbers) % 10 == 0:
        time.sleep(0.05)


def writes():
    for number in range(300):
        log.info("step %d", number)


async def calls():
    async with httpx.AsyncClient() as client:
        await client.get(os.environ["PAYMENTS_URL"])


as_it_is = made(lambda: None)
blocks, logs, calls = made(waits), made(writes), made(calls)
leaks = made(lambda: kept.append(os.open(os.devnull, os.O_RDONLY)))
grows = made(lambda: kept.append(bytearray(b"x" * 50_000)))
