"""Text on its way to a reader: columns aligned on the decimal point, a server's words made harmless."""

from collections.abc import Sequence


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
    return "".join(letter if letter.isprintable() else _escape(letter) for letter in text)


def _escape(letter: str) -> str:
    return letter.encode("unicode_escape").decode()


def plural(count: int, noun: str) -> str:
    """Return `1 connection`, `2 connections`."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}".replace(",", " ")
