"""The nodes of a document, with what they refer to (`{"$ref": "#/components/schemas/Item"}`) in their place."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote

MOST_HOPS = 32
"""A reference may lead to another; more of them are a circle."""

Node = Mapping[str, Any]


def valid(text: str) -> str:
    """Return text that can be written: JSON may hold halves of characters."""
    return text.encode(errors="replace").decode()


class UnfillableError(Exception):
    """Raised for what cannot be filled in; the text is the reason, as told of what is left out."""


class References:
    """A document whose references are followed."""

    def __init__(self, root: Node) -> None:
        self.root = root

    def node(self, found: object) -> Node:
        """Return an object, or what it refers to. Raises UnfillableError for a reference that leads nowhere."""
        hops = 0
        while isinstance(found, Mapping) and isinstance(found.get("$ref"), str):
            hops += 1
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
