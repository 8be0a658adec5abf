"""One thing wrong with a file somebody wrote."""

from dataclasses import dataclass


@dataclass(frozen=True, order=True)
class Problem:
    """Where, what, and what to write instead. Lines and columns are counted from 1, columns in characters."""

    line: int
    column: int
    sentence: str
    """`questions[0].loads[1].rate: -5 is not a rate; give requests per second above 0`."""
