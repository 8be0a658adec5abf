"""Spans of time as people type them: `10s`, `500ms`, `1.5m`, `2h`, `30d`; a bare number is seconds."""

_UNITS = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_SPACE = " \t\n\r\f\v"


def seconds(text: str) -> float:
    """Return the seconds that `text` means. Raises ValueError, with the forms allowed, on anything else."""
    # Without regular expressions: to import them takes longer than all else that a load reads with.
    told = text.strip(_SPACE)
    number = told.rstrip(_LETTERS)
    unit = told[len(number) :]
    number = number.rstrip(_SPACE)
    digits = number.replace(".", "", 1)
    if unit not in _UNITS or not (digits.isascii() and digits.isdigit()) or number.endswith("."):
        raise ValueError(f"'{text}' is not a span of time; write 10s, 500ms, 1.5m or 2h")
    return float(number) * _UNITS[unit]
