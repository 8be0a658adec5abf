"""What may stand between the double braces of a template, as the engine reads it (`crates/engine/src/template`).

Here it is only recognised, so that a fault is told before any server is started; the engine fills places in.
"""

import re

KNOWN = "{{n}}, {{random}}, {{random 1..500}}, {{hex 16}}, {{uuid}} and {{pick red|green}}"
MOST_DIGITS = 65_536
_BRACES = re.compile(r"\{\{(.*?)\}\}", re.DOTALL)
_WORD = re.compile(r"(n|i|random|uuid)")
_RANGE = re.compile(r"random\s+\+?([0-9]{1,20})\s*\.\.\s*\+?([0-9]{1,20})")
_HEX = re.compile(r"hex\s+\+?([0-9]{1,20})")
_PICK = re.compile(r"pick\s+\S.*", re.DOTALL)


def unknown(text: str) -> str | None:
    """Return the first place that stands for nothing, with its braces; None: all are right."""
    return next((found[0] for found in _BRACES.finditer(text) if not _is_known(found[1].strip())), None)


def without(text: str) -> str:
    """Return what stands around the places."""
    return _BRACES.sub("", text)


def _is_known(place: str) -> bool:
    if (bounds := _RANGE.fullmatch(place)) is not None:
        return int(bounds[1]) <= int(bounds[2]) < 1 << 64
    if (digits := _HEX.fullmatch(place)) is not None:
        return 1 <= int(digits[1]) <= MOST_DIGITS
    return bool(_WORD.fullmatch(place) or _PICK.fullmatch(place))
