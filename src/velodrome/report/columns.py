"""Plain columns for a terminal: heads, then rows, the numbers under each other."""

from collections.abc import Sequence

from velodrome.report import typeset


def columns(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the lines, the first column at the left, the others aligned on the decimal point."""
    texts = [list(column) for column in zip(*rows, strict=True)]
    texts[1:] = [typeset.aligned(column) for column in texts[1:]]
    widths = [max(len(head), *map(len, column)) for head, column in zip(heads, texts, strict=True)]
    lines = []
    for cells in (heads, *zip(*texts, strict=True)):
        first = f" {cells[0]:<{widths[0]}}"
        rest = "".join(f"   {cell:>{width}}" for cell, width in zip(cells[1:], widths[1:], strict=True))
        lines.append((first + rest).rstrip())
    return lines
