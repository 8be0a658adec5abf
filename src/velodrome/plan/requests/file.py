"""The file of several requests, by weight: reads and writes it.

[[request]]
name = "item"
weight = 9
path = "/items/{{random 1..500}}"
expect-contains = '"price":'

[[request]]
name = "order"
method = "POST"
path = "/orders"
headers = { Content-Type = "application/json" }
body = '{"id": "{{uuid}}"}'
expect-status = 201
"""

import json
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from velodrome.model.app import Content, Request
from velodrome.model.errors import RequestsFileError, UsageError
from velodrome.model.files import Deed, Named
from velodrome.plan.requests import lines
from velodrome.plan.untrusted import See, contents, refuse, see_written

MOST_BYTES = 16_000_000
"""Of the file; bodies may be in files of their own."""


class _Request(BaseModel):
    """One `[[request]]` of a file."""

    model_config = ConfigDict(
        extra="forbid",
        alias_generator=lambda name: name.replace("_", "-"),
        populate_by_name=False,
        strict=True,
    )

    name: str
    weight: float = Field(default=1.0)
    method: str | None = None
    path: str | None = None
    headers: dict[str, str] = Field(default_factory=dict)
    body: str | None = None
    expect_status: int | None = None
    expect_body: str | None = None
    expect_contains: str | None = None


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid")

    request: list[_Request] = Field(min_length=1)


def read(
    path: Path, default_path: str = "/", *, templates: bool = True, see: See = refuse
) -> tuple[Request, ...]:
    """Return the requests of the file; those that name no path have the default path.

    Without `templates`, braces stand for themselves. `see` decides on the files of bodies that are not beside it,
    before any is read. Raises RequestsFileError, all faults at once, TooLargeError, UntrustedError, and UsageError for
    a file of a body that cannot be read.
    """
    try:
        found = _File.model_validate(_read(path))
    except ValidationError as error:
        raise RequestsFileError(str(path), [_sentence(fault) for fault in error.errors()]) from error
    see(str(path), [*_not_beside(found.request, path.resolve().parent)])
    requests = tuple(_plain(request, path.resolve().parent, default_path) for request in found.request)
    if wrong := [*lines.faults_of_all(requests, templates=templates)]:
        raise RequestsFileError(str(path), wrong)
    return requests


def _read(path: Path) -> Any:
    try:
        text = contents(path, MOST_BYTES).decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise RequestsFileError(str(path), [f"it cannot be read: {why}"]) from error
    see_written(str(path), text)
    try:
        if path.suffix.lower() != ".json":
            return tomllib.loads(text)
        found = json.loads(text)
    except ValueError as error:
        raise RequestsFileError(str(path), [str(error)]) from error
    except RecursionError as error:
        raise RequestsFileError(str(path), ["it is nested too deeply"]) from error
    return {"request": found} if isinstance(found, list) else found


def _sentence(fault: Mapping[str, Any]) -> str:
    """Return `request 2, weight: Input should be a valid number`."""
    place = [f"request {part + 1}" if isinstance(part, int) else str(part) for part in fault["loc"][1:]]
    if fault["type"] == "extra_forbidden":
        known = ", ".join(field.alias or name for name, field in _Request.model_fields.items())
        if not place:
            return f"{fault['loc'][0]}: a file of requests has [[request]] and nothing else; each has {known}"
        return f"{', '.join(place)}: there is no such field. There are: {known}"
    return f"{', '.join(place) or 'request'}: {fault['msg']}"


def _plain(request: _Request, folder: Path, default_path: str) -> Request:
    return Request(
        name=request.name,
        path=default_path if request.path is None else request.path,
        method=request.method or "GET",
        weight=request.weight,
        headers=tuple(request.headers.items()),
        body=_content(f"request {request.name}, body", request.body, folder),
        expect_status=request.expect_status,
        expect_body=_content(f"request {request.name}, expect-body", request.expect_body, folder),
        expect_contains=request.expect_contains,
    )


def _content(field: str, text: str | None, folder: Path) -> Content | None:
    """Return text, or the file that it names, relative to the file of requests. Raises UsageError, TooLargeError."""
    if text is None or not text.startswith("@"):
        return None if text is None else Content.of(text.encode())
    try:
        # A device or a pipe has no end, or none yet.
        if not (folder / text[1:]).is_file():
            raise UsageError(f"{field}: cannot read {text[1:]}: there is no such file")
        return Content.of(contents(folder / text[1:]))
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else str(error)
        raise UsageError(f"{field}: cannot read {text[1:]}: {why}") from error


def _not_beside(requests: Sequence[_Request], folder: Path) -> Iterator[Named]:
    """Yield the files of bodies that are not in the folder of the file that names them, or hidden in it.

    A request file that came with an app may name the files of that app; `~/.ssh/id_rsa`, or `.env`, which is most often
    the user's own, it may not.
    """
    for request in requests:
        for field, text in (("body", request.body), ("expect-body", request.expect_body)):
            if text is None or not text.startswith("@"):
                continue
            try:
                found = (folder / text[1:]).resolve()
            except (OSError, ValueError):
                continue  # it cannot be read either
            inside = found.parts[len(folder.parts) :] if found.is_relative_to(folder) else None
            if inside is None or any(part.startswith(".") for part in inside):
                yield Named(Deed.READS, text[1:], f"request {request.name}, {field}")


_BARE = re.compile(r"[A-Za-z0-9_-]+")
_LITERAL = re.compile(r"[^'\x00-\x08\x0a-\x1f\x7f]*")


def file_text(requests: Sequence[Request], comments: Sequence[str] = ()) -> str:
    """Return a file, with sentences before it as comments. Bodies have to be text."""
    head = "".join(f"# {_one_line(sentence)}\n" for sentence in comments)
    return "\n".join(
        [*([head] if head else []), *("\n".join(_lines(request)) + "\n" for request in requests)]
    )


def _lines(request: Request) -> Iterator[str]:
    yield "[[request]]"
    yield f"name = {_string(request.name)}"
    if request.weight != 1:
        yield f"weight = {request.weight:.17g}"
    if request.method != "GET":
        yield f"method = {_string(request.method)}"
    yield f"path = {_string(request.path)}"
    if request.headers:
        pairs = ", ".join(f"{_key(name)} = {_string(value)}" for name, value in request.headers)
        yield f"headers = {{ {pairs} }}"
    if request.body is not None:
        yield f"body = {_string(request.body.text)}"
    if request.expect_status is not None:
        yield f"expect-status = {request.expect_status}"
    if request.expect_body is not None:
        yield f"expect-body = {_string(request.expect_body.text)}"
    if request.expect_contains is not None:
        yield f"expect-contains = {_string(request.expect_contains)}"


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else _string(name)


def _string(value: str) -> str:
    """Return a string of TOML: as it stands in single quotes where it has double ones in it, else escaped."""
    if '"' in value and _LITERAL.fullmatch(value):
        return f"'{value}'"
    # JSON escapes what TOML wants escaped, but for the only control character above the blank.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _one_line(sentence: str) -> str:
    return " ".join(re.sub(r"[\x00-\x1f\x7f]", " ", sentence).split())
