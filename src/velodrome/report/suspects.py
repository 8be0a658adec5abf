"""Faults that figures make likely: as lines of text, with the command that proves each. They accuse nobody."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from velodrome.model.diagnosis import Suspected
from velodrome.report.typeset import paragraph, visible

if TYPE_CHECKING:
    from rich.text import Text

PROVES = "Nothing is proven. This proves it, or rules it out:"


def grouped(every: Sequence[Suspected]) -> list[tuple[Suspected, list[str]]]:
    """Return the first suspect of each fault, with whom else it is suspected of."""
    found: dict[str, list[Suspected]] = {}
    for suspected in every:
        found.setdefault(suspected.id, []).append(suspected)
    return [(first, [other.of for other in rest]) for first, *rest in found.values()]


def sentence(suspected: Suspected, also: Sequence[str] = ()) -> str:
    """Return `Suspect: nodelay (uvicorn · h11 ×2): p50 42.5 ms on reused connections, 0.4 ms on …`."""
    others = f"; also {', '.join(also)}" if also else ""
    return visible(f"Suspect: {suspected.id} ({suspected.of}{others}): {suspected.why.rstrip('.')}.")


def texts(every: Sequence[Suspected], width: int) -> list[Text]:
    """Return the same for a terminal of `width` columns; the commands stay whole, as they are there to be copied."""
    from rich.text import Text  # noqa: PLC0415 - a search in a pipe has no time for it

    found = []
    for suspected, also in grouped(every):
        found += paragraph(sentence(suspected, also), width, 1)
        found += [*paragraph(PROVES, width, style="dim"), Text(f"   {visible(suspected.prove)}")]
    return found


def lines(every: Sequence[Suspected]) -> list[str]:
    """Return two or three lines for each fault; none where nothing is suspected."""
    found = []
    for suspected, also in grouped(every):
        found += [sentence(suspected, also), f"  {PROVES}", f"  {visible(suspected.prove)}"]
    return found
