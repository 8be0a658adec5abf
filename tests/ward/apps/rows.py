"""`n-plus-one`: a statement for each of the rows that another one returned; and cured, one for all of them."""

import sqlite3
import tempfile
from pathlib import Path

from answering import answering

_FILE = Path(tempfile.mkdtemp(prefix="rows-")) / "shop.db"


def _connected():
    return sqlite3.connect(_FILE, check_same_thread=False)


with _connected() as _made:
    _made.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY, customer INTEGER)")
    _made.execute("CREATE TABLE lines (id INTEGER PRIMARY KEY, number INTEGER, note TEXT)")
    _made.executemany("INSERT INTO orders (customer) VALUES (?)", [(number % 7,) for number in range(700)])
    _made.executemany(
        "INSERT INTO lines (number, note) VALUES (?, ?)",
        [(1 + number % 700, "x" * 40) for number in range(7000)],
    )
_connection = _connected()


def _rows(count):
    found = _connection.execute("SELECT id FROM orders LIMIT ?", (count,)).fetchall()
    return [
        _connection.execute("SELECT note FROM lines WHERE number = ?", (number,)).fetchall()
        for (number,) in found
    ]


async def twenty_and_one():
    _rows(20)


async def five_and_one():
    _rows(5)


async def joined():
    _connection.execute(
        "SELECT number, note FROM lines WHERE number IN (SELECT id FROM orders LIMIT ?)", (20,)
    ).fetchall()


severe, mild, cured = answering(twenty_and_one), answering(five_and_one), answering(joined)
