"""What is asked of an app, by its OpenAPI document: 3.0, 3.1 or Swagger 2, as JSON or YAML.

    read(Path("openapi.json"))  ->  OpenApi("Shop", (Request("GET /items/{id}", "/api/items/7"), …), left_out=(…))

Each operation is asked as often as the others: a document does not tell how often it is. What cannot be filled in from
the document is left out, with the reason.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from velodrome.model.app import Request
from velodrome.model.errors import OpenApiError, TooLargeError
from velodrome.plan import budget
from velodrome.plan.asked import faults
from velodrome.plan.asked.described import document, operations
from velodrome.plan.asked.described.operations import Operation
from velodrome.plan.asked.described.references import (
    Node,
    References,
    UnfillableError,
    plain,
    short,
    valid,
)
from velodrome.plan.asked.left_out import LeftOut, sentence
from velodrome.plan.asked.methods import SAFE

YAML = (".yaml", ".yml")
MOST_TOLD = 500
"""Operations that are left out, each with its reason."""


@dataclass(frozen=True)
class OpenApi:
    """What a document tells of what can be asked."""

    title: str
    requests: tuple[Request, ...]
    left_out: tuple[LeftOut, ...]

    def sentences(self) -> Iterator[str]:
        """Yield what it tells, and what is left out of the mix."""
        whole = len(self.requests) + len(self.left_out)
        yield f"{len(self.requests)} of {whole} operations, each as often as the others"
        for one in self.left_out[:MOST_TOLD]:
            yield f"left out: {one.what}: {one.why}"
        if len(self.left_out) > MOST_TOLD:
            yield f"left out: {len(self.left_out) - MOST_TOLD} more"


def read(path: Path, methods: Collection[str] = SAFE) -> OpenApi:
    """Return what the document at `path` tells of operations with these methods.

    Raises OpenApiError for a file that cannot be read, is no such document, or leaves nothing to ask, and TooLargeError
    for one that is, or stands for, more than is read.
    """
    root, size = _document(path)
    wanted = {method.upper() for method in methods}
    requests: list[Request] = []
    left_out: list[LeftOut] = []
    place = "#/paths"
    try:
        for operation in operations.all_of(References(root, size)):
            place = operation.place
            try:
                requests.append(_request(operation, wanted, len(requests)))
            except UnfillableError as error:
                left_out.append(LeftOut(short(operation.name), 1, valid(str(error))))
    except budget.SpentError as error:
        raise TooLargeError(str(path), place, f"{error} of operations that are written out") from error
    if not requests:
        why = f"it leaves nothing to ask: {sentence(left_out)}" if left_out else "it describes no operation"
        raise OpenApiError(str(path), why)
    info = root.get("info")
    title = plain(info.get("title")) if isinstance(info, Mapping) else ""
    return OpenApi(valid(short(title)), tuple(requests), tuple(left_out))


def _request(operation: Operation, wanted: Collection[str], before: int) -> Request:
    """Return the request of an operation, before which there are so many others. Raises UnfillableError."""
    if operation.method not in wanted:
        raise UnfillableError("not among the methods asked for; it may change what is there")
    if before >= faults.MOST:
        raise UnfillableError(f"a mix has {faults.MOST} requests at most")
    return operation.request()


def _document(path: Path) -> tuple[Node, int]:
    """Return the document with the letters of its text."""
    try:
        text = budget.contents(path).decode("utf-8-sig")
    except OSError as error:
        raise OpenApiError(str(path), f"it cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise OpenApiError(str(path), f"it is no text (UTF-8): {error.reason}") from error
    try:
        root = document.parsed(text, as_yaml=path.suffix.lower() in YAML)
    except document.UnreadableError as error:
        raise OpenApiError(str(path), str(error)) from error
    except document.OverflowingError as error:
        raise TooLargeError(str(path), error.place, error.budget) from error
    # YAML takes the unquoted version 2.0 for a number.
    if not isinstance(root, dict) or not isinstance(root.get("openapi", root.get("swagger")), str | float):
        raise OpenApiError(
            str(path), "it is no OpenAPI document: it has no field 'openapi' that says its version"
        )
    return root, len(text)
