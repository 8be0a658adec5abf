"""Pieces of the sentences a verdict is made of."""

from collections.abc import Sequence

from velodrome.model.load import Load
from velodrome.model.quantity import Interval, difference, ratio, thousands

CLEARLY = 1.25
"""From here on a lead is reported as a multiple, below as percent."""


def one_line(text: str) -> str:
    """Return a text of several lines, such as the last lines of a program, as a single line: tables and sentences have
    no more."""
    return " ".join(line.strip() for line in text.splitlines() if line.strip())


def list_names(names: Sequence[str], word: str = "and", most: int = 5) -> str:
    """Return `a, b and c`; of very many the first few and how many more."""
    shown = list(names)
    if len(shown) > most:
        shown = [*shown[: most - 1], f"{len(names) - most + 1} more"]
        word = "and"
    return " ".join(
        filter(None, (", ".join(shown[:-1]), word if shown[:-1] else "", shown[-1] if shown else ""))
    )


def lead(interval: Interval, other: str) -> str:
    """Return `1.9× [1.8, 2.0] the next, uvicorn` or `9 % [+5, +13] ahead of uvicorn`; it is ahead."""
    if interval.mid >= CLEARLY:
        return f"{ratio(interval)} the next, {other}"
    return f"{difference(interval).removeprefix('+')} ahead of {other}"


def at_once(load: Load) -> str:
    """Return what of a load can be in flight: `40 connections`, `1 × 100 streams`."""
    connections = thousands(load.pace.connections)
    return f"{connections} connections" if load.streams == 1 else f"{connections} × {load.streams} streams"


def inverse(interval: Interval) -> Interval:
    """Return b over a for a over b."""
    return Interval(1 / interval.high, 1 / interval.mid, 1 / interval.low)


def sentence(text: str) -> str:
    """Return a text with a full stop. Its first letter stays: it may be that of a name, such as uvicorn."""
    return text if not text or text[-1] in ".!?»" else f"{text}."


def capital(text: str) -> str:
    """Return a text with a capital."""
    return text[:1].upper() + text[1:]


def blocks(numbers: Sequence[int]) -> str:
    """Return `block 1` or `blocks 1, 2 and 3`, counted from 1 as people do."""
    shown = [str(number + 1) for number in sorted(set(numbers))]
    return f"block{'s' if len(shown) > 1 else ''} {list_names(shown)}"
