"""What every database holds for `query` and `write` steps: two tables of some thousand rows.

`velodrome_item` is read, `velodrome_note` is written; a row is found by its primary key, 1 to `ROWS`. They are
apart so that readers never wait for writers. A store of keys and values (Redis) holds each row as one text under one
key. The names tell whose they are: a database may be the user's own.
"""

from __future__ import annotations

import itertools
import os
import random
import sys
from typing import Dict, Iterator, List, Set, Tuple

from velodrome.guest.client import ROWS

PAYLOAD = 100
"""Characters of text in a row."""

CREATE = (
    "CREATE TABLE IF NOT EXISTS velodrome_item"
    " (id INTEGER PRIMARY KEY, name VARCHAR(40) NOT NULL, body VARCHAR(200) NOT NULL)",
    "CREATE TABLE IF NOT EXISTS velodrome_note"
    " (id INTEGER PRIMARY KEY, version INTEGER NOT NULL, body VARCHAR(200) NOT NULL)",
)
COUNT = ("SELECT COUNT(*) FROM velodrome_item", "SELECT COUNT(*) FROM velodrome_note")
CLEAR = ("DELETE FROM velodrome_item", "DELETE FROM velodrome_note")


def fill(mark: str) -> Tuple[Tuple[str, List[Tuple[int, object, str]]], ...]:
    """Return the statements that fill the tables, each with its rows; `mark` is how a parameter is written."""
    marks = ", ".join([mark] * 3)
    keys = range(1, ROWS + 1)
    return (
        ("INSERT INTO velodrome_item VALUES (%s)" % marks, [(key, "item %d" % key, text()) for key in keys]),
        ("INSERT INTO velodrome_note VALUES (%s)" % marks, [(key, 0, text()) for key in keys]),
    )


def text() -> str:
    """Return what is in a row."""
    return "x" * PAYLOAD


def select(first: str, last: str, source: str = "velodrome_item") -> str:
    """Return the statement that reads rows; `first` and `last` are how those parameters are written."""
    return "SELECT id, name, body FROM %s WHERE id BETWEEN %s AND %s" % (source, first, last)


def update(first: str, last: str) -> str:
    """Return the statement that changes rows. The version counts, so that each is changed every time."""
    return "UPDATE velodrome_note SET version = version + 1 WHERE id BETWEEN %s AND %s" % (first, last)


def update_in_order(first: str, last: str) -> str:
    """Return the same for a database that visits rows in an order of its own: it locks them by key first.

    Two statements that lock the same rows in different orders wait for each other, and one of them is ended.
    """
    rows = "SELECT id FROM velodrome_note WHERE id BETWEEN %s AND %s ORDER BY id FOR UPDATE" % (first, last)
    return "UPDATE velodrome_note SET version = version + 1 WHERE id IN (%s)" % rows


def spans(rows: int) -> Iterator[Tuple[int, int]]:
    """Yield first and last key of `rows` rows without end, from another first key each time.

    Raises ValueError if a table is not that long. Each process has an order of its own: writers that met at the
    same rows in step would wait for each other's locks.
    """
    if not 1 <= rows <= ROWS:
        raise ValueError("%d rows; the tables have 1 to %d to give" % (rows, ROWS))
    keys = list(range(1, ROWS + 2 - rows))
    random.Random("%d/%d" % (os.getpid(), rows)).shuffle(keys)
    return itertools.cycle([(key, key + rows - 1) for key in keys])


_warned: Set[str] = set()


def tell(client: str, error: BaseException) -> None:
    """Write the first failure of a client to standard error; under load there would be thousands."""
    if client not in _warned:
        _warned.add(client)
        sys.stderr.write(
            "%s: %s: %s\n" % (client, type(error).__name__, str(error).strip() or "no reason given")
        )


def key_of_item(key: int) -> str:
    """Return the key of a row that is read."""
    return "velodrome:item:%d" % key


def key_of_note(key: int) -> str:
    """Return the key of a row that is written."""
    return "velodrome:note:%d" % key


def key_contents() -> Dict[str, str]:
    """Return all that has to be there before a server gets requests."""
    keys = range(1, ROWS + 1)
    return {**{key_of_item(key): "item %d %s" % (key, text()) for key in keys},
            **{key_of_note(key): text() for key in keys}}  # fmt: skip


def keys_to_read(rows: int) -> Iterator[List[str]]:
    """Yield the keys of `rows` rows to read, without end."""
    return ([key_of_item(key) for key in range(first, last + 1)] for first, last in spans(rows))


def keys_to_write(rows: int) -> Iterator[Dict[str, str]]:
    """Yield `rows` rows to write, without end."""
    note = text()
    return ({key_of_note(key): note for key in range(first, last + 1)} for first, last in spans(rows))
