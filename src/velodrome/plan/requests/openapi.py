"""The requests of an OpenAPI document: 3.0, 3.1 or Swagger 2, as JSON or YAML.

    read(Path("openapi.json"))  ->  OpenApi("Shop", (Request("GET /items/{id}", "/api/items/7"), …), left_out=(…))

Each operation has the same weight: a document does not say how often it is called. Its parameters and body are their
examples, or values made from their schemas. What cannot be filled in from the document is left out, with the reason.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain, islice
from pathlib import Path
from typing import Any, TypeGuard
from urllib.parse import quote, urlencode, urlsplit

from velodrome.model.app import Content, Request
from velodrome.model.errors import OpenApiError, TooLargeError
from velodrome.plan import untrusted
from velodrome.plan.requests import document, lines
from velodrome.plan.requests.document import (
    Node,
    References,
    TooMuchError,
    UnfillableError,
    plain,
    short,
    valid,
)
from velodrome.plan.requests.lines import SAFE, LeftOut, left_out_sentence

YAML = (".yaml", ".yml")
MOST_LISTED = 500
"""Operations that are left out, each with its reason."""


@dataclass(frozen=True)
class OpenApi:
    """The requests that a document describes."""

    title: str
    requests: tuple[Request, ...]
    left_out: tuple[LeftOut, ...]

    def sentences(self) -> Iterator[str]:
        """Yield sentences on the mix, and on what is left out of it."""
        whole = len(self.requests) + len(self.left_out)
        yield f"{len(self.requests)} of {whole} operations, each as often as the others"
        for omission in self.left_out[:MOST_LISTED]:
            yield f"left out: {omission.what}: {omission.why}"
        if len(self.left_out) > MOST_LISTED:
            yield f"left out: {len(self.left_out) - MOST_LISTED} more"


def read(path: Path, methods: Collection[str] = SAFE) -> OpenApi:
    """Return what the document at `path` has of operations with these methods.

    Raises OpenApiError for a file that cannot be read, is no such document, or leaves nothing to ask, and TooLargeError
    for a document that is, or stands for, more than is read.
    """
    root, size = _document(path)
    wanted = {method.upper() for method in methods}
    requests: list[Request] = []
    left_out: list[LeftOut] = []
    place = "#/paths"
    try:
        for operation in operations_of(References(root, size)):
            place = operation.place
            try:
                requests.append(_request(operation, wanted, len(requests)))
            except UnfillableError as error:
                left_out.append(LeftOut(short(operation.name), 1, valid(str(error))))
    except untrusted.SpentError as error:
        raise TooLargeError(str(path), place, f"{error} of operations that are written out") from error
    if not requests:
        why = (
            f"it leaves nothing to request: {left_out_sentence(left_out)}"
            if left_out
            else "it describes no operation"
        )
        raise OpenApiError(str(path), why)
    info = root.get("info")
    title = plain(info.get("title")) if isinstance(info, Mapping) else ""
    return OpenApi(valid(short(title)), tuple(requests), tuple(left_out))


def _request(operation: Operation, wanted: Collection[str], before: int) -> Request:
    """Return the request of an operation, before which there are so many others. Raises UnfillableError."""
    if operation.method not in wanted:
        raise UnfillableError("not among --methods; it may change data")
    if before >= lines.MOST:
        raise UnfillableError(f"a mix has {lines.MOST} requests at most")
    return operation.request()


def _document(path: Path) -> tuple[Node, int]:
    """Return the document with the letters of its text."""
    try:
        text = untrusted.contents(path).decode("utf-8-sig")
    except OSError as error:
        raise OpenApiError(str(path), f"it cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise OpenApiError(str(path), f"it is no text (UTF-8): {error.reason}") from error
    try:
        root = document.parse_document(text, as_yaml=path.suffix.lower() in YAML)
    except document.UnreadableError as error:
        raise OpenApiError(str(path), str(error)) from error
    except document.OverflowingError as error:
        raise TooLargeError(str(path), error.place, error.budget) from error
    # YAML takes the unquoted version 2.0 for a number.
    if not isinstance(root, dict) or not isinstance(root.get("openapi", root.get("swagger")), str | float):
        raise OpenApiError(str(path), "it is no OpenAPI document: it has no field 'openapi' with its version")
    return root, len(text)


OPERATIONS = ("get", "head", "options", "post", "put", "patch", "delete", "trace")
_PLACE = re.compile(r"\{([^{}]*)\}")


@dataclass(frozen=True)
class Operation:
    """One method of one path."""

    references: References
    method: str
    path: str
    """With `{name}` for what a parameter fills in."""
    node: Node
    around: Node
    """What the document says of all operations of the path."""

    @property
    def name(self) -> str:
        """`GET /items/{id}`."""
        return valid(f"{self.method} {self.path}")

    @property
    def place(self) -> str:
        """Where it stands, as a JSON pointer."""
        path = short(self.path).replace("~", "~0").replace("/", "~1")
        return f"#/paths/{valid(path)}/{self.method.lower()}"

    def request(self) -> Request:
        """Return it filled in. Raises UnfillableError, and SpentError where the document's budget is spent."""
        self.references.begin()
        self.references.take(1, len(self.path))
        if scheme := self._needed_security():
            raise UnfillableError(
                f"it needs authorization ({scheme}); write the request with its header yourself"
            )
        if self._is_endless():
            raise UnfillableError("it answers with a stream of events, which has no end")
        filled = fill(self.references, self.around.get("parameters"), self.node.get("parameters"))
        body = None
        if self.method not in ("GET", "HEAD"):
            body = body_of(self.references, self.node, filled)
        headers = [*filled.headers, *([("Content-Type", body[0])] if body else [])]
        path = self._base() + self._fill(filled.path)
        request = Request(
            name=self.name,
            path=path + (f"?{'&'.join(filled.query)}" if filled.query else ""),
            method=self.method,
            headers=tuple((valid(name), valid(value)) for name, value in headers),
            body=Content.of(body[1]) if body else None,
            expect_status=self._status(),
        )
        if (wrong := next(lines.faults_of(request), None)) is not None:
            raise UnfillableError(wrong)
        return request

    def _fill(self, given: Mapping[str, str]) -> str:
        def value(found: re.Match[str]) -> str:
            if found[1] not in given:
                raise UnfillableError(f"the path's {{{found[1]}}} is not among its parameters")
            self.references.take(1, len(given[found[1]]))
            return given[found[1]]

        around = [
            quote(part, safe="/:@!$&'()*+,;=~-._%", errors="replace") for part in _PLACE.split(self.path)[::2]
        ]
        names = [value(found) for found in _PLACE.finditer(self.path)]
        whole = "".join(part for pair in zip(around, [*names, ""], strict=True) for part in pair)
        return whole if whole.startswith("/") else f"/{whole}"

    def _base(self) -> str:
        """Return the path before all paths: that of the first server, without a slash at its end."""
        root = self.references.root
        if isinstance(root.get("basePath"), str):
            self.references.take(1, len(root["basePath"]))
            return str(root["basePath"]).rstrip("/")
        servers: Any = self.node.get("servers") or self.around.get("servers") or root.get("servers")
        server = self.references.node(servers[0]) if isinstance(servers, list) and servers else {}
        variables = self.references.node(server.get("variables"))

        def default(found: re.Match[str]) -> str:
            value = plain(self.references.node(variables.get(found[1])).get("default"))
            self.references.take(1, len(value))
            return value

        url = plain(server.get("url"))
        self.references.take(1, len(url))
        try:
            path = urlsplit(_PLACE.sub(default, url)).path.rstrip("/")
        except ValueError:
            raise UnfillableError(f"the URL of its server, {url}, is none") from None
        return path if not path or path.startswith("/") else f"/{path}"

    def _needed_security(self) -> str:
        """Return the names of what authorizes, unless the operation can do without."""
        security = self.node.get("security", self.references.root.get("security"))
        self.references.take(len(security) if isinstance(security, list) else 1)
        ways = [way for way in security if isinstance(way, Mapping)] if isinstance(security, list) else []
        if not ways or any(not way for way in ways):
            return ""
        return " and ".join(islice(ways[0], 10))

    def _responses(self) -> dict[str, Any]:
        found = self.node.get("responses")
        self.references.take(len(found) if isinstance(found, Mapping) else 1)
        return (
            {str(status): response for status, response in found.items()}
            if isinstance(found, Mapping)
            else {}
        )

    def _is_endless(self) -> bool:
        for status, response in self._responses().items():
            content = self.references.node(response).get("content")
            if status.startswith("2") and isinstance(content, Mapping) and content:
                self.references.take(len(content))
                return all(str(kind).startswith("text/event-stream") for kind in content)
        return False

    def _status(self) -> int | None:
        """Return the first right status, a redirection where it does nothing else; None: any 2xx."""
        for right in ("2", "3"):
            found = [code for code in self._responses() if re.fullmatch(rf"{right}([0-9][0-9]|XX)", code)]
            if found:
                return int(found[0]) if found[0].isdecimal() else None
        return None


