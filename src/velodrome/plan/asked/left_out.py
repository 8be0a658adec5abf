"""What a log or a document tells of and is not asked."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class LeftOut:
    """Requests that are not in the mix, and why."""

    what: str
    """`POST /orders`, `answers of status 404`."""
    requests: int
    """How many of a log; operations of a document count one each."""
    why: str
    """And what can be done, if anything."""


MOST_SHOWN = 5


def sentence(left_out: Sequence[LeftOut], most: int = MOST_SHOWN) -> str:
    """Return the greatest of them in one line, for an error."""
    greatest = sorted(left_out, key=lambda one: -one.requests)
    more = f"; and {len(greatest) - most} more" if len(greatest) > most else ""
    return "; ".join(f"{one.what} ({one.why})" for one in greatest[:most]) + more
