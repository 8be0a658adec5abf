"""Rows of results as tables of pandas or polars, which are imported at the first use."""

import importlib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

from velodrome.model import quantity
from velodrome.model.errors import MissingLibraryError
from velodrome.report.typeset import visible

Row = Mapping[str, Any]
"""Column to value: a text, a number, a truth, or None."""


class Tabled(ABC):
    """What can be had as rows, and so as a table of either library."""

    @abstractmethod
    def rows(self) -> Sequence[Row]:
        """Return the rows, all with the same columns."""

    def to_pandas(self) -> Any:
        """Return the rows as a `pandas.DataFrame`. Raises MissingLibraryError."""
        return _library("pandas").DataFrame(list(map(dict, self.rows())))

    def to_polars(self) -> Any:
        """Return the rows as a `polars.DataFrame`. Raises MissingLibraryError."""
        # By all rows: a column that begins with missing values is a number all the same.
        return _library("polars").DataFrame(list(map(dict, self.rows())), infer_schema_length=None)


def _library(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise MissingLibraryError(name) from error


def table(
    title: str, heads: Sequence[str], rows: Iterable[Sequence[str]], sentences: Sequence[str] = ()
) -> str:
    """Return a table with sentences below it, as a piece of HTML."""
    head = "".join(f"<th>{_text(head)}</th>" for head in heads)
    body = "".join("<tr>" + "".join(f"<td>{_text(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    below = "".join(f"<p>{_text(sentence)}</p>" for sentence in sentences if sentence)
    return (
        f"<div><strong>{_text(title)}</strong><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        f"{below}</div>"
    )


def columns(rows: Sequence[Mapping[str, Any]]) -> tuple[list[str], list[list[str]]]:
    """Return the heads and the cells of rows, as `table` takes them; numbers with no more digits than people read."""
    return list(rows[0]) if rows else [], [[_cell(value) for value in row.values()] for row in rows]


def _cell(value: object) -> str:
    if value is None:
        return quantity.MISSING
    return quantity.number(value) if isinstance(value, float) else str(value)


def _text(text: str) -> str:
    return escape(visible(text))
