"""In what a load differs from what was asked for, in sentences: the field `notes` of its document."""

from collections.abc import Mapping
from typing import Any

from velodrome.model import quantity


def interrupted(document: Mapping[str, Any], asked_s: float | None) -> str:
    """Say that somebody ended the load, and when."""
    length = quantity.span(document["duration_s"])
    of_all = f" of {quantity.span(asked_s)}" if asked_s else ""
    return f"Interrupted after {length}{of_all}: all figures are of what was measured until then."


def fewer_connections(document: Mapping[str, Any], asked: int) -> str | None:
    """Say that an open loop had fewer connections to take than it usually has; None: it had them."""
    had = document["load"]["connections"]
    if had >= asked:
        return None
    return (
        f"Up to {quantity.grouped(had)} connections at once instead of {quantity.grouped(asked)}: the hard limit of "
        "open files (ulimit -Hn) allows no more."
    )
