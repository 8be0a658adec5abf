"""Where code stands in its source: which line and columns an instruction is of, and which node of a tree.

    position(code, frame.f_lasti)        -> Place(line=12, end_line=12, column=8, end_column=20)
    position(…).is_at(node)

Instructions know their columns from Python 3.11 on (`code.co_positions`), nodes their end from 3.8 on.
"""

from __future__ import annotations

import ast
import dis
from types import CodeType
from typing import Any, Mapping, NamedTuple, Optional, Union


class Place(NamedTuple):
    """Where an expression stands: lines from 1, columns in bytes from 0."""

    line: int
    end_line: int
    column: Optional[int] = None
    end_column: Optional[int] = None

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> Place:
        """Return the place that a document describes, whatever else it says."""
        return cls(**{name: data[name] for name in cls._fields if name in data})

    def is_at(self, node: Union[ast.Call, ast.Await]) -> bool:
        """Whether a node is the one meant; without columns each that begins on the line may be."""
        if self.column is None:
            return node.lineno == self.line
        lines = (node.lineno, getattr(node, "end_lineno", None))
        columns = (node.col_offset, getattr(node, "end_col_offset", None))
        return (*lines, *columns) == self


def position(code: CodeType, instruction: int, at: Optional[int] = None) -> Place:
    """Return where the expression of an instruction stands; `at` is its line, where that is known."""
    positions = getattr(code, "co_positions", None)
    if positions is not None and instruction >= 0:
        for number, (line, end_line, column, end_column) in enumerate(positions()):
            if number == instruction // 2 and line is not None:
                return Place(line, end_line or line, column, end_column)
    begun = [line for start, line in dis.findlinestarts(code) if start <= instruction and line is not None]
    line = at or (begun[-1] if begun else code.co_firstlineno)
    return Place(line, line)