def operations_of(references: References) -> Iterator[Operation]:
    """Yield the operations in their order."""
    paths = references.root.get("paths")
    for path, item in paths.items() if isinstance(paths, Mapping) else ():
        try:
            references.begin()
            around = references.node(item)
        except UnfillableError:
            around = {}
        for method in OPERATIONS:
            if isinstance(around.get(method), Mapping):
                yield Operation(references, method.upper(), str(path), around[method], around)


UNSAID = ("accept", "content-type", "authorization", "cookie")
"""Headers that a document may not list as parameters (OpenAPI 3.1.0, section 4.8.12.2), and a header made of others."""


@dataclass
class Filled:
    """Where the parameters went."""

    path: dict[str, str] = field(default_factory=dict)
    query: list[str] = field(default_factory=list)
    headers: list[tuple[str, str]] = field(default_factory=list)
    form: dict[str, Any] = field(default_factory=dict)
    """Of a form, as Swagger 2 writes it."""
    body: Node | None = None
    """The body as a parameter, as Swagger 2 writes it."""


def fill(references: References, *lists: object) -> Filled:
    """Fill in parameters; those of a later list replace those of an earlier. Raises UnfillableError."""
    found: dict[tuple[str, str], Node] = {}
    for listed in lists:
        for parameter in listed if isinstance(listed, list) else []:
            node = references.node(parameter)
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
            filled.path[name] = _text_of(texts, joined=",")
        elif where == "query":
            filled.query += _in_query(node, name, texts)
        elif where == "header":
            filled.headers.append((name, _text_of(texts, joined=",", escape=False)))
        elif where == "cookie":
            cookies.append(f"{name}={_text_of(texts, joined=',')}")
        elif where == "formData":
            filled.form[name] = texts[0][0]
    if cookies:
        filled.headers.append(("Cookie", "; ".join(cookies)))
    return filled


