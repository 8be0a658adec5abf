"""Rows become tables of pandas and polars: which columns and rows these libraries are given, without them."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from types import MappingProxyType, ModuleType
from typing import Any

import pytest

from velodrome.api.tables import Row, Tabled
from velodrome.model.errors import MissingLibraryError


class Loads(Tabled):
    """The first block has no p99; its rows cannot be changed."""

    def rows(self) -> Sequence[Row]:
        first = {"stack": "waitress", "valid": True, "p99_ms": None}
        second = {"stack": "waitress", "valid": True, "p99_ms": 4.5}
        return [MappingProxyType(first), MappingProxyType(second)]


@dataclass
class Given:
    """What a library was called with."""

    rows: list[dict[str, Any]]
    options: dict[str, Any]


def library(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Put a module in its place whose DataFrame keeps what it is given."""
    stand_in = ModuleType(name)
    vars(stand_in)["DataFrame"] = lambda rows, **options: Given(rows, options)
    monkeypatch.setitem(sys.modules, name, stand_in)


ROWS = [
    {"stack": "waitress", "valid": True, "p99_ms": None},
    {"stack": "waitress", "valid": True, "p99_ms": 4.5},
]


def test_pandas_gets_every_row_with_every_column_in_their_order(monkeypatch: pytest.MonkeyPatch) -> None:
    library(monkeypatch, "pandas")
    given = Loads().to_pandas()
    assert given == Given(ROWS, {})
    assert {type(row) for row in given.rows} == {dict}
    assert [list(row) for row in given.rows] == [["stack", "valid", "p99_ms"]] * 2


def test_polars_reads_all_rows_before_it_takes_a_column_for_one_of_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    library(monkeypatch, "polars")
    given = Loads().to_polars()
    assert given == Given(ROWS, {"infer_schema_length": None})
    assert {type(row) for row in given.rows} == {dict}


@pytest.mark.parametrize("name", ["pandas", "polars"])
def test_a_library_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setitem(sys.modules, name, None)  # as Python notes that there is none
    with pytest.raises(MissingLibraryError, match=name):
        getattr(Loads(), f"to_{name}")()
