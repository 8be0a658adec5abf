"""Plain columns for a terminal: heads, then rows, the numbers under each other."""

from collections.abc import Collection, Sequence

from velodrome.report import typeset


def columns(heads: Sequence[str], rows: Sequence[Sequence[str]], left: Collection[str] = ()) -> list[str]:
    """Return the lines, the first column and those in `left` as words, the others aligned on the decimal point."""
    lines = [""] * (len(rows) + 1)
    for number, (head, column) in enumerate(zip(heads, zip(*rows, strict=True), strict=True)):
        words = number == 0 or head in left
        cells = [head, *(column if words else typeset.aligned(column))]
        width = max(map(len, cells))
        gap = "   " if number else " "
        for at, cell in enumerate(cells):
            lines[at] += gap + (f"{cell:<{width}}" if words else f"{cell:>{width}}")
    return [line.rstrip() for line in lines]
