"""The nodes of a document, with what they refer to (`{"$ref": "#/components/schemas/Item"}`) in their place.

What is looked at is charged to a budget, each time it is: a reference costs few letters and may be to anything.
"""

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote

from velodrome.plan.budget import Budget, SpentError, TooDeepError

MOST_HOPS = 32
"""A reference may lead to another; more of them are a circle."""
MOST_VALUES = 10_000
MOST_BYTES = 1_000_000
"""Of one operation, with all it refers to."""
DOCUMENT_VALUES = 200_000
DOCUMENT_BYTES = 8_000_000
"""Of all operations of a document together; a large one has more, in proportion."""
BYTES_A_VALUE = 20
LONGEST_NAME = 300
"""Letters of what is said of an operation."""

Node = Mapping[str, Any]


def valid(text: str) -> str:
    """Return text that can be written: JSON may hold halves of characters."""
    return text.encode(errors="replace").decode()


def plain(value: object) -> str:
    """Return a text, a number, true or false as text; nothing for a list or an object."""
    if isinstance(value, str):
        return value
    return json.dumps(value) if isinstance(value, int | float) else ""


def short(text: str) -> str:
    """Return text that a sentence may hold."""
    return text if len(text) <= LONGEST_NAME else f"{text[:LONGEST_NAME]}…"


class UnfillableError(Exception):
    """Raised for what cannot be filled in; the text is the reason, as told of what is left out."""

    def __init__(self, why: str) -> None:
        super().__init__(short(why))


class TooMuchError(UnfillableError):
    """Raised for an operation that comes to more than one may; no alternative is tried then."""


class References:
    """A document whose references are followed."""

    def __init__(self, root: Node, size: int = 0) -> None:
        """`size` is that of its text."""
        self.root = root
        self._all = Budget(DOCUMENT_VALUES + size // BYTES_A_VALUE, DOCUMENT_BYTES + size)
        self._one = Budget(MOST_VALUES, MOST_BYTES)

    def begin(self) -> None:
        """Charge what is looked at from now on to another operation."""
        self._one = Budget(MOST_VALUES, MOST_BYTES)

    def take(self, values: int, size: int = 0) -> None:
        """Charge what is looked at. Raises TooMuchError, and SpentError for the whole document."""
        try:
            self._one.take(values, size)
        except SpentError as error:
            self._all.take(1)  # it is not written out, so the rest costs nothing
            raise TooMuchError(f"it comes to more than {error} when it is written out") from error
        self._all.take(values, size)

    def take_whole(self, value: Any) -> Any:
        """Return a value of the document, charged with all that is in it. Raises what `take` does."""
        left = self._one.values, self._one.size
        try:
            self._one.take_whole(value)
        except SpentError as error:
            self._all.take(*left)
            raise TooMuchError(f"it comes to more than {error} when it is written out") from error
        except TooDeepError as error:
            raise UnfillableError("it is nested too deeply") from error
        self._all.take(left[0] - self._one.values, left[1] - self._one.size)
        return value

    @property
    def taken(self) -> tuple[int, int]:
        """Values and bytes that were charged to this operation."""
        return MOST_VALUES - self._one.values, MOST_BYTES - self._one.size

    def node(self, found: object) -> Node:
        """Return an object, or what it refers to. Raises UnfillableError for a reference that leads nowhere."""
        hops = 0
        self.take(1)
        while isinstance(found, Mapping) and isinstance(found.get("$ref"), str):
            hops += 1
            self.take(1, len(found["$ref"]))
            if hops > MOST_HOPS:
                raise UnfillableError(f"{found['$ref']} refers to itself")
            found = self._target(found["$ref"])
        return found if isinstance(found, Mapping) else {}

    def _target(self, pointer: str) -> object:
        if not pointer.startswith("#"):
            raise UnfillableError(f"{pointer} is in another document; put all into one")
        place: object = self.root
        # A JSON pointer in a fragment (RFC 6901, section 6).
        for part in unquote(pointer[1:]).split("/")[1:]:
            name = part.replace("~1", "/").replace("~0", "~")
            if isinstance(place, list) and name.isdecimal() and int(name[:9]) < len(place):
                place = place[int(name[:9])]
            elif isinstance(place, Mapping) and name in place:
                place = place[name]
            else:
                raise UnfillableError(f"{pointer} refers to nothing")
        return place
