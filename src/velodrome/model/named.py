"""A thing that a study or a file of requests names, and that is executed, installed or read because of it."""

from dataclasses import dataclass
from enum import StrEnum


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
