"""Numbers with their units as people read them, with no more digits than they deserve.

within(18_437, 18_125, 18_749)   ->  18 400 ±300
ratio(Interval(1.79, 1.9, 2.04)) ->  1.9× [1.8, 2.0]
"""

import math
from dataclasses import dataclass
from enum import StrEnum


class Unit(StrEnum):
    """How a number reads."""

    RATE = "/s"
    MILLISECONDS = "ms"
    MICROSECONDS = "µs"
    SECONDS = "s"
    BYTES = "bytes"
    SHARE = "%"
    COUNT = ""
    RATIO = "×"


@dataclass(frozen=True)
class Interval:
    """An estimate with a bootstrap interval (95 % by default)."""

    low: float
    mid: float
    high: float


_SIGNS = {
    Unit.RATE: (1.0, "/s"),
    Unit.MILLISECONDS: (1.0, " ms"),
    Unit.MICROSECONDS: (1.0, " µs"),
    Unit.SECONDS: (1.0, " s"),
    Unit.SHARE: (100.0, " %"),
    Unit.RATIO: (1.0, "×"),
}
"""Factor and sign of the units that need them."""
MISSING = "–"
"""Stands for a number that is missing."""


def number(value: float | None, digits: int = 3) -> str:
    """Return `value` with `digits` significant digits: `0.31`, `202`, `3 980`."""
    if value is None or not math.isfinite(value):
        return MISSING
    if value == 0:
        return "0"
    places = digits - 1 - math.floor(math.log10(abs(value)))
    # 9.996 to three digits is 10.0, which has one digit too many: rounding first gives the right magnitude.
    rounded = round(value, places)
    places = digits - 1 - math.floor(math.log10(abs(rounded))) if rounded else 0
    return thousands(rounded, max(places, 0))


def round_down(value: float, digits: int = 3) -> float:
    """Return `value`, above 0, cut to so many significant digits: what is printed of it is then no more than it is."""
    step = 10.0 ** (math.floor(math.log10(value)) - digits + 1)
    return float(f"{math.floor(value / step * (1 + 1e-12)) * step:.{digits}g}")


def milliseconds(value: float | None) -> str:
    """Return milliseconds to be put under a heading that has the unit: `0.31`, `1.91`, `20.3`, `3 980`."""
    if value is None or not math.isfinite(value):
        return MISSING
    places = 0 if value >= 99.95 else 1 if value >= 9.995 else 2 if value >= 0.0095 else 3
    return thousands(value, places)


def short(value: float) -> str:
    """Return a number that somebody chose, with no more digits than were typed: `5 000`, `0.5`."""
    text = f"{value:,.6f}".rstrip("0").rstrip(".").replace(",", " ")
    return "−" + text[1:] if text.startswith("-") else text


def significant(value: float | None, digits: int = 3) -> str:
    """Return a measured number within a sentence, without zeros at its end: `1 210`, `38.6`, `0.5`, `2`."""
    if value is None or not math.isfinite(value):
        return MISSING
    return short(float(f"{value:.{digits}g}"))


def thousands(value: float, places: int = 0) -> str:
    """Return `value` with `places` decimals, a space between thousands and a true minus sign."""
    text = f"{value:,.{places}f}".replace(",", " ")
    return "−" + text[1:] if text.startswith("-") else text


def places_for(spread: float, value: float) -> int:
    """Return how many decimals `value` deserves when it is known to within `spread`: one digit of the spread.

    A spread that begins with 1 keeps two digits (rule of the Particle Data Group, simplified: «Review of
    Particle Physics», introduction, section 5.3). Without a spread three significant digits are shown.
    """
    if spread <= 0 or not math.isfinite(spread):
        return max(0, 2 - math.floor(math.log10(abs(value)))) if value else 0
    exponent = math.floor(math.log10(spread))
    leading = spread / 10**exponent
    return max(0, -exponent + (1 if leading < 1.95 and exponent <= 0 else 0))


