"""A diff for other programs (schema `velodrome/diff/1`, docs/diff.schema.json)."""

from typing import Any

from pydantic import TypeAdapter

from velodrome.model.difference import Diff
from velodrome.report.json import written

SCHEMA = "velodrome/diff/1"
_DIFF = TypeAdapter(Diff)


def document(diff: Diff) -> dict[str, Any]:
    """Return the diff as plain values, its schema first."""
    return {"schema": SCHEMA, **_DIFF.dump_python(diff, mode="json")}


def text(diff: Diff) -> str:
    """Return the document as it is written."""
    return written(document(diff))
