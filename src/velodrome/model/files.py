"""What a file that somebody wrote has in it: problems, and what is executed, installed or read because it names it."""

from dataclasses import dataclass
from enum import StrEnum


@dataclass(frozen=True, order=True)
class Problem:
    """Where, what, and what to write instead. Lines and columns are counted from 1, columns in characters."""

    line: int
    column: int
    sentence: str
    """`questions[0].loads[1].rate: -5 is not a rate; give requests per second above 0`."""


class Deed(StrEnum):
    """What is done with a thing that is named."""

    EXECUTES = "executes"
    INSTALLS = "installs"
    READS = "reads and sends"


@dataclass(frozen=True)
class Named:
    """One thing that a file names."""

    deed: Deed
    what: str
    """An executable or a file as it is written there; packages as sorted requirements."""
    place: str
    """Where in the file: `contestant tornado-5.1`, `request order, body`."""

    @property
    def sentence(self) -> str:
        """`executes './x.sh' (contestant old)`, with control characters escaped."""
        return f"{self.deed} {self.what!r} ({ascii(self.place)[1:-1]})"
