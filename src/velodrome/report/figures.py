"""Numbers as `model/quantity.py` writes them, aligned on the decimal point; text of servers made harmless."""

from collections.abc import Sequence

from velodrome.model.quantity import (
    MISSING,
    duration,
    grouped,
    megabytes,
    milliseconds,
    number,
    percent,
    places_for,
    short,
    span,
    within,
)

__all__ = [
    "MISSING",
    "aligned",
    "duration",
    "escape_of",
    "grouped",
    "megabytes",
    "milliseconds",
    "number",
    "percent",
    "places_for",
    "short",
    "span",
    "visible",
    "within",
]


def aligned(column: Sequence[str]) -> list[str]:
    """Pad texts so that their decimal points stand under each other and all have one length.

    What follows the number (` ±2`) counts as after the point.
    """
    heads, tails = [], []
    for text in column:
        end = min((text.find(mark) for mark in (".", " ±") if mark in text), default=len(text))
        heads.append(text[:end])
        tails.append(text[end:])
    before, after = max(map(len, heads), default=0), max(map(len, tails), default=0)
    return [head.rjust(before) + tail.ljust(after) for head, tail in zip(heads, tails, strict=True)]


def visible(text: str) -> str:
    """Return text that a server may have chosen with every control and direction character made visible."""
    return "".join(letter if letter.isprintable() else escape_of(letter) for letter in text)


def escape_of(letter: str) -> str:
    """Return the Python escape of one character: `\\x1b`."""
    return letter.encode("unicode_escape").decode() if letter != "\n" else "\\n"