def _texts(references: References, node: Node, name: str, *, needed: bool) -> Iterator[list[str]]:
    """Yield each choice as its parts: a single part, unless it is an array."""
    schema = references.node(_schema(node))
    example = _example(references, node)
    if example is not None:
        yield _parts(references.take_whole(example), name)
        return
    if not needed and "example" not in schema and "examples" not in schema:
        return
    values = [*given_values(schema)][:1] or choices(schema) or [*_least(references, schema)]
    if not values:
        raise UnfillableError(f"parameter {name} has no example, default, enum or minimum")
    for value in values:
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
        for candidate in examples.values():
            if "value" in (example := references.node(candidate)):
                return example["value"]
    return None


def _least(references: References, schema: Node) -> Iterator[Any]:
    """Yield what the schema allows, where that is so little that each will do."""
    of = kind(schema)
    if of == "boolean":
        yield from (False, True)
    elif of in ("integer", "number") and (least := number(schema)) is not None:
        yield least
    elif of == "array" and "items" in schema:
        items = references.node(schema["items"])
        yield from ([item] for item in [*given_values(items)][:1] or choices(items))
    else:
        for name in ("allOf", "anyOf", "oneOf"):
            parts = schema.get(name)
            for part in parts if isinstance(parts, list) else []:
                node = references.node(part)
                if values := [*given_values(node)][:1] or choices(node):
                    yield from values
                    return


def _parts(value: Any, name: str) -> list[str]:
    if isinstance(value, list):
        return [part for item in value for part in _parts(item, name)]
    if isinstance(value, dict):
        raise UnfillableError(f"parameter {name} is an object; write the request yourself")
    return [value if isinstance(value, str) else json.dumps(value)]


def _text_of(texts: list[list[str]], joined: str, *, escape: bool = True) -> str:
    """Return a text, or a template that picks from several."""
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
    return [f"{key}={_text_of(texts, joined=',')}"]


