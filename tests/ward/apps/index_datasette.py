"""Datasette, an app from the package index, on a database of a hundred rows: as it is, and made ill in five ways."""

import hashlib
import logging
import os
import sqlite3
import tempfile
import time
from itertools import count

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
        if scope["type"] == "http":
            work()
        await inner(scope, receive, send)

    return app


def in_one_of_ten(work):
    return lambda: next(numbers) % 10 or work()


def waits():
    time.sleep(0.05)


def writes():
    for number in range(300):
        log.info("step %d", number)


as_it_is = made(lambda: None)
blocks = made(in_one_of_ten(waits))
hashes = made(in_one_of_ten(lambda: hashlib.pbkdf2_hmac("sha256", b"password", b"salt", 100_000)))
logs = made(writes)
leaks = made(lambda: kept.append(os.open(os.devnull, os.O_RDONLY)))
grows = made(lambda: kept.append(bytearray(b"x" * 50_000)))
