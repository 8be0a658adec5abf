"""What may stand between the double braces of a template, as the engine reads it (`crates/engine/src/template`).

Here it is only recognised, so that a fault is told before any server is started; the engine fills places in.
"""

import re
from collections.abc import Iterator

KNOWN = "{{n}}, {{random}}, {{random 1..500}}, {{hex 16}}, {{uuid}} and {{pick red|green}}"
MOST_DIGITS = 65_536
_WORD = re.compile(r"(n|i|random|uuid)")
_RANGE = re.compile(r"random\s+\+?([0-9]{1,20})\s*\.\.\s*\+?([0-9]{1,20})")
_HEX = re.compile(r"hex\s+\+?([0-9]{1,20})")
_PICK = re.compile(r"pick\s+\S.*", re.DOTALL)


def unknown(text: str) -> str | None:
    """Return the first place that stands for nothing, with its braces; None: all are right."""
    found = (text[start:end] for start, end in _places(text))
    return next((place for place in found if not _is_known(place[2:-2].strip())), None)


def without(text: str) -> str:
    """Return what stands around the places."""
    around, at = [], 0
    for start, end in _places(text):
        around.append(text[at:start])
        at = end
    return "".join((*around, text[at:]))


def _places(text: str) -> Iterator[tuple[int, int]]:
    """Yield where places begin and end. Not by a pattern: one tries each `{{` up to the end of the text."""
    at = 0
    while (start := text.find("{{", at)) >= 0 and (inside := text.find("}}", start + 2)) >= 0:
        at = inside + 2
        yield start, at


def _is_known(place: str) -> bool:
    if (bounds := _RANGE.fullmatch(place)) is not None:
        return int(bounds[1]) <= int(bounds[2]) < 1 << 64
    if (digits := _HEX.fullmatch(place)) is not None:
        return 1 <= int(digits[1]) <= MOST_DIGITS
    return bool(_WORD.fullmatch(place) or _PICK.fullmatch(place))
