"""The body of an operation: its example, or one made of its schema."""

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from velodrome.plan.asked.described.parameters import Filled
from velodrome.plan.asked.described.references import Node, References, UnfillableError
from velodrome.plan.asked.described.values import Filling

FORM = "application/x-www-form-urlencoded"
Body = tuple[str, bytes]
"""Content type, and the bytes."""


def of(references: References, operation: Node, filled: Filled) -> Body | None:
    """Return the body of an operation, None where it needs none. Raises UnfillableError."""
    if filled.body is not None:  # Swagger 2
        schema = filled.body.get("schema", {})
        return _written("application/json", Filling(references).value(schema, "body"))
    if filled.form:
        return _written(FORM, filled.form)
    told = references.node(operation.get("requestBody"))
    content = told.get("content")
    if not isinstance(content, Mapping) or not content:
        return None
    references.take(len(content))
    kind = next((name for name in content if _is_json(name)), FORM if FORM in content else None)
    if kind is None:
        if told.get("required") is True:
            raise UnfillableError(f"its body is {next(iter(content))}; JSON and forms are written")
        return None
    media = references.node(content[kind])
    return _written(kind, _value(references, media))


def _is_json(kind: str) -> bool:
    name = kind.partition(";")[0].strip().lower()
    return name == "application/json" or name.endswith("+json")


def _value(references: References, media: Node) -> Any:
    if "example" in media:
        return references.take_whole(media["example"])
    examples = media.get("examples")
    if isinstance(examples, Mapping):
        for one in examples.values():
            if "value" in (told := references.node(one)):
                return references.take_whole(told["value"])
    return Filling(references).value(media.get("schema", {}), "body")


def _written(kind: str, value: Any) -> Body:
    if kind == FORM:
        if not isinstance(value, dict):
            raise UnfillableError("its body is a form and no object")
        return kind, urlencode(value, doseq=True, safe="{}", errors="replace").encode()
    # An example of an object may be told as its text.
    text = value if isinstance(value, str) and value[:1] in ("{", "[") else json.dumps(value)
    return kind, text.encode(errors="replace")
