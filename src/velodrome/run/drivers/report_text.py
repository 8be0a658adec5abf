"""Numbers out of the reports that tools print for people."""

import re

UNITS_MS = {"us": 1e-3, "ms": 1.0, "s": 1e3, "m": 6e4, "h": 3.6e6}
_TIME = re.compile(r"^(\d+(?:\.\d+)?)(us|ms|s|m|h)$")


def match(pattern: str, text: str, what: str) -> re.Match[str]:
    """Return where a line matches. Raises ValueError, saying which is missing."""
    found = re.search(pattern, text, re.MULTILINE)
    if found is None:
        raise ValueError(f"it does not tell {what}")
    return found


def number(pattern: str, text: str, what: str) -> float:
    """Return the first group of a line as a number. Raises ValueError."""
    return float(match(pattern, text, what)[1])


def count(pattern: str, text: str, what: str | None = None) -> int:
    """Return the first group of a line as a whole number; 0 where it is missing and has no name `what`."""
    if what is None:
        found = re.search(pattern, text, re.MULTILINE)
        return int(found[1]) if found else 0
    return int(match(pattern, text, what)[1])


def milliseconds(text: str) -> float:
    """Return `1.31ms` or `701.00us` in milliseconds. Raises ValueError."""
    found = _TIME.match(text.strip())
    if found is None:
        raise ValueError(f"'{text[:20]}' is no time")
    return float(found[1]) * UNITS_MS[found[2]]
