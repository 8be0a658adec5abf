"""The rows as a store of keys and values holds them (Redis): one text under one key."""

from __future__ import annotations

from typing import Dict, Iterator, List

from velodrome.guest.client import ROWS
from velodrome.guest.clients import _tables


def item(key: int) -> str:
    """Return the key of a row that is read."""
    return "velodrome:item:%d" % key


def note(key: int) -> str:
    """Return the key of a row that is written."""
    return "velodrome:note:%d" % key


def contents() -> Dict[str, str]:
    """Return all that has to be there before a server is asked."""
    keys = range(1, ROWS + 1)
    return {**{item(key): "item %d %s" % (key, _tables.text()) for key in keys},
            **{note(key): _tables.text() for key in keys}}  # fmt: skip


def read(rows: int) -> Iterator[List[str]]:
    """Yield the keys of `rows` rows to read, without end."""
    return ([item(key) for key in range(first, last + 1)] for first, last in _tables.spans(rows))


def written(rows: int) -> Iterator[Dict[str, str]]:
    """Yield `rows` rows to write, without end."""
    text = _tables.text()
    return ({note(key): text for key in range(first, last + 1)} for first, last in _tables.spans(rows))