FORM = "application/x-www-form-urlencoded"
Body = tuple[str, bytes]
"""Content type, and the bytes."""


def body_of(references: References, operation: Node, filled: Filled) -> Body | None:
    """Return the body of an operation, None where it needs none. Raises UnfillableError."""
    if filled.body is not None:  # Swagger 2
        schema = filled.body.get("schema", {})
        return _body_of("application/json", Filling(references).value(schema, "body"))
    if filled.form:
        return _body_of(FORM, filled.form)
    request_body = references.node(operation.get("requestBody"))
    content = request_body.get("content")
    if not isinstance(content, Mapping) or not content:
        return None
    references.take(len(content))
    kind = next((name for name in content if _is_json(name)), FORM if FORM in content else None)
    if kind is None:
        if request_body.get("required") is True:
            raise UnfillableError(f"its body is {next(iter(content))}; JSON and forms are written")
        return None
    media = references.node(content[kind])
    return _body_of(kind, _value(references, media))


def _is_json(kind: str) -> bool:
    name = kind.partition(";")[0].strip().lower()
    return name == "application/json" or name.endswith("+json")


def _value(references: References, media: Node) -> Any:
    if "example" in media:
        return references.take_whole(media["example"])
    examples = media.get("examples")
    if isinstance(examples, Mapping):
        for candidate in examples.values():
            if "value" in (example := references.node(candidate)):
                return references.take_whole(example["value"])
    return Filling(references).value(media.get("schema", {}), "body")


def _body_of(kind: str, value: Any) -> Body:
    if kind == FORM:
        if not isinstance(value, dict):
            raise UnfillableError("its body is a form and no object")
        return kind, urlencode(value, doseq=True, safe="{}", errors="replace").encode()
    # An example of an object may be given as its text.
    text = value if isinstance(value, str) and value[:1] in ("{", "[") else json.dumps(value)
    return kind, text.encode(errors="replace")


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


def given_values(schema: Node) -> Iterator[Any]:
    """Yield the values that the schema itself gives, the most meant first."""
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
    return [option for option in first if option is not None][:MOST_CHOICES]


def kind(schema: Node) -> str:
    """Return its type; the first that is not null where it has several; nothing where it says none."""
    found = schema.get("type")
    if isinstance(found, list):
        found = next((option for option in found[:10] if option != "null"), "null")
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
    """Fills in a body, schema within schema."""

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
        for found in chain(given_values(node), choices(node)):
            return self._references.take_whole(found)
        if parts := _list(node, "allOf"):
            return self._merge(node, parts, name, depth)
        for alternatives in (_list(node, "oneOf"), _list(node, "anyOf")):
            if alternatives:
                return self._first_of(alternatives, name, depth)
        fill = self._kinds.get(kind(node))
        if fill is None:
            raise UnfillableError(f"{name} has neither an example nor a type")
        return fill(self, node, name, depth)

    def _merge(self, node: Node, parts: list[Any], name: str, depth: int) -> Any:
        values = [self.value(part, name, depth + 1) for part in parts]
        if "properties" in node:
            values.append(self._object(node, name, depth))
        whole = [value for value in values if isinstance(value, dict)]
        return {key: value for entry in whole for key, value in entry.items()} if whole else values[0]

    def _first_of(self, alternatives: list[Any], name: str, depth: int) -> Any:
        why = UnfillableError(f"{name} is null")
        for alternative in alternatives:
            if kind(self._references.node(alternative)) == "null":
                continue
            try:
                return self.value(alternative, name, depth + 1)
            except TooMuchError:
                raise
            except UnfillableError as error:
                why = error
        raise why

    def _object(self, node: Node, name: str, depth: int) -> dict[str, Any]:
        properties = node.get("properties")
        properties = properties if isinstance(properties, Mapping) else {}
        required = {
            field_name: None
            for field_name in self._charged(_list(node, "required"))
            if isinstance(field_name, str)
        }
        found = {}
        for key, schema in properties.items():
            property_schema = self._references.node(schema)
            if property_schema.get("readOnly") is True:
                continue
            if key in required or "example" in property_schema or "examples" in property_schema:
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
            item = self.value(node["items"], f"{name}[]", depth + 1)
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
        return [item] * max(count, 1)

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
