"""What one try to get an answer came to, where it is not a right one."""

from dataclasses import dataclass

UNFINISHED = "it takes the connection but does not finish an answer"


@dataclass(frozen=True)
class Wrong:
    """An answer came and it is not the right one."""

    what: str
