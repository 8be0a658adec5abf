"""The parameters of an operation, filled in: in its path, its query, its headers.

A parameter is asked by what the document says of it: an example, a default, its choices (each as often), the least
number it allows. One that says nothing of the kind cannot be guessed: an item called `string` is not there. What need
not be given is given only where it has an example.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from velodrome.plan.asked.described import values
from velodrome.plan.asked.described.references import Node, References, UnfillableError, plain

UNSAID = ("accept", "content-type", "authorization", "cookie")
"""Headers that a document may not tell as parameters (OpenAPI 3.1.0, section 4.8.12.2), and one made of others."""


@dataclass
class Filled:
    """Where the parameters went."""

    path: dict[str, str] = field(default_factory=dict)
    query: list[str] = field(default_factory=list)
    headers: list[tuple[str, str]] = field(default_factory=list)
    form: dict[str, Any] = field(default_factory=dict)
    """Of a form, as Swagger 2 tells it."""
    body: Node | None = None
    """The body as a parameter, as Swagger 2 tells it."""


def fill(references: References, *lists: object) -> Filled:
    """Fill in parameters; one of a later list is in the place of one of an earlier. Raises UnfillableError."""
    found: dict[tuple[str, str], Node] = {}
    for one in lists:
        for told in one if isinstance(one, list) else []:
            node = references.node(told)
            where, name = plain(node.get("in")), plain(node.get("name"))
            references.take(1, len(name))
            found[where, name] = node
    filled, cookies = Filled(), []
    for (where, name), node in found.items():
        if where == "body":
            filled.body = node
        if where == "body" or (where == "header" and name.lower() in UNSAID):
            continue
        needed = node.get("required") is True or where == "path"
        texts = [*_texts(references, node, name, needed=needed)]
        if not texts:
            continue
        if where == "path":
            filled.path[name] = _one(texts, joined=",")
        elif where == "query":
            filled.query += _in_query(node, name, texts)
        elif where == "header":
            filled.headers.append((name, _one(texts, joined=",", escape=False)))
        elif where == "cookie":
            cookies.append(f"{name}={_one(texts, joined=',')}")
        elif where == "formData":
            filled.form[name] = texts[0][0]
    if cookies:
        filled.headers.append(("Cookie", "; ".join(cookies)))
    return filled


def _texts(references: References, node: Node, name: str, *, needed: bool) -> Iterator[list[str]]:
    """Yield each choice as its parts: one, unless it is an array."""
    schema = references.node(_schema(node))
    example = _example(references, node)
    if example is not None:
        yield _parts(references.take_whole(example), name)
        return
    if not needed and "example" not in schema and "examples" not in schema:
        return
    told = [*values.said(schema)][:1] or values.choices(schema) or [*_least(references, schema)]
    if not told:
        raise UnfillableError(f"parameter {name} has no example, default, enum or minimum")
    for value in told:
        yield _parts(references.take_whole(value), name)


def _schema(node: Node) -> object:
    """Return the schema, which Swagger 2 writes into the parameter itself."""
    content = node.get("content")
    if isinstance(content, Mapping) and content:
        media = next(iter(content.values()))
        return media.get("schema", {}) if isinstance(media, Mapping) else {}
    return node.get("schema", node)


def _example(references: References, node: Node) -> Any:
    """Return the example beside the schema."""
    if "schema" in node and "example" in node:
        return node["example"]
    examples = node.get("examples")
    if isinstance(examples, Mapping):
        for one in examples.values():
            if "value" in (told := references.node(one)):
                return told["value"]
    return None


def _least(references: References, schema: Node) -> Iterator[Any]:
    """Yield what the schema allows, where that is so little that each will do."""
    kind = values.kind(schema)
    if kind == "boolean":
        yield from (False, True)
    elif kind in ("integer", "number") and (least := values.number(schema)) is not None:
        yield least
    elif kind == "array" and "items" in schema:
        items = references.node(schema["items"])
        yield from ([one] for one in [*values.said(items)][:1] or values.choices(items))
    else:
        for name in ("allOf", "anyOf", "oneOf"):
            parts = schema.get(name)
            for part in parts if isinstance(parts, list) else []:
                node = references.node(part)
                if told := [*values.said(node)][:1] or values.choices(node):
                    yield from told
                    return


def _parts(value: Any, name: str) -> list[str]:
    if isinstance(value, list):
        return [part for one in value for part in _parts(one, name)]
    if isinstance(value, dict):
        raise UnfillableError(f"parameter {name} is an object; write the request yourself")
    return [value if isinstance(value, str) else json.dumps(value)]


def _one(texts: list[list[str]], joined: str, *, escape: bool = True) -> str:
    """Return one text, or a template that picks from several."""
    if escape:
        texts = [[quote(part, safe="", errors="replace") for part in parts] for parts in texts]
    elif any(mark in part for parts in texts for part in parts for mark in "|{}"):
        texts = texts[:1]  # these mean something in a template
    words = [joined.join(parts) for parts in texts]
    return words[0] if len(words) == 1 else f"{{{{pick {'|'.join(words)}}}}}"


def _in_query(node: Node, name: str, texts: list[list[str]]) -> list[str]:
    apart = node.get("explode", node.get("collectionFormat", "multi") == "multi") is not False
    key = quote(name, safe="", errors="replace")
    if apart and len(texts) == 1:
        return [f"{key}={quote(part, safe='', errors='replace')}" for part in texts[0]]
    return [f"{key}={_one(texts, joined=',')}"]
