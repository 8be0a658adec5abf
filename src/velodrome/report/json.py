"""verdict.json: the opinion for other programs (schema `velodrome/verdict/1`, docs/verdict.schema.json)."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from velodrome.model.errors import OutputError, UnreadableVerdictError
from velodrome.model.results import adapter
from velodrome.model.verdict import Verdict
from velodrome.report.formats import Format
from velodrome.report.writing import replace

SCHEMA = "velodrome/verdict/1"


def document(verdict: Verdict) -> dict[str, Any]:
    """Return the verdict as plain values, its schema first."""
    return {"schema": SCHEMA, **adapter(Verdict).dump_python(verdict, mode="json")}


def text(verdict: Verdict) -> str:
    """Return the document as it is written: indented, so that two of them can be compared line by line."""
    return to_json(document(verdict))


def to_json(plain: Mapping[str, Any]) -> str:
    """Return JSON as velodrome's files have it."""
    return json.dumps(plain, indent=1, ensure_ascii=False) + "\n"


def read(path: Path) -> Verdict:
    """Read what `text` wrote. Raises UnreadableVerdictError for anything else."""
    try:
        plain = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(plain, dict) or plain.pop("schema", None) != SCHEMA:
            raise UnreadableVerdictError(str(path), f"its schema is not {SCHEMA}")
        return adapter(Verdict).validate_python(plain)
    except OSError as error:
        raise UnreadableVerdictError(str(path), error.strerror or str(error)) from error
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        raise UnreadableVerdictError(str(path), f"{place}: {first['msg']}") from error
    except ValueError as error:
        raise UnreadableVerdictError(str(path), f"it is not JSON: {error}") from error


def write(path: Path, verdict: Verdict) -> None:
    """Write verdict.json. Raises OutputError when it cannot be written."""
    save(path, text(verdict))


def save(path: Path, content: str) -> None:
    """Write a report into the folder of a run, whole or not at all. Raises OutputError when it cannot be written.

    A link in its place is replaced and not followed: the folder may be somebody else's. Files that the user names are
    written by `writing.write`.
    """
    try:
        found = path.lstat() if path.is_file() and not path.is_symlink() else None
        replace(str(path), content.encode(), found)
    except OSError as error:
        raise OutputError(str(path), error.strerror or str(error)) from error


report = Format("json", "verdict.json", lambda path, run: write(path, run.verdict))
