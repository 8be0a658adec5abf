"""Rows of results as tables of pandas or polars, which are imported when somebody asks for one."""

import importlib
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from velodrome.model.errors import MissingLibraryError

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
