"""Text folded to a width: paragraphs, and rows of a table whose cells take several lines."""

import textwrap
from collections.abc import Sequence

from rich.text import Text


def paragraph(text: str, width: int, indent: int = 3, style: str = "") -> list[Text]:
    """Return the lines of a text, each with `indent` blanks before it, in a terminal of `width` columns."""
    margin = " " * indent
    wrapped = textwrap.wrap(text, width - 1, initial_indent=margin, subsequent_indent=margin)
    return [Text(line, style=style) for line in wrapped]


def rows(cells: Sequence[str], sizes: Sequence[int]) -> list[list[str]]:
    """Return the lines that a row of a table takes, each as its cells; none is longer than its column's size."""
    parts = [textwrap.wrap(cell, size) or [""] for cell, size in zip(cells, sizes, strict=True)]
    return [[part[at] if at < len(part) else "" for part in parts] for at in range(max(map(len, parts)))]