def within(value: float, low: float, high: float) -> str:
    """Return `197 ±2`: an estimate and half the width of its interval, to the digits it deserves."""
    spread = (high - low) / 2
    places = places_for(spread, value)
    if spread <= 0:
        return thousands(value, places)
    # Above ten the spread itself has digits that mean nothing: 18 437 ±312 is 18 400 ±300.
    step = 10 ** math.floor(math.log10(spread)) if spread >= 20 else 1
    shown = round(value / step) * step if step > 1 else value
    width = max(round(spread / step) * step, step) if step > 1 else spread
    return f"{thousands(shown, places)} ±{thousands(width, places)}"


def duration(seconds: float) -> str:
    """Return a span as a person says it: `40 s`, `4 min`, `1 h 20 min`."""
    if seconds < 120:
        return f"{max(0, round(seconds))} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60} min"


def span(seconds: float) -> str:
    """Return a span to three digits in the unit that suits it: `310 ms`, `3.98 s`, `10 s`."""
    if seconds < 1:
        return f"{significant(seconds * 1e3)} ms"
    return f"{short(round(seconds, 2 if seconds < 10 else 1))} s"


def megabytes(count: float | None) -> str:
    """Return bytes as decimal megabytes without the unit, to be put under a heading that has it."""
    if count is None:
        return MISSING
    return number(count / 1e6, 2) if count < 1e7 else thousands(count / 1e6)


def percent(share: float, digits: int = 2) -> str:
    """Return a share of one as `21 %`."""
    return f"{number(share * 100, digits)} %"


def memory(count: float | None) -> str:
    """Return bytes with a unit: `48 MB`, `1.9 GB`, `220 kB`."""
    if count is None:
        return MISSING
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= 0.9995 * size:
            return f"{number(count / size, 2) if count < 10 * size else thousands(count / size)} {unit}"
    return f"{thousands(count)} bytes"


def rate(value: float | None) -> str:
    """Return a rate to three digits: `197/s`."""
    return MISSING if value is None else f"{number(value)}/s"


def exact(value: float) -> str:
    """Return a rate that follows from what was requested, not from measuring: `10/s`, `37.5/s`."""
    return f"{short(round(value, 2 if value < 100 else 0))}/s"


def ratio(interval: Interval) -> str:
    """Return how many times: `1.9× [1.8, 2.0]`, to the digits the interval deserves."""
    places = min(3, max(places_for((interval.high - interval.low) / 2, interval.mid), int(interval.mid < 10)))
    low, mid, high = (thousands(value, places) for value in (interval.low, interval.mid, interval.high))
    return f"{mid}× [{low}, {high}]"


def difference(interval: Interval) -> str:
    """Return a ratio near one as a difference: `+1 % [−3, +5]`."""
    places = min(2, places_for((interval.high - interval.low) * 50, (interval.mid - 1) * 100))
    low, mid, high = ((value - 1) * 100 for value in (interval.low, interval.mid, interval.high))
    return f"{with_sign(mid, places)} % [{with_sign(low, places)}, {with_sign(high, places)}]"


def in_unit(value: float | Interval | None, unit: Unit) -> str:
    """Return a number in a unit: `2.6× [2.4, 2.8]`, `396 ms [390, 402]`, or, of a number that somebody chose,
    `2.63×`."""
    if value is None:
        return MISSING
    scale, sign = _SIGNS.get(unit, (1.0, ""))
    if unit is Unit.BYTES:
        scale, sign = 1e-6, " MB"
    if not isinstance(value, Interval):
        return f"{short(value * scale)}{sign}"
    low, mid, high = value.low * scale, value.mid * scale, value.high * scale
    if low == mid == high:
        return f"{short(mid) if mid == round(mid) else number(mid)}{sign}"
    places = min(places_for((high - low) / 2, mid), 3 if abs(mid) < 10 else 1)
    shown = [thousands(end, places) if math.isfinite(end) else "∞" for end in (low, mid, high)]
    return f"{shown[1]}{sign} [{shown[0]}, {shown[2]}]"


def with_sign(value: float, places: int = 0) -> str:
    """Return `value` with its sign, zero without: `+5`, `−3`, `0`."""
    text = thousands(value, places)
    if not text.strip("−0."):
        return text.lstrip("−")
    return text if value < 0 else f"+{text}"
