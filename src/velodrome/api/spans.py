"""Spans of time as a caller writes them: seconds, or text such as `"500ms"`."""

from velodrome.model import amounts
from velodrome.model.errors import UsageError


def seconds_of(span: float | str) -> float:
    """Return seconds. Raises UsageError."""
    if not isinstance(span, str):
        return float(span)
    try:
        return amounts.seconds(span)
    except ValueError as error:
        raise UsageError(str(error)) from error
