"""A value for a schema: its example, default, constant or first choice, else the least it allows.

    {"type": "integer", "minimum": 7}                                     ->  7
    {"type": "object", "required": ["id"], "properties": {"id": …}}       ->  {"id": …}

JSON Schema as of OpenAPI 3.1, 3.0 and Swagger 2; a schema may hold itself, so depth and size have bounds.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from itertools import chain, islice
from typing import Any, TypeGuard

from velodrome.plan.asked.described.references import (
    Node,
    References,
    TooMuchError,
    UnfillableError,
    short,
)

DEEPEST = 16
MOST_CHOICES = 100
MOST_ITEMS = 100
LONGEST_TEXT = 10_000
FORMATS: Mapping[str, str] = {
    "date": "2026-01-01",
    "date-time": "2026-01-01T12:00:00Z",
    "time": "12:00:00Z",
    "duration": "P1D",
    "email": "somebody@example.com",
    "uuid": "{{uuid}}",
    "uri": "https://example.com/",
    "url": "https://example.com/",
    "hostname": "example.com",
    "ipv4": "192.0.2.1",
    "ipv6": "2001:db8::1",
    "byte": "AA==",
}
"""Text of a form that a validator checks; a UUID is filled in anew each time, as a template."""


def said(schema: Node) -> Iterator[Any]:
    """Yield the values that the schema itself tells, the one most meant first."""
    if "example" in schema:
        yield schema["example"]
    examples = schema.get("examples")
    if isinstance(examples, list):
        yield from examples[:1]
    for name in ("default", "const"):
        if name in schema:
            yield schema[name]


def choices(schema: Node) -> list[Any]:
    """Return the first that may be chosen from."""
    found = schema.get("enum")
    first = islice(found, MOST_CHOICES + 1) if isinstance(found, list) else ()
    return [one for one in first if one is not None][:MOST_CHOICES]


def kind(schema: Node) -> str:
    """Return its type; the first that is not null where it has several; nothing where it says none."""
    found = schema.get("type")
    if isinstance(found, list):
        found = next((one for one in found[:10] if one != "null"), "null")
    if isinstance(found, str):
        return found
    return "object" if "properties" in schema else "array" if "items" in schema else ""


def number(schema: Node) -> int | float | None:
    """Return the least that it allows; None where it says no least."""
    low, above = schema.get("minimum"), schema.get("exclusiveMinimum")
    # OpenAPI 3.0 says by true or false whether the minimum itself is out; 3.1 has a number of its own for that.
    if above is True:
        above = low
    least = [float(low)] if _is_number(low) and above is not low else []
    whole = kind(schema) == "integer"
    if _is_number(above):
        most = schema.get("maximum", schema.get("exclusiveMaximum"))
        narrow = not whole and _is_number(most) and most <= above + 1
        least.append((above + most) / 2 if narrow and _is_number(most) else float(above) + 1)
    if not least:
        return None
    found = max(least)
    step = schema.get("multipleOf")
    if _is_number(step) and step > 0 and math.isfinite(found / step):
        found = math.ceil(found / step) * float(step)
    return math.ceil(found) if whole else found


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e15


class Filling:
    """Fills in one body, schema within schema."""

    def __init__(self, references: References) -> None:
        self._references = references
        self._within: list[object] = []
        """References that are being filled in."""

    def value(self, schema: object, name: str, depth: int = 0) -> Any:
        """Return a value for `schema`, which `name` is called by. Raises UnfillableError."""
        self._references.take(1, len(name))
        if depth > DEEPEST:
            raise UnfillableError(f"{name} is too deep")
        reference = schema.get("$ref") if isinstance(schema, Mapping) else None
        if not isinstance(reference, str):
            return self._of(schema, name, depth)
        if reference in self._within:
            raise UnfillableError(f"{name} holds itself")
        self._within.append(reference)
        try:
            return self._of(schema, name, depth)
        finally:
            self._within.pop()

    def _of(self, schema: object, name: str, depth: int) -> Any:
        node = self._references.node(schema)
        for found in chain(said(node), choices(node)):
            return self._references.take_whole(found)
        if parts := _list(node, "allOf"):
            return self._merged(node, parts, name, depth)
        for alternatives in (_list(node, "oneOf"), _list(node, "anyOf")):
            if alternatives:
                return self._first_of(alternatives, name, depth)
        fill = self._kinds.get(kind(node))
        if fill is None:
            raise UnfillableError(f"{name} has neither an example nor a type")
        return fill(self, node, name, depth)

    def _merged(self, node: Node, parts: list[Any], name: str, depth: int) -> Any:
        values = [self.value(part, name, depth + 1) for part in parts]
        if "properties" in node:
            values.append(self._object(node, name, depth))
        whole = [value for value in values if isinstance(value, dict)]
        return {key: value for one in whole for key, value in one.items()} if whole else values[0]

    def _first_of(self, alternatives: list[Any], name: str, depth: int) -> Any:
        why = UnfillableError(f"{name} is null")
        for one in alternatives:
            if kind(self._references.node(one)) == "null":
                continue
            try:
                return self.value(one, name, depth + 1)
            except TooMuchError:
                raise
            except UnfillableError as error:
                why = error
        raise why

    def _object(self, node: Node, name: str, depth: int) -> dict[str, Any]:
        properties = node.get("properties")
        properties = properties if isinstance(properties, Mapping) else {}
        required = {one: None for one in self._charged(_list(node, "required")) if isinstance(one, str)}
        found = {}
        for key, schema in properties.items():
            told = self._references.node(schema)
            if told.get("readOnly") is True:
                continue
            if key in required or "example" in told or "examples" in told:
                self._references.take(0, len(key))
                found[key] = self.value(schema, f"{name}.{short(key)}", depth + 1)
        for key in required:
            if key not in properties:
                raise UnfillableError(f"{name}.{key} is required and not described")
        return found

    def _array(self, node: Node, name: str, depth: int) -> list[Any]:
        least = node.get("minItems")
        count = least if isinstance(least, int) and least > 0 else 0
        if count > MOST_ITEMS:
            raise UnfillableError(f"{name} has at least {count} items")
        if "items" not in node:
            return []
        before = self._references.taken
        try:
            one = self.value(node["items"], f"{name}[]", depth + 1)
        except TooMuchError:
            raise
        except UnfillableError:
            if count == 0:
                return []
            raise
        values, size = (now - then for now, then in zip(self._references.taken, before, strict=True))
        # It is one object here, and as many as there are items where it is written.
        again = max(count, 1) - 1
        self._references.take(values * again, size * again)
        return [one] * max(count, 1)

    def _charged(self, items: list[Any]) -> list[Any]:
        self._references.take(len(items))
        return items

    def _number(self, node: Node, name: str, depth: int) -> int | float:
        least = number(node)
        if least is not None:
            return least
        most = node.get("maximum")
        return math.floor(most) if _is_number(most) and float(most) < 1 else 1

    def _text(self, node: Node, name: str, depth: int) -> str:
        if "pattern" in node:
            raise UnfillableError(f"{name} has a pattern and no example")
        form = node.get("format")
        if isinstance(form, str) and form in FORMATS:
            return FORMATS[form]
        least, most = node.get("minLength"), node.get("maxLength")
        length = least if isinstance(least, int) and least > 0 else 1
        if length > LONGEST_TEXT:
            raise UnfillableError(f"{name} has at least {length} letters")
        word = name.rpartition(".")[2].removesuffix("[]")
        self._references.take(0, length)
        text = word if len(word) >= length else word + "x" * (length - len(word))
        return text[:most] if isinstance(most, int) and most >= 0 else text

    def _truth(self, node: Node, name: str, depth: int) -> bool:
        return True

    _kinds: Mapping[str, Callable[..., Any]] = {
        "object": _object,
        "array": _array,
        "integer": _number,
        "number": _number,
        "string": _text,
        "boolean": _truth,
    }


def _list(node: Node, name: str) -> list[Any]:
    found = node.get(name)
    return found if isinstance(found, list) else []
