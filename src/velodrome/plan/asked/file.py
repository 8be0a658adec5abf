"""The file of several requests, by weight.

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
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from velodrome.model.errors import RequestsFileError
from velodrome.model.request import Content, Request
from velodrome.plan.asked import faults, file_or_text
from velodrome.plan.budget import contents, see_written

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


def read(path: Path, default_path: str = "/", *, templates: bool = True) -> tuple[Request, ...]:
    """Return the requests of the file; those that name no path have the default one.

    Without `templates`, braces stand for themselves. Raises RequestsFileError, all faults at once, and UsageError for
    a file of a body that cannot be read.
    """
    try:
        found = _File.model_validate(_read(path))
    except ValidationError as error:
        raise RequestsFileError(str(path), [_sentence(fault) for fault in error.errors()]) from error
    requests = tuple(_plain(one, path.parent, default_path) for one in found.request)
    if wrong := [*faults.of_all(requests, templates=templates)]:
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
    """Return text, or the file that it names, relative to the file of requests."""
    found = file_or_text.read(field, text, folder)
    return None if found is None else Content.of(found)
