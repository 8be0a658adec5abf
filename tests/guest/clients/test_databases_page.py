"""The page on databases names every client, for whom it is, and when it is the default."""

import re
from pathlib import Path

from velodrome.guest import client

PAGE = (Path(__file__).parents[3] / "docs" / "databases.md").read_text()


def test_every_client_has_a_row_that_says_what_it_is() -> None:
    rows = dict(re.findall(r"^\| `([a-z0-9-]+)` \| (\w+ \| .*?) \|", PAGE, re.MULTILINE))
    expected = {
        name: f"{entry.database} | {'await' if entry.awaits else 'block'}{' (default)' if entry.default else ''}"
        for name, entry in client.clients().items()
    }
    assert rows == expected


def test_the_bounds_are_those_of_the_code() -> None:
    assert f"at most {client.CONNECTIONS} connections" in PAGE
    assert f"Two tables of {client.ROWS} rows" in PAGE
    for name in client.databases():
        assert name == "sqlite" or client.variable(name) in PAGE
