"""Spans of time as people type them: `10s`, `500ms`, `1.5m`, `2h`; a bare number is seconds."""

import re

_UNITS = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}
_FORM = re.compile(r"\s*(\d+(?:\.\d+)?|\.\d+)\s*(us|ms|s|min|m|h|)\s*", re.ASCII)


def seconds(text: str) -> float:
    """Return the seconds that `text` means. Raises ValueError, with the forms allowed, on anything else."""
    match = _FORM.fullmatch(text)
    if match is None:
        raise ValueError(f"'{text}' is not a span of time; write 10s, 500ms, 1.5m or 2h")
    return float(match[1]) * _UNITS[match[2]]
